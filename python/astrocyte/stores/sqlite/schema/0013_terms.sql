-- Canonical terms, shared by the agents of a tenant, with the proposals that wait for a review.

-- name_key is the name without regard to case and punctuation; aliases and memory_ids are JSON.
CREATE TABLE terms (
    term_key    INTEGER PRIMARY KEY AUTOINCREMENT,
    term_id     TEXT    NOT NULL UNIQUE,
    tenant      TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    name_key    TEXT    NOT NULL,
    aliases     TEXT    NOT NULL,
    definition  TEXT    NOT NULL,
    status      TEXT    NOT NULL,
    memory_ids  TEXT    NOT NULL,
    proposals   INTEGER NOT NULL,
    proposed_by TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    reviewed_by TEXT,
    reviewed_at INTEGER,
    merged_into TEXT,
    UNIQUE (tenant, name_key)
) STRICT;

-- Increased by each change of a tenant's approved terms; a lookup reads them anew when it has changed.
CREATE TABLE term_epochs (
    tenant TEXT    PRIMARY KEY,
    epoch  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
