-- What an erasure needs to be finished, with its receipt, by another process: the items that waited to be stored and
-- went at once (ids as JSON), the rows deleted so far by table (JSON), the position after which memories are not its
-- matter, the request that it answers, and a digest of its selector. A note stays until its erasure is complete.
ALTER TABLE erasures ADD COLUMN queued TEXT NOT NULL DEFAULT '[]';
ALTER TABLE erasures ADD COLUMN counts TEXT NOT NULL DEFAULT '{}';
ALTER TABLE erasures ADD COLUMN position INTEGER NOT NULL DEFAULT 9223372036854775807;
ALTER TABLE erasures ADD COLUMN request_id TEXT;
ALTER TABLE erasures ADD COLUMN operation TEXT;
ALTER TABLE erasures ADD COLUMN fingerprint BLOB;
ALTER TABLE erasures ADD COLUMN selector BLOB;
