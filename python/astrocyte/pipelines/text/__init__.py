"""Chunking, normalisation, snippets and detail levels."""
