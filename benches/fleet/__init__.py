"""Servers that share a PostgreSQL database at a size that no one machine has: a simulation fed with measured costs."""
