-- Memories that wait for a provider, in the order in which they came. group_key is the first of those that came
-- together; item is JSON, and goes with the row.
CREATE TABLE queued_retains (
    queue_key   INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_key    INTEGER NOT NULL REFERENCES banks (bank_key),
    group_key   INTEGER NOT NULL,
    memory_id   TEXT    NOT NULL,
    principal   TEXT    NOT NULL,
    queued_at   INTEGER NOT NULL,
    occurred_at INTEGER,
    item        TEXT    NOT NULL
) STRICT;

CREATE INDEX queued_by_bank ON queued_retains (bank_key, queue_key);
