-- Banks, memories with their versions, the change log and the request table.

-- AUTOINCREMENT: a bank that is deleted and made again must not be taken for the old one.
CREATE TABLE banks (
    bank_key        INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant          TEXT    NOT NULL,
    bank_id         TEXT    NOT NULL,
    display_name    TEXT    NOT NULL,
    description     TEXT    NOT NULL,
    embedding_model TEXT    NOT NULL,
    dimensions      INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    -- How often display_name or description changed: the etag.
    revision        INTEGER NOT NULL DEFAULT 1,
    -- Changes committed so far, and the latest time that any of them bears.
    position        INTEGER NOT NULL DEFAULT 0,
    latest_time     INTEGER NOT NULL,
    UNIQUE (tenant, bank_id)
) STRICT;

-- One row per version, and narrow: forgetting rewrites these rows, so no text lives here but short names.
-- known_until and ended_position are NULL while the version is the current one.
CREATE TABLE memories (
    row_key           INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_key          INTEGER NOT NULL REFERENCES banks (bank_key),
    memory_id         TEXT    NOT NULL,
    version           INTEGER NOT NULL,
    content_hash      BLOB    NOT NULL,
    content_type      TEXT    NOT NULL,
    fact_type         TEXT    NOT NULL,
    memory_layer      TEXT    NOT NULL,
    session_id        TEXT,
    principal         TEXT    NOT NULL,
    token_count       INTEGER NOT NULL,
    chunk_count       INTEGER NOT NULL,
    occurred_at       INTEGER,
    valid_from        INTEGER,
    valid_until       INTEGER,
    retained_at       INTEGER NOT NULL,
    known_from        INTEGER NOT NULL,
    known_until       INTEGER,
    position          INTEGER NOT NULL,
    ended_position    INTEGER,
    -- When the memory was last brought back; `absences` has from when to when it was gone, each time.
    restored_position INTEGER,
    forgotten_at      INTEGER,
    forgotten_position INTEGER,
    purge_after       INTEGER,
    forget_reason     TEXT,
    forgotten_by      TEXT,
    -- 1 from when an erasure hid it: it never comes back, and whoever finds it erases it.
    erasing           INTEGER,
    UNIQUE (bank_key, memory_id, version)
) STRICT;

-- Listing and counting at a position.
CREATE INDEX memories_listed ON memories (bank_key, row_key, position, ended_position, restored_position)
    WHERE forgotten_at IS NULL;
-- Exact duplicates; the counts make bank statistics a walk over this index alone.
CREATE INDEX memories_current ON memories (bank_key, content_hash, token_count, chunk_count)
    WHERE known_until IS NULL AND forgotten_at IS NULL;
CREATE INDEX memories_in_session ON memories (bank_key, session_id, row_key) WHERE session_id IS NOT NULL;
CREATE INDEX memories_forgotten ON memories (bank_key, purge_after) WHERE forgotten_at IS NOT NULL;

-- What a version says; written once, never changed. tags and metadata are JSON.
CREATE TABLE contents (
    row_key  INTEGER PRIMARY KEY,
    content  TEXT NOT NULL,
    tags     TEXT NOT NULL,
    metadata TEXT NOT NULL,
    source   TEXT,
    speaker  TEXT
) STRICT;

CREATE TABLE tags (
    bank_key INTEGER NOT NULL,
    tag      TEXT    NOT NULL,
    row_key  INTEGER NOT NULL,
    PRIMARY KEY (bank_key, tag, row_key)
) STRICT, WITHOUT ROWID;

-- A passage is a version's whole or one of its chunks: passage_key = row_key * 65536 + ordinal + 1, the whole being
-- ordinal -1. One number keeps both tables in order of arrival and a version's passages side by side.
CREATE TABLE chunks (
    passage_key INTEGER PRIMARY KEY,
    text        TEXT    NOT NULL,
    tokens      INTEGER NOT NULL
) STRICT;

CREATE TABLE embeddings (
    passage_key INTEGER PRIMARY KEY,
    model       TEXT NOT NULL,
    vector      BLOB NOT NULL
) STRICT;

-- Where a memory was forgotten and brought back: hidden from the first position on, visible again from the second on.
CREATE TABLE absences (
    bank_key           INTEGER NOT NULL,
    memory_id          TEXT    NOT NULL,
    forgotten_position INTEGER NOT NULL,
    restored_position  INTEGER NOT NULL,
    PRIMARY KEY (bank_key, memory_id, forgotten_position)
) STRICT, WITHOUT ROWID;

-- Erasures that are too large to be hidden in one commit, until all of them is. memory_ids is JSON.
CREATE TABLE erasures (
    erasure_key INTEGER PRIMARY KEY,
    bank_key    INTEGER NOT NULL,
    memory_ids  TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    principal   TEXT    NOT NULL
) STRICT;

CREATE TABLE changes (
    bank_key   INTEGER NOT NULL,
    position   INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    memory_id  TEXT    NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (bank_key, position)
) STRICT, WITHOUT ROWID;

-- Answers to requests that carried an id. They outlive an erasure, so they hold no content; a fingerprint is a digest of
-- the request, by which a guess of its content could be checked, so an erasure makes those of its bank NULL.
CREATE TABLE requests (
    tenant        TEXT    NOT NULL,
    request_id    TEXT    NOT NULL,
    operation     TEXT    NOT NULL,
    fingerprint   BLOB,
    response      BLOB    NOT NULL,
    created_at    INTEGER NOT NULL,
    -- The bank that it was about; the answer goes with the bank, unless it is the answer to making or changing the bank
    -- itself. Of that one only the names go, for it says them.
    bank_key      INTEGER,
    outlives_bank INTEGER NOT NULL,
    PRIMARY KEY (tenant, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_by_age ON requests (created_at);
CREATE INDEX requests_by_bank ON requests (bank_key, outlives_bank, (fingerprint IS NULL), created_at);
