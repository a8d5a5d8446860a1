-- An answer that repeats what a bank is called names the bank: its texts go when the bank goes.

ALTER TABLE requests ADD COLUMN bank_key INTEGER;

CREATE INDEX requests_on_banks ON requests (bank_key) WHERE bank_key IS NOT NULL;
