"""One retain: drafts, duplicates, curation and the commit."""
