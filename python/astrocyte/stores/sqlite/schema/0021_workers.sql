-- Processes that share a data directory. Empty where one process owns it.

-- What each commit changed, for the other processes. The newest row is never deleted, so that places only grow.
CREATE TABLE told (
    place    INTEGER PRIMARY KEY,
    worker   INTEGER NOT NULL,
    topic    TEXT    NOT NULL,
    -- The key of a bank, and its position after the commit; 0 where the topic has none.
    bank     INTEGER NOT NULL,
    position INTEGER NOT NULL,
    -- Bits: 1 something was erased, 2 the bank moved to another model, 4 references to other banks may have changed.
    flags    INTEGER NOT NULL,
    tenant   TEXT    NOT NULL,
    name     TEXT    NOT NULL
) STRICT;

-- Each process that lives: up to which place it has heard, and until when it is taken for alive.
CREATE TABLE workers (
    number INTEGER PRIMARY KEY,
    heard  INTEGER NOT NULL,
    until  INTEGER NOT NULL
) STRICT;

-- Work that one process does at a time. A higher fence shuts out the writes of earlier holders.
CREATE TABLE leases (
    name   TEXT    PRIMARY KEY,
    holder INTEGER NOT NULL,
    fence  INTEGER NOT NULL,
    until  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
