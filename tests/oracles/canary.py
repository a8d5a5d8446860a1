"""A secret in every field of every request, and all places where it must not come out again."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from prometheus_client import generate_latest

from astrocyte import HookEvent
from astrocyte.app import App
from harness.spans import Spans

# With a space it cannot be a name of a bank, which spans and logs may say.
CANARY = "canary4471 sings"
WORD = b"canary4471"
# How deep messages are looked into.
DEPTH = 3
Field = FieldDescriptor


def with_canary(valid: Message, secret: str = CANARY) -> Iterator[tuple[str, Message]]:
    """Copies of a request, each with the secret in one field; with the field's path."""
    for path in _paths(valid, DEPTH):
        message = type(valid)()
        message.CopyFrom(valid)
        _put(message, path, secret)
        yield ".".join(path), message


def _paths(message: Any, depth: int) -> Iterator[tuple[str, ...]]:
    for field in message.DESCRIPTOR.fields:
        if field.message_type is None:
            if field.type in {Field.TYPE_STRING, Field.TYPE_BYTES}:
                yield (field.name,)
        elif field.message_type.GetOptions().map_entry:
            yield field.name, "key"
            if field.message_type.fields_by_name["value"].message_type is not None:
                yield field.name, "value"
        elif depth:
            below = field.message_type._concrete_class()
            yield from ((field.name, *path) for path in _paths(below, depth - 1))


def _put(message: Any, path: tuple[str, ...], secret: str) -> None:
    name, *below = path
    field = message.DESCRIPTOR.fields_by_name[name]
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, text = (secret, "v") if below == ["key"] else ("k", secret)
        values = getattr(message, name)
        if field.message_type.fields_by_name["value"].message_type is None:
            values[key] = 1
        else:
            values[key].string_value = text
    elif field.message_type is not None:
        part = getattr(message, name)
        if field.is_repeated:
            part = part[0] if part else part.add()
        else:
            part.SetInParent()
        _put(part, tuple(below), secret)
    else:
        value: str | bytes = secret if field.type == Field.TYPE_STRING else secret.encode()
        if field.is_repeated:
            getattr(message, name).append(value)
        else:
            setattr(message, name, value)


class Sinks:
    """Everything that operators see.

    Args:
        app: One with metrics and spans.
        lines: What the server's own log wrote.
        records: What libraries logged.
        heard: What hooks were told.
    """

    def __init__(
        self,
        app: App,
        lines: Sequence[Mapping[str, Any]],
        records: Sequence[logging.LogRecord] = (),
        heard: Sequence[HookEvent] = (),
    ) -> None:
        self._app = app
        self._spans = Spans(app)
        self._lines = lines
        self._records = records
        self._heard = heard

    def leaks(self) -> list[str]:
        """Findings of the secret, by place."""
        metrics = self._app.telemetry.metrics
        assert metrics is not None
        found = [f"log: {line}" for line in self._lines if _tells(repr(line))]
        found += [f"library: {record.name}" for record in self._records if _tells(record.getMessage())]
        found += [f"hook: {event}" for event in self._heard if _tells(repr(event))]
        found += [f"span: {span.to_json()}" for span in self._spans.ended if _tells(span.to_json())]
        found += [f"metric: {line!r}" for line in generate_latest(metrics.registry).splitlines() if WORD in line]
        return found

    @property
    def spans(self) -> int:
        """The number of spans."""
        return len(self._spans.ended)


def answer_tells(answer: Any) -> bool:
    """True if an answer of a stream is a failure that has the secret in it."""
    return any(field.name == "error" and WORD in value.SerializeToString() for field, value in answer.ListFields())


def error_tells(error: grpc.aio.AioRpcError) -> bool:
    """True if a failure has the secret in its message or details."""
    trailers = b"".join(value if isinstance(value, bytes) else value.encode() for _, value in error.trailing_metadata())
    return WORD in (error.details() or "").encode() + trailers


def _tells(text: str) -> bool:
    return WORD.decode() in text
