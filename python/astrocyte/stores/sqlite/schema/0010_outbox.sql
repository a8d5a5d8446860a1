-- Memories of which an engine does not have what it should, in the order of their latest changes. There is no content
-- here: what is sent is read when it goes. action: copy (the engine has none), replace (it may have an older one), forget,
-- erase. position is that of the change; hops counts the servers that the call behind it has passed, this one included;
-- principal is for whom it was made, empty for nobody.
CREATE TABLE waiting_copies (
    bank_key      INTEGER NOT NULL REFERENCES banks (bank_key),
    engine        TEXT    NOT NULL,
    memory_id     TEXT    NOT NULL,
    position      INTEGER NOT NULL,
    action        TEXT    NOT NULL,
    principal     TEXT    NOT NULL,
    hops          INTEGER NOT NULL,
    waiting_since INTEGER NOT NULL,
    PRIMARY KEY (bank_key, engine, memory_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX waiting_copies_in_order ON waiting_copies (engine, bank_key, position, memory_id);

-- How many of them wait for each engine: a commit must know, and counting them takes as long as they are many.
CREATE TABLE outboxes (
    engine  TEXT    PRIMARY KEY,
    waiting INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER waiting_copies_come AFTER INSERT ON waiting_copies BEGIN
    INSERT INTO outboxes VALUES (new.engine, 1) ON CONFLICT (engine) DO UPDATE SET waiting = waiting + 1;
END;

CREATE TRIGGER waiting_copies_go AFTER DELETE ON waiting_copies BEGIN
    UPDATE outboxes SET waiting = waiting - 1 WHERE engine = old.engine;
END;

-- What waits to be stored is copied when it is: on behalf of whom the call was made, and how many servers it had passed.
ALTER TABLE queued_retains ADD COLUMN behalf TEXT NOT NULL DEFAULT '';
ALTER TABLE queued_retains ADD COLUMN hops INTEGER NOT NULL DEFAULT 0;
