"""The entity graph in SQLite."""
