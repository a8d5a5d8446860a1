"""Ingest: memories from sources that send or are read, such as webhooks, through the same gate as every retain."""

from astrocyte.ingest.registry import SourceRegistry
from astrocyte.ingest.webhooks import WebhookAnswer, handle_webhook_ingest

__all__ = ["SourceRegistry", "WebhookAnswer", "handle_webhook_ingest"]
