"""Connections to PostgreSQL behind the interface of the SQLite engine, its dialect, migrations and followers."""
