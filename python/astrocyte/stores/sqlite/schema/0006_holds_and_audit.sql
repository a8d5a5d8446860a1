-- What may not be forgotten, and the trail of what was done about what may.

-- A hold is of a bank, of memories by id, or of memories by tag (JSON lists, both empty: the bank). It is closed when it
-- is released, and goes with its bank.
CREATE TABLE holds (
    hold_key    INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT    NOT NULL,
    hold_id     TEXT    NOT NULL,
    bank_key    INTEGER NOT NULL REFERENCES banks (bank_key),
    memory_ids  TEXT    NOT NULL,
    tags        TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    placed_by   TEXT    NOT NULL,
    placed_at   INTEGER NOT NULL,
    released_by TEXT,
    released_at INTEGER,
    UNIQUE (tenant, hold_id)
) STRICT;

CREATE INDEX holds_standing ON holds (bank_key) WHERE released_at IS NULL;
CREATE INDEX holds_of_bank ON holds (bank_key);

-- Each row's hash covers the row and the hash before it. Names of banks and ids of memories are not in it, for it outlives
-- both: bank_key is the store's number of a bank, and details (JSON) holds numbers, words of ours and hashes.
CREATE TABLE audit_events (
    tenant      TEXT    NOT NULL,
    sequence    INTEGER NOT NULL,
    event       TEXT    NOT NULL,
    occurred_at INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    bank_key    INTEGER NOT NULL,
    details     TEXT    NOT NULL,
    hash        BLOB    NOT NULL,
    PRIMARY KEY (tenant, sequence)
) STRICT, WITHOUT ROWID;

-- Where a tenant's trail ends, so that an end that was cut off is missed.
CREATE TABLE audit_heads (
    tenant   TEXT    PRIMARY KEY,
    sequence INTEGER NOT NULL,
    hash     BLOB    NOT NULL
) STRICT, WITHOUT ROWID;
