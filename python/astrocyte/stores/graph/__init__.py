"""Protocols and records of entity graphs."""
