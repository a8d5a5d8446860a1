"""Where memories are kept: the protocol, and the store over SQLite."""
