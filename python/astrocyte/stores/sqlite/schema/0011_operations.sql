-- Operations that outlive a call, and a second set of vectors for banks that move to another embedding model.

-- Which set holds the vectors of embedding_model: 0 is embeddings, 1 is second_embeddings.
ALTER TABLE banks ADD COLUMN vector_set INTEGER NOT NULL DEFAULT 0;

-- As embeddings. In both, a vector of no bytes says that the text was looked at and has no direction.
CREATE TABLE second_embeddings (
    passage_key INTEGER PRIMARY KEY,
    model       TEXT NOT NULL,
    vector      BLOB NOT NULL
) STRICT;

-- What the set that a bank does not use holds: vectors that are being built, that are kept after a move, or that are
-- being dropped, up to a memory id. No row: nothing.
CREATE TABLE spare_sets (
    bank_key   INTEGER PRIMARY KEY REFERENCES banks (bank_key),
    model      TEXT    NOT NULL,
    dimensions INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    keep_until INTEGER,
    dropped    TEXT    NOT NULL DEFAULT ''
) STRICT;

-- plan and comparison are JSON; they hold numbers and names of models.
CREATE TABLE operations (
    operation_key  INTEGER PRIMARY KEY AUTOINCREMENT,
    operation_id   TEXT    NOT NULL,
    bank_key       INTEGER NOT NULL REFERENCES banks (bank_key),
    state          TEXT    NOT NULL,
    created_by     TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    ended_at       INTEGER,
    plan           TEXT    NOT NULL,
    phase          TEXT    NOT NULL,
    start_position INTEGER NOT NULL,
    row_cursor     INTEGER NOT NULL DEFAULT 0,
    embedded       INTEGER NOT NULL DEFAULT 0,
    total          INTEGER NOT NULL DEFAULT 0,
    comparison     TEXT,
    error_reason   TEXT,
    error_message  TEXT,
    position       INTEGER,
    kept_until     INTEGER,
    UNIQUE (bank_key, operation_id)
) STRICT;

-- At most one of a bank is not done.
CREATE UNIQUE INDEX operations_open ON operations (bank_key) WHERE ended_at IS NULL;
