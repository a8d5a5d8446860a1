"""Recall over several banks, and beside engines."""
