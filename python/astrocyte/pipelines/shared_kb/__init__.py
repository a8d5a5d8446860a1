"""Shared knowledge: rows of documents as memories, and the index of a bank's documents."""
