-- Who made a bank: under the policy owner_only it may do everything there. 'local' names nobody.
ALTER TABLE banks ADD COLUMN created_by TEXT NOT NULL DEFAULT 'local';

-- Kept answers about a bank are its row; theirs gets the new column too.
UPDATE requests SET response = CAST(json_insert(CAST(response AS TEXT), '$[#]', 'local') AS BLOB)
    WHERE outlives_bank = 1 AND bank_key IS NOT NULL;
