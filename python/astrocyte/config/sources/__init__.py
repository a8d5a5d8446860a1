"""Settings of ingest sources: `kinds` has a class for each type, joined in `IngestSource`."""
