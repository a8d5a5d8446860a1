-- Grants made by call, and which of them hold. A row is closed when it is revoked, or replaced by one for the same names,
-- and kept: who granted what, and when. bank_id and principal may be patterns; permissions are words, with blanks between.
CREATE TABLE grants (
    grant_key   INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      TEXT    NOT NULL,
    bank_id     TEXT    NOT NULL,
    principal   TEXT    NOT NULL,
    permissions TEXT    NOT NULL,
    granted_by  TEXT    NOT NULL,
    granted_at  INTEGER NOT NULL,
    revoked_by  TEXT,
    revoked_at  INTEGER
) STRICT;

CREATE UNIQUE INDEX grants_holding ON grants (tenant, bank_id, principal) WHERE revoked_at IS NULL;
CREATE INDEX grants_listed ON grants (tenant, grant_key);

-- Counts the changes of a tenant's grants: what was decided in an earlier epoch is decided anew.
CREATE TABLE access_epochs (
    tenant TEXT    PRIMARY KEY,
    epoch  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
