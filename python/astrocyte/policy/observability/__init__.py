"""Metrics, spans and hooks around the backend."""
