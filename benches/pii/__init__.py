"""Recall and precision of personal data and secrets: generated documents with known findings, and hard ones without."""
