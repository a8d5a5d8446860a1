"""Storage of memories: the protocols, and the stores of SQLite and PostgreSQL."""
