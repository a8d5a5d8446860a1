"""Ingest: memories from sources that send or are read, such as webhooks, through the same gate as every retain."""

from astrocyte.ingest.payloads import parse_ingest_kafka_value, parse_ingest_stream_fields
from astrocyte.ingest.registry import SourceRegistry
from astrocyte.ingest.target import IngestTarget, retain_callable_for_astrocyte
from astrocyte.ingest.webhooks import WebhookAnswer, handle_webhook_ingest

__all__ = [
    "IngestTarget",
    "SourceRegistry",
    "WebhookAnswer",
    "handle_webhook_ingest",
    "parse_ingest_kafka_value",
    "parse_ingest_stream_fields",
    "retain_callable_for_astrocyte",
]
