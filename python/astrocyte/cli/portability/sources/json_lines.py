"""Lines of JSON Lines files, and the objects of a JSON array, as items."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Any

from astrocyte.cli.portability.sources.entries import Entry, SourcePath, encoding_of, moment
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
    "from": "speaker", "user": "speaker", "author": "speaker", "sender": "speaker",
    "session": "session_id", "thread": "session_id", "conversation": "session_id", "channel": "session_id",
    "conversation_id": "session_id", "thread_id": "session_id",
    "time": "occurred_at", "date": "occurred_at", "ts": "occurred_at", "timestamp": "occurred_at",
    "created_at": "occurred_at", "datetime": "occurred_at",
}  # fmt: skip
_TIMES = ("occurred_at", "valid_from", "valid_until")
_OURS = frozenset({"content", "tags", "metadata", *_COPIED, *_TIMES})
# Texts of a memory, by which an object in an array is known.
TEXT_KEYS = frozenset({"content", *(key for key, name in _SYNONYMS.items() if name == "content")})


def json_lines(path: SourcePath, zone: tzinfo | None) -> Iterator[Entry]:
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
    return item_of(values, zone)


def json_array(data: Any, zone: tzinfo | None) -> Iterator[Entry]:
    """The objects of an array, each with the keys of a line."""
    for number, values in enumerate(data, start=1):
        try:
            yield Entry(f"message {number}", item_of(values, zone))
        except ValueError as error:
            yield Entry(f"message {number}", None, str(error))


def item_of(values: object, zone: tzinfo | None = None) -> RetainItem:
    """The item of a JSON object.

    Raises:
        ValueError: The object is invalid; the message says why.
    """
    if not isinstance(values, dict):
        raise ValueError(f'expected an object like {{"content": "..."}}, got {type(values).__name__}')  # noqa: TRY004 - one kind of error for a caller
    given, others = _by_name({key: value for key, value in values.items() if value is not None})
    return RetainItem(
        content=_content(given.get("content")),
        metadata=_metadata(given.get("metadata", {}), others),
        tags=_tags(given),
        **_copied(given),
        **_times(given, zone),
    )


def _content(content: object) -> str:
    """A text, or the texts of a list of parts, as language models have it."""
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
        content = "\n".join(text for text in texts if isinstance(text, str)) or content
    if not isinstance(content, str):
        raise ValueError(f"content: expected text, got {'nothing' if content is None else repr(content)[:80]}")  # noqa: TRY004 - as in item_of
    return content


def _by_name(given: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """The values by our names, and those of other keys."""
    found: dict[str, object] = {}
    others: dict[str, object] = {}
    origin: dict[str, str] = {}
    for key, value in given.items():
        name = _SYNONYMS.get(key, key)
        if name not in _OURS:
            others[key] = value
            continue
        if name in found:
            raise ValueError(f"expected at most one of {origin[name]} and {key}: both are {name}")
        found[name], origin[name] = value, key
    # A role says less than a name. Without a role, a name need not be that of a speaker.
    if "role" in others and "speaker" not in found:
        found["speaker"] = others.pop("name" if "name" in others else "role")
    return found, others


def _metadata(metadata: object, others: Mapping[str, object]) -> Metadata:
    """The metadata, with the values of other keys."""
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata: expected an object, got {metadata!r}")  # noqa: TRY004 - as in item_of
    for prefix, values in (("metadata.", metadata), ("", others)):
        for key, value in values.items():
            if isinstance(value, (list, dict)):
                raise ValueError(f"{prefix}{key}: expected text, a number, true, false or null, got {value!r:.80}")  # noqa: TRY004 - as in item_of
            if not prefix and key in metadata:
                raise ValueError(f"{key} is given twice: as a key and in metadata")
    return {**metadata, **others}


def _tags(given: Mapping[str, object]) -> tuple[str, ...]:
    tags = given.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ValueError(f"tags: expected a list of texts, got {tags!r}")
    return tuple(tags)


def _copied(given: Mapping[str, object]) -> dict[str, Any]:
    found = {key: given[key] for key in _COPIED if key in given}
    for key, value in found.items():
        if not isinstance(value, _COPIED[key]):
            raise ValueError(f"{key}: expected {'true or false' if _COPIED[key] is bool else 'text'}, got {value!r}")  # noqa: TRY004 - as in item_of
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
