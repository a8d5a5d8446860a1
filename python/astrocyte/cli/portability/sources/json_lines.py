"""Lines of JSON Lines files as items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import Any

from astrocyte.cli.portability.sources.entries import Entry, encoding_of, moment
from astrocyte.model import Metadata, RetainItem

# Keys that are copied unchanged, with their types.
_COPIED = {
    "content_type": str,
    "source": str,
    "session_id": str,
    "speaker": str,
    "fact_type": str,
    "extraction_profile": str,
    "pii_detected": bool,
}
# What other programs call them.
_SYNONYMS = {
    "text": "content", "message": "content", "body": "content",
    "from": "speaker", "user": "speaker", "author": "speaker", "role": "speaker", "sender": "speaker",
    "session": "session_id", "thread": "session_id", "conversation": "session_id", "channel": "session_id",
    "conversation_id": "session_id", "thread_id": "session_id",
    "time": "occurred_at", "date": "occurred_at", "ts": "occurred_at", "timestamp": "occurred_at",
    "created_at": "occurred_at", "datetime": "occurred_at",
}  # fmt: skip
_TIMES = ("occurred_at", "valid_from", "valid_until")
KNOWN_KEYS = frozenset({"content", "id", "tags", "metadata", *_COPIED, *_TIMES, *_SYNONYMS})


def json_lines(path: Path, zone: tzinfo | None) -> Iterator[Entry]:
    """The non-blank lines of a file."""
    with path.open("rb") as stream:
        mark = encoding_of(stream.read(4))
        if mark != "utf-8":
            raise ValueError(
                f"{path} is {mark.upper()} text; convert it, for instance with iconv -f {mark.upper()} -t UTF-8"
            )
        stream.seek(0)
        for number, line in enumerate(stream, start=1):
            if line.strip():
                try:
                    yield Entry(f"line {number}", read_line(line, zone))
                except ValueError as error:
                    yield Entry(f"line {number}", None, str(error))


def read_line(line: bytes, zone: tzinfo | None = None) -> RetainItem:
    """Parse one line of the file.

    Raises:
        ValueError: The line is invalid; the message says why.
    """
    try:
        # Some editors write a byte order mark; json would read it as another encoding.
        values = json.loads(line.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    except RecursionError:
        raise ValueError("not JSON: too many levels") from None
    if not isinstance(values, dict):
        raise ValueError(f'expected an object like {{"content": "..."}}, got {type(values).__name__}')  # noqa: TRY004 - one kind of error for a caller
    unknown = sorted(values.keys() - KNOWN_KEYS)
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; expected one of {', '.join(sorted(KNOWN_KEYS))}")
    given = _by_name({key: value for key, value in values.items() if value is not None})
    content = given.get("content")
    if not isinstance(content, str):
        raise ValueError(f"content: expected text, got {'nothing' if content is None else repr(content)[:80]}")  # noqa: TRY004 - as above
    return RetainItem(
        content=content,
        metadata=_metadata(given),
        tags=_tags(given),
        **_copied(given),
        **_times(given, zone),
    )


def _by_name(given: Mapping[str, object]) -> dict[str, object]:
    """The values by our names."""
    found: dict[str, object] = {}
    origin: dict[str, str] = {}
    for key, value in given.items():
        name = _SYNONYMS.get(key, key)
        if name in found:
            raise ValueError(f"expected at most one of {origin[name]} and {key}: both are {name}")
        found[name], origin[name] = value, key
    return found


def _metadata(given: Mapping[str, object]) -> Metadata:
    metadata = given.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata: expected an object, got {metadata!r}")  # noqa: TRY004 - as in read_line
    for key, value in metadata.items():
        if isinstance(value, (list, dict)):
            raise ValueError(f"metadata.{key}: expected text, a number, true, false or null, got {value!r}")  # noqa: TRY004 - as in read_line
    if "id" not in given:
        return metadata
    if "id" in metadata:
        raise ValueError("id is given twice: as a key and in metadata")
    if not isinstance(given["id"], (str, int)):
        raise ValueError(f"id: expected text or a whole number, got {given['id']!r}")  # noqa: TRY004 - as in read_line
    return {**metadata, "id": given["id"]}


def _tags(given: Mapping[str, object]) -> tuple[str, ...]:
    tags = given.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError(f"tags: expected a list of texts, got {tags!r}")
    return tuple(tags)


def _copied(given: Mapping[str, object]) -> dict[str, Any]:
    found = {key: given[key] for key in _COPIED if key in given}
    for key, value in found.items():
        if not isinstance(value, _COPIED[key]):
            raise ValueError(f"{key}: expected {'true or false' if _COPIED[key] is bool else 'text'}, got {value!r}")  # noqa: TRY004 - as in read_line
    return found


def _times(given: Mapping[str, object], zone: tzinfo | None) -> dict[str, Any]:
    times: dict[str, Any] = {}
    for key in _TIMES:
        if key in given:
            try:
                times[key] = moment(given[key], zone)
            except ValueError as error:
                raise ValueError(f"{key}: {error}") from None
    return times
