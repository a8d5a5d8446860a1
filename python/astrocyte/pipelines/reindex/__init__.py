"""Moving a bank to another embedding model."""
