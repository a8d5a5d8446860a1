-- Calls and tokens of the last day, in days since the epoch, that a use of a language model took in a bank. use is graph
-- or consolidation.
CREATE TABLE model_budgets (
    bank_key INTEGER NOT NULL,
    use      TEXT    NOT NULL,
    day      INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    PRIMARY KEY (bank_key, use)
) STRICT, WITHOUT ROWID;

INSERT INTO model_budgets SELECT bank_key, 'graph', day, calls, tokens FROM graph_budgets;
DROP TABLE graph_budgets;

-- Of the change behind the position: the last of the scopes, in their order, that a language model has read it for, empty
-- before the first; and its calls without a usable answer for the next one.
ALTER TABLE consolidations ADD COLUMN scope_done TEXT NOT NULL DEFAULT '';
ALTER TABLE consolidations ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
