-- API keys: what recognises one, and whom it stands for. Of the key itself only a SHA-256 is kept; it has 256 random bits,
-- so that nobody finds it by trying. A row is never removed: who made a key, and when it ended, stays known.
CREATE TABLE api_keys (
    key_id       TEXT    PRIMARY KEY,
    tenant       TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    principal    TEXT    NOT NULL,
    digest       BLOB    NOT NULL,
    created_by   TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_by   TEXT,
    revoked_at   INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX api_keys_of_tenant ON api_keys (tenant, created_at, key_id);
