"""Payloads of streams as documents, without the clients that read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# The field of an entry of Redis Streams whose value is the whole message in JSON.
PAYLOAD = "payload"
# Fields that Redis holds as text and a message as another type.
PARSED = ("tags", "metadata")


def parse_value(value: bytes | None, *, text: bool = False) -> dict[str, Any] | None:
    """The message of a Kafka record's value: a JSON object, or with ``text`` its UTF-8 as the content; else None."""
    if value is None:
        return None
    try:
        document = {"content": value.decode()} if text else json.loads(value)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def parse_stream_fields(fields: Mapping[str, str]) -> dict[str, Any] | None:
    """The message of an entry: the JSON in ``payload``, or the fields themselves; None if it is no JSON object."""
    try:
        if PAYLOAD in fields:
            value = json.loads(fields[PAYLOAD])
            return value if isinstance(value, dict) else None
        return {name: json.loads(value) if name in PARSED else value for name, value in fields.items()}
    except (ValueError, RecursionError):
        return None
