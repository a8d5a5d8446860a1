"""The entity graph: extraction, resolution, derivation and traversal."""
