-- Observations, mental models and directives: one row each, with their revisions and the memories that these rest on.

-- kind is observation, mental_model or directive. revision is the current one. Directives are listed by descending
-- priority.
CREATE TABLE knowledge_items (
    item_key    INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_key    INTEGER NOT NULL REFERENCES banks (bank_key),
    kind        TEXT    NOT NULL,
    item_id     TEXT    NOT NULL,
    scope       TEXT    NOT NULL,
    priority    INTEGER NOT NULL DEFAULT 0,
    -- Digest of what a consolidated statement is about; NULL for manual items.
    topic       BLOB,
    revision    INTEGER NOT NULL,
    created_by  TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    deleted_at  INTEGER,
    purge_after INTEGER,
    UNIQUE (bank_key, kind, item_id)
) STRICT;

CREATE INDEX knowledge_listed ON knowledge_items (bank_key, kind, item_key) WHERE deleted_at IS NULL;
CREATE INDEX knowledge_by_id ON knowledge_items (kind, item_id);
CREATE INDEX knowledge_topics ON knowledge_items (bank_key, topic) WHERE topic IS NOT NULL;
CREATE INDEX knowledge_due ON knowledge_items (purge_after) WHERE purge_after IS NOT NULL;

-- body is JSON: text and validity of an observation, name and sections of a mental model, text of a directive.
CREATE TABLE knowledge_revisions (
    item_key   INTEGER NOT NULL,
    revision   INTEGER NOT NULL,
    bank_key   INTEGER NOT NULL,
    cause      TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    changed_by TEXT    NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (item_key, revision)
) STRICT, WITHOUT ROWID;

CREATE INDEX knowledge_revisions_of_bank ON knowledge_revisions (bank_key, item_key, revision);

-- version is that of the memory when it was cited; observed_at is when the memory happened, or was retained.
CREATE TABLE knowledge_sources (
    bank_key    INTEGER NOT NULL,
    memory_id   TEXT    NOT NULL,
    item_key    INTEGER NOT NULL,
    revision    INTEGER NOT NULL,
    version     INTEGER NOT NULL,
    observed_at INTEGER NOT NULL,
    PRIMARY KEY (bank_key, memory_id, item_key, revision)
) STRICT, WITHOUT ROWID;

CREATE INDEX knowledge_sources_of ON knowledge_sources (item_key, revision);

-- Changes of the bank up to the position have been consolidated into observations.
CREATE TABLE consolidations (
    bank_key INTEGER PRIMARY KEY REFERENCES banks (bank_key),
    position INTEGER NOT NULL
) STRICT;

-- kind is reindex or consolidation. Of a consolidation, plan counts what it did, and embedded the changes it has seen.
ALTER TABLE operations ADD COLUMN kind TEXT NOT NULL DEFAULT 'reindex';
