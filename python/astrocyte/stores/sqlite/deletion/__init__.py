"""Soft delete, tombstones, erasure with a receipt, and removal in batches."""
