"""Entries of a source, and the values that sources write in several forms."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from email.utils import parsedate_to_datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from astrocyte.cli.portability.sources.zips import MOST_DOCUMENT_BYTES, ZipPath
from astrocyte.model import RetainItem

# A file or folder of a source.
SourcePath = Path | ZipPath
# Below the default limit of a memory (homeostasis.retain_max_content_bytes), so that parts of long texts fit.
PART_BYTES = 64_000
# Numbers above these count milliseconds and microseconds since 1970; as seconds they would be after the year 5000.
MILLISECONDS, MICROSECONDS = 1e11, 1e14
# The mark of UTF-32 begins with that of UTF-16. Each is part of the text, and taken off.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Zones that are written as words behind a time.
_UTC = re.compile(r"(?<=\d) ?(?:UTC|GMT)$")


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory of a source, or why there is none. ``place`` says where: ``line 7``, ``inbox.mbox, mail 3``."""

    place: str
    item: RetainItem | None
    problem: str = ""


def encoding_of(head: bytes) -> str:
    """The encoding of a text by its byte order mark; UTF-8 without one."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")


def text_of(path: SourcePath) -> str:
    """The text of a file in UTF-8, or in UTF-16 or UTF-32 with a byte order mark; line ends become line feeds.

    Raises:
        ValueError: It is too large, or of another encoding.
    """
    if path.stat().st_size > MOST_DOCUMENT_BYTES:
        raise ValueError(f"{path} has more than {MOST_DOCUMENT_BYTES:,} bytes; split it, or convert it to JSON Lines")
    data = path.read_bytes()
    try:
        text = data.decode(encoding_of(data))
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not {error.encoding.upper()} text, by its byte {error.start:,}; convert it, for instance with "
            "iconv -f WINDOWS-1252 -t UTF-8"
        ) from None
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def document(path: SourcePath) -> Any:
    """The JSON document of a file.

    Raises:
        ValueError: It is too large, or no JSON.
    """
    try:
        return json.loads(text_of(path))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error.msg} in line {error.lineno}") from None
    except RecursionError:
        raise ValueError(f"{path} is not JSON: too many levels") from None


def files_in(folder: SourcePath, pattern: str) -> list[tuple[str, SourcePath]]:
    """Relative paths and files of a folder, sorted; a pattern without a slash is that of a name at any depth."""
    found: list[tuple[str, SourcePath]]
    if isinstance(folder, ZipPath):
        paths = folder.glob(pattern) if "/" in pattern else folder.rglob(pattern)
        found = [(str(path.relative_to(folder)), path) for path in paths]
    else:
        found = [
            (str(path.relative_to(folder)), path)
            for path in (folder.glob(pattern) if "/" in pattern else folder.rglob(pattern))
        ]
    return sorted(found, key=itemgetter(0))


def each(records: Iterable[Any], noun: str, read: Callable[[int, Any], Iterator[Entry]]) -> Iterator[Entry]:
    """The entries of records, counted from 1; a record of another shape becomes an entry with a problem."""
    for number, record in enumerate(records, start=1):
        try:
            yield from read(number, record)
        except KeyError as error:
            yield Entry(f"{noun} {number}", None, f"lacks {error}")
        except (TypeError, AttributeError, IndexError, ValueError):
            yield Entry(f"{noun} {number}", None, f"has another shape than a {noun} of this format")


def checked(entry: Entry) -> Entry:
    """The entry, or a problem where its text cannot be stored."""
    item = entry.item
    if item is not None and not item.content.isascii():
        try:
            item.content.encode()
        except UnicodeEncodeError:
            return Entry(entry.place, None, "holds half of a surrogate pair, which is no character")
    return entry


def fitting(entry: Entry) -> Iterator[Entry]:
    """The entry; in parts that fit into memories where its text is long."""
    item = entry.item
    if item is None or len(item.content.encode()) <= PART_BYTES:
        yield entry
        return
    for number, part in enumerate(parts_of(item.content), start=1):
        metadata = {**item.metadata, "part": number}
        yield Entry(f"{entry.place}, part {number}", replace(item, content=part, metadata=metadata))


def moment(value: object, zone: tzinfo | None = None) -> datetime:
    """A time: ISO 8601, or seconds, milliseconds or microseconds since 1970.

    Args:
        value: Text or a number.
        zone: The zone of a time that has none; None refuses such a time.

    Raises:
        ValueError: It is no time, or has no zone.
    """
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if number is None and isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            number = None
    try:
        if number is not None and abs(number) >= MILLISECONDS / 1_000:
            scale = 1e6 if abs(number) >= MICROSECONDS else 1e3 if abs(number) >= MILLISECONDS else 1.0
            return datetime.fromtimestamp(number / scale, UTC)
        found = datetime.fromisoformat(_UTC.sub("+00:00", value.strip())) if isinstance(value, str) else None
    except (ValueError, OverflowError, OSError):
        found = _of_mail(value)
    if found is not None and (found.tzinfo is not None or zone is not None):
        return found if found.tzinfo is not None else found.replace(tzinfo=zone)
    if found is not None:
        raise ValueError(f"{value!r:.60} has no time zone; write it like 2025-06-01T09:30:00Z, or pass --time-zone")
    raise ValueError(f"{value!r:.60} is not a time; write it like 2025-06-01T09:30:00Z, or as seconds since 1970")


def _of_mail(value: object) -> datetime | None:
    """A time as mails have it, such as ``Thu, 14 Mar 2024 21:05:00 +0100``, or None."""
    try:
        if not isinstance(value, str):
            return None
        found = parsedate_to_datetime(value)
    except (ValueError, TypeError, OverflowError):
        return None
    # RFC 5322, section 3.3: this zone means a time in UTC, written somewhere else.
    return found.replace(tzinfo=UTC) if found.tzinfo is None and "-0000" in value else found


def parts_of(text: str, most_bytes: int = PART_BYTES) -> Iterator[str]:
    """A long text in parts, cut at empty lines, else at line ends, else anywhere."""
    held = ""
    for piece in _pieces(text, most_bytes):
        if held and len((held + piece).encode()) > most_bytes:
            yield held.strip("\n")
            held = ""
        held += piece
    if held.strip():
        yield held.strip("\n")


def _pieces(text: str, most_bytes: int) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        if len(paragraph.encode()) <= most_bytes:
            yield f"{paragraph}\n\n"
            continue
        # A character has at most four bytes.
        step = most_bytes // 4
        for line in paragraph.splitlines(keepends=True):
            yield from (line[start : start + step] for start in range(0, len(line), step))
        yield "\n\n"
