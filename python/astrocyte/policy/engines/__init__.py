"""Engines beside the built-in pipeline: registry, recall, writes, reflect and the outbox relay."""
