-- What banks were asked for, and holds that were to end.

-- Time in milliseconds from which a diagnosis reports a hold that still stands. A hold never ends by itself.
ALTER TABLE holds ADD COLUMN expires_at INTEGER;

-- Counts of calls by bank and day since the epoch, out of which its health is computed; numbers alone.
CREATE TABLE bank_activity (
    bank_key          INTEGER NOT NULL REFERENCES banks (bank_key),
    day               INTEGER NOT NULL,
    retains           INTEGER NOT NULL,
    duplicates        INTEGER NOT NULL,
    characters        INTEGER NOT NULL,
    recalls           INTEGER NOT NULL,
    recalls_with_hits INTEGER NOT NULL,
    scored            REAL    NOT NULL,
    reflects          INTEGER NOT NULL,
    answered          INTEGER NOT NULL,
    PRIMARY KEY (bank_key, day)
) STRICT, WITHOUT ROWID;

-- The banks that were used last.
CREATE INDEX bank_activity_by_day ON bank_activity (day, bank_key);

-- Queries that recalls of a bank did not answer, as its barriers let them be stored. Any erasure in the bank deletes
-- them all: a query may quote what is erased.
CREATE TABLE unanswered_queries (
    bank_key INTEGER NOT NULL REFERENCES banks (bank_key),
    query    TEXT    NOT NULL,
    count    INTEGER NOT NULL,
    asked_at INTEGER NOT NULL,
    PRIMARY KEY (bank_key, query)
) STRICT, WITHOUT ROWID;
