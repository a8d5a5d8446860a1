-- Poll sources: where each goes on, and the items that it knows. place says what the cursor is of.
CREATE TABLE poll_cursors (
    source_id TEXT NOT NULL PRIMARY KEY,
    place     TEXT NOT NULL,
    cursor    TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- item_key and version are digests. Without memory_id, no memory is the item's own: it was refused, or a duplicate.
CREATE TABLE poll_items (
    source_id TEXT NOT NULL,
    item_key  BLOB NOT NULL,
    version   BLOB NOT NULL,
    bank_id   TEXT NOT NULL,
    memory_id TEXT,
    PRIMARY KEY (source_id, item_key)
) STRICT, WITHOUT ROWID;
