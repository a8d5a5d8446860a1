-- Which contents name other banks that they are relevant to. The index holds row keys alone, so that nothing that was
-- written is anywhere but in its row.
CREATE INDEX contents_referring ON contents (row_key)
    WHERE json_extract(metadata, '$.also_relevant_to') IS NOT NULL;
