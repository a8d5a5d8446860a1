"""Validation of requests, page tokens and idempotency."""
