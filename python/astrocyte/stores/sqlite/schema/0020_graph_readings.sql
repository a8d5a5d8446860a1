-- Versions that a language model reads for the entity graph. A version waits from its derivation by rules, which is one
-- transaction with this row, until the transaction that stores what the model found.

-- waiting is 1 while the model has to read the version, else NULL. attempts counts calls without a usable answer since
-- then. revision counts answers; model is the one that gave the last, and found is its JSON: places in the content,
-- types and confidences. Rows of the graph are derived from it again without another call.
CREATE TABLE graph_readings (
    row_key  INTEGER PRIMARY KEY,
    bank_key INTEGER NOT NULL,
    waiting  INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL DEFAULT 0,
    model    TEXT,
    found    TEXT
) STRICT;

CREATE INDEX graph_readings_waiting ON graph_readings (bank_key, attempts, row_key) WHERE waiting = 1;

-- Calls and tokens of the last day, in days since the epoch, on which a model read memories of a bank.
CREATE TABLE graph_budgets (
    bank_key INTEGER PRIMARY KEY,
    day      INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    tokens   INTEGER NOT NULL
) STRICT;

-- A version that is forgotten or replaced before the model read it does not wait; one that comes back does again.
CREATE TRIGGER graph_reading_ended AFTER UPDATE OF known_until, forgotten_at ON memories
WHEN NOT (NEW.known_until IS NULL AND NEW.forgotten_at IS NULL)
BEGIN
    UPDATE graph_readings SET waiting = NULL WHERE row_key = NEW.row_key AND waiting = 1;
END;

CREATE TRIGGER graph_reading_restored AFTER UPDATE OF known_until, forgotten_at ON memories
WHEN (NEW.known_until IS NULL AND NEW.forgotten_at IS NULL) AND NOT (OLD.known_until IS NULL AND OLD.forgotten_at IS NULL)
BEGIN
    UPDATE graph_readings SET waiting = 1 WHERE row_key = NEW.row_key AND revision = 0;
END;
