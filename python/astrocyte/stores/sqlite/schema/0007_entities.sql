-- What memories name: people, things, places. JSON, a list of lists: name, type, and the name as it is looked for.
ALTER TABLE contents ADD COLUMN entities TEXT NOT NULL DEFAULT '[]';

-- Versions by what they name.
CREATE TABLE entities (
    bank_key INTEGER NOT NULL,
    folded   TEXT    NOT NULL,
    row_key  INTEGER NOT NULL,
    PRIMARY KEY (bank_key, folded, row_key)
) STRICT, WITHOUT ROWID;
