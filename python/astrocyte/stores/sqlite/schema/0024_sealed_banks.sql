-- Banks whose content is encrypted by a key of their own, and the id of the key, which is kept elsewhere. Empty in SQLite.
CREATE TABLE sealed_banks (
    bank_key INTEGER PRIMARY KEY REFERENCES banks (bank_key),
    key_id   TEXT    NOT NULL
) STRICT;
