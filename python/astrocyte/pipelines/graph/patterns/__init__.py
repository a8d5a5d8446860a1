"""Patterns of words between two names that state a relation."""
