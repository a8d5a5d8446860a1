-- The share of memories without a canonical topic is counted at each scrape of metrics, without reading the rows.
CREATE INDEX agent_memories_canonical ON agent_memories (is_canonical) WHERE deleted_at IS NULL;
