"""Protocols and records of what is derived from memories: items, their consolidation, pages and diagnosis."""
