"""Extraction from contents: metadata and tags by profile, and the entities that they name."""
