"""Barriers for personal data and secrets, on the way in and out."""
