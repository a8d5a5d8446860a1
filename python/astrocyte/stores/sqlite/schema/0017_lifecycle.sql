-- The lifecycle of memories: archives, and when memories were recalled last.

-- An archived memory has one version more, a copy of its last one, which begins and ends in the far future: neither a
-- recall of now nor one of the past meets it. archive_reason is unused, expired or merged; merged_into is the memory
-- that a merged one is part of.
ALTER TABLE memories ADD COLUMN archived_at INTEGER;
ALTER TABLE memories ADD COLUMN archive_reason TEXT;
ALTER TABLE memories ADD COLUMN merged_into TEXT;

CREATE INDEX memories_archived ON memories (bank_key, row_key) WHERE archived_at IS NOT NULL;

-- When versions were among the hits last, of banks that archive unused memories.
CREATE TABLE recalled (
    row_key     INTEGER PRIMARY KEY,
    bank_key    INTEGER NOT NULL,
    recalled_at INTEGER NOT NULL
) STRICT;

CREATE INDEX recalled_of_bank ON recalled (bank_key);
