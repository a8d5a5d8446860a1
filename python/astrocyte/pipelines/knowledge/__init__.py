"""Observations, mental models and directives: documents and their changes, trends, search, and consolidation."""
