"""Messages of sources as memories: JSON with the fields of a retain, or of another form by a mapping."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from astrocyte.config.extraction import PATH_START, value_at
from astrocyte.config.sources.common import PRINCIPAL, MappingSettings, SourceSettings
from astrocyte.errors import ValidationError
from astrocyte.model import DEFAULT_PRINCIPAL, Caller, Metadata, MetadataValue, RetainItem

# Fields of a message without a mapping. `text` is another name of `content`.
TEXTS = ("principal", "content_type", "session_id", "speaker", "source", "fact_type")
FIELDS = frozenset({"content", "text", "tags", "metadata", "occurred_at", *TEXTS})
MOST_PRINCIPAL_CHARS = 256


@dataclass(frozen=True, slots=True)
class IngestMessage:
    """A message as it is to be retained: by whom, where, and what."""

    caller: Caller
    bank_id: str
    item: RetainItem


def parse_json(body: bytes) -> dict[str, Any]:
    """The object of a body.

    Raises:
        ValidationError: It is no JSON object.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise ValidationError(
            f"expected a JSON object, got {len(body):,} bytes that are not JSON", field="body"
        ) from None
    if not isinstance(value, dict):
        raise ValidationError(f"expected a JSON object, got {_kind(value)}", field="body")
    return value


def message_of(source: SourceSettings, document: Mapping[str, Any]) -> IngestMessage:
    """The memory of a message.

    Raises:
        ValidationError: A field is missing or has another type, or no bank follows from the message.
    """
    fields = _canonical(document) if source.mapping is None else _mapped(source.mapping, document)
    texts = {name: _text(fields, name) for name in TEXTS}
    principal = texts["principal"]
    metadata: dict[str, MetadataValue] = {**source.metadata, **fields["metadata"]}
    if principal is not None:
        if len(principal) > MOST_PRINCIPAL_CHARS:
            raise ValidationError(
                f"has {len(principal)} characters; expected at most {MOST_PRINCIPAL_CHARS}", field="principal"
            )
        metadata.setdefault("principal", principal)
    item = RetainItem(
        content=_content(fields),
        content_type=texts["content_type"] or source.content_type,
        metadata=metadata,
        tags=tuple(dict.fromkeys((*source.tags, *fields["tags"]))),
        occurred_at=_time(fields.get("occurred_at")),
        extraction_profile=source.extraction_profile,
        session_id=texts["session_id"],
        speaker=texts["speaker"],
        source=texts["source"],
        fact_type=texts["fact_type"],
    )
    return IngestMessage(caller_of(source), _bank(source, principal), item)


def caller_of(source: SourceSettings) -> Caller:
    """The caller as whom a source retains."""
    return Caller(source.tenant, source.principal or DEFAULT_PRINCIPAL)


def _canonical(document: Mapping[str, Any]) -> dict[str, Any]:
    unknown = sorted(document.keys() - FIELDS)
    if unknown:
        raise ValidationError(
            f"is unknown; expected only {', '.join(sorted(FIELDS))}, or a mapping of the source", field=unknown[0][:64]
        )
    metadata = document.get("metadata")
    tags = document.get("tags")
    return {
        **document,
        "metadata": {} if metadata is None else _metadata(metadata),
        "tags": () if tags is None else _tags(tags, "tags"),
    }


def _mapped(mapping: MappingSettings, document: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in ("content", "occurred_at", *TEXTS):
        path = getattr(mapping, name)
        there, value = (False, None) if path is None else value_at(document, path)
        if there:
            fields[name] = value
    tags: list[str] = []
    for tag in mapping.tags:
        there, value = value_at(document, tag) if tag.startswith(PATH_START) else (True, tag)
        if there and value is not None:
            tags += _tags([value] if isinstance(value, str) else value, f"tags ({tag})")
    metadata: dict[str, object] = {}
    for key, path in mapping.metadata.items():
        is_path = isinstance(path, str) and path.startswith(PATH_START)
        there, value = value_at(document, str(path)) if is_path else (True, path)
        if there and value is not None:
            metadata[key] = value
    return {**fields, "tags": tags, "metadata": _metadata(metadata)}


def _content(fields: Mapping[str, Any]) -> str:
    named = [name for name in ("content", "text") if fields.get(name) is not None]
    if len(named) != 1:
        problem = "is missing" if not named else "is there twice, as content and as text; send one"
        raise ValidationError(problem, field="content")
    content = fields[named[0]]
    if not isinstance(content, str):
        raise ValidationError(f"expected a text, got {_kind(content)}", field=named[0])
    if not content.strip():
        raise ValidationError("is empty; expected a text", field=named[0])
    return content


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise ValidationError(f"expected a text, got {_kind(value)}", field=name)
    return value


def _tags(values: object, field: str) -> list[str]:
    if not isinstance(values, Sequence) or isinstance(values, str) or not all(isinstance(one, str) for one in values):
        raise ValidationError("expected a list of texts", field=field)
    return [str(one) for one in values]


def _metadata(values: object) -> Metadata:
    if not isinstance(values, Mapping):
        raise ValidationError(f"expected an object, got {_kind(values)}", field="metadata")
    for key, value in values.items():
        if isinstance(value, (Mapping, list)):
            raise ValidationError(
                f"expected a text, number, true, false or null, got {_kind(value)}", field=f"metadata.{key[:64]}"
            )
    return dict(values)


def _time(value: object) -> datetime | None:
    if value is None:
        return None
    expected = "expected ISO 8601 with a time zone, or seconds since 1970"
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            if time.tzinfo is not None:
                return time
            raise ValidationError(f"has no time zone; {expected}", field="occurred_at")
    except (ValueError, OverflowError, OSError):
        raise ValidationError(f"is no time; {expected}", field="occurred_at") from None
    raise ValidationError(f"{expected}, got {_kind(value)}", field="occurred_at")


def _bank(source: SourceSettings, principal: str | None) -> str:
    if source.target_bank is not None:
        return source.target_bank
    name = principal or source.principal
    if name is None:
        raise ValidationError("is missing; the bank of the memory follows from it", field="principal")
    return (source.target_bank_template or "").replace(PRINCIPAL, name)


def _kind(value: object) -> str:
    """The type of a value of JSON, as messages name it."""
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
