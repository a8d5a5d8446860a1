-- Names this database among others, for stores that hold copies of several.
CREATE TABLE installation (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO installation VALUES (lower(hex(randomblob(16))));
