"""Degraded modes and the durable retry queue."""
