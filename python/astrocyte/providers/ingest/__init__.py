"""Drivers of ingest sources: `protocols` has what a driver does; the built-in drivers stand beside it."""
