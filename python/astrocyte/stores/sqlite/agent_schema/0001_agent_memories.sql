-- Private memories of agents, apart from the banks, and the answers to their requests.

-- vector is of topic and content in the space of model; no bytes: the text has no direction. A forgotten memory has
-- deleted_at, and audited when the audit log of the other database records it.
CREATE TABLE agent_memories (
    memory_key   INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_id    TEXT    NOT NULL UNIQUE,
    tenant       TEXT    NOT NULL,
    agent_id     TEXT    NOT NULL,
    user_id      TEXT,
    topic        TEXT    NOT NULL,
    topic_raw    TEXT    NOT NULL,
    is_canonical INTEGER NOT NULL,
    content      TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    model        TEXT    NOT NULL,
    vector       BLOB    NOT NULL,
    access_count INTEGER NOT NULL DEFAULT 0,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    deleted_at   INTEGER,
    deleted_by   TEXT,
    reason       TEXT    NOT NULL DEFAULT '',
    audited      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX agent_memories_of_agent ON agent_memories (tenant, agent_id, memory_key);
CREATE INDEX agent_memories_unaudited ON agent_memories (memory_key) WHERE deleted_at IS NOT NULL AND audited = 0;

-- response is JSON; it holds no content.
CREATE TABLE requests (
    tenant      TEXT    NOT NULL,
    request_id  TEXT    NOT NULL,
    operation   TEXT    NOT NULL,
    fingerprint BLOB    NOT NULL,
    response    BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (tenant, request_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_by_age ON requests (created_at);
