"""Connections, the writer thread, transactions, migrations and the data directory."""
