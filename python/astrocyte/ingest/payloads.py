"""Payloads of streams as messages, for programs that read a stream by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrocyte.errors import ValidationError
from astrocyte.providers.ingest.payloads import parse_stream_fields, parse_value


def parse_ingest_kafka_value(value: bytes | str | None, *, text: bool = False) -> dict[str, Any]:
    """The message of a Kafka record: its value, a JSON object, or with ``text`` the content itself.

    Raises:
        ValidationError: It is no such value, or there is none, as in a tombstone of a compacted topic.
    """
    document = parse_value(value.encode() if isinstance(value, str) else value, text=text)
    if document is None:
        given = "no value" if value is None else f"{len(value):,} bytes or characters of something else"
        raise ValidationError(f"expected {'UTF-8' if text else 'a JSON object'}, got {given}", field="value")
    return document


def parse_ingest_stream_fields(fields: Mapping[str | bytes, str | bytes]) -> dict[str, Any]:
    """The message of an entry of Redis Streams: the JSON object in ``payload``, or the fields themselves.

    Of the fields, ``tags`` and ``metadata`` are JSON. Names and values may be bytes of UTF-8.

    Raises:
        ValidationError: They are no message.
    """
    try:
        document = parse_stream_fields({_text(name): _text(value) for name, value in fields.items()})
    except UnicodeDecodeError:
        document = None
    if document is None:
        raise ValidationError(
            "expected a JSON object in payload, or fields in UTF-8 with JSON in tags and metadata", field="fields"
        )
    return document


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
