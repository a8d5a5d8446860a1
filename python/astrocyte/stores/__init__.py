"""Storage of memories: the protocols, and the SQLite store."""
