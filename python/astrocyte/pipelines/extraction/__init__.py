"""Extraction from content: metadata and tags by profile, and entities."""
