"""Checks of single values. Each takes the value's path in the request and raises `ValidationError` with it."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from enum import StrEnum
from typing import TypeVar

from astrocyte.config import LimitSettings
from astrocyte.config.loading.time_zone import zone_of
from astrocyte.errors import ValidationError
from astrocyte.model import (
    ALSO_RELEVANT_TO,
    DEFAULT_PRINCIPAL,
    MEDIA_TYPES,
    MOST_NAMED,
    SEPARATOR,
    ContentPart,
    Embedding,
    Metadata,
    PartKind,
    TimeRange,
)

# ASCII only, and NFKC leaves ASCII as it is: no two ids that look alike after normalisation can both pass.
BANK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}")
# C0 and C1 controls and lone surrogates, which no label needs and which break terminals, logs and UTF-8.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
# Of a tenant or a principal: a certificate's longest name, or a subject with its issuer.
MOST_NAME_CHARS = 256
# Below this a vector's square sum vanishes in single precision, so it has no direction to compare.
SMALLEST_NORM = 1e-15
# How much of a wrong id a message repeats.
SHOWN_CHARS = 64
# SQLite and the wire hold signed 64-bit integers.
E = TypeVar("E", bound=StrEnum)
INT64 = range(-(2**63), 2**63)


def bank_id(value: object, path: str = "bank_id") -> None:
    """A bank id: ASCII letter or digit, then up to 254 more of these and ``._:@-``."""
    if not isinstance(value, str) or not BANK_ID.fullmatch(value):
        shown = ascii(value)[:SHOWN_CHARS]
        raise ValidationError(
            f"expected 1 to 255 of A-Z a-z 0-9 . _ : @ - with a letter or digit first, got {shown}", field=path
        )


def bank_ids(values: Collection[object], path: str) -> None:
    """Bank ids, each once."""
    if _are_bank_ids(values) and len(set(values)) == len(values):
        return
    # One of them is wrong, and is named by its place.
    seen: set[object] = set()
    for index, value in enumerate(values):
        bank_id(value, f"{path}[{index}]")
        if value in seen:
            raise ValidationError(f"names {value!r} a second time", field=f"{path}[{index}]")
        seen.add(value)


def _are_bank_ids(values: Collection[object]) -> bool:
    try:
        return all(map(BANK_ID.fullmatch, values))  # type: ignore[arg-type]  # what is no text is caught
    except TypeError:
        return False


def content(value: object, path: str, most_bytes: int) -> None:
    """Text worth keeping: not blank, encodable, without NUL, within the limit."""
    checked = text(value, path, most_bytes)
    if not checked or checked.isspace():
        raise ValidationError("is empty; send text to store", field=path)


def text(value: object, path: str, most_bytes: int) -> str:
    """Encodable text without NUL of at most ``most_bytes`` in UTF-8."""
    if not isinstance(value, str):
        raise ValidationError(f"expected text, got {type(value).__name__}", field=path)
    # Counting characters first keeps a huge string from being encoded only to be refused.
    size = len(value)
    if size <= most_bytes and not value.isascii():
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise ValidationError(
                f"has a lone surrogate at character {error.start}; send valid Unicode", field=path
            ) from None
    if size > most_bytes:
        raise ValidationError(
            f"has {size:,} bytes or more, the limit is {most_bytes:,}", field=path, metadata={"limit": str(most_bytes)}
        )
    if "\x00" in value:
        raise ValidationError(f"has a NUL at character {value.index(chr(0))}; send text, not binary", field=path)
    return value


def label(value: object, path: str, most_chars: int) -> str:
    """A short printable string, not empty."""
    if not isinstance(value, str):
        raise ValidationError(f"expected text, got {type(value).__name__}", field=path)
    if not value:
        raise ValidationError("is empty", field=path)
    if len(value) > most_chars:
        raise ValidationError(
            f"has {len(value):,} characters, the limit is {most_chars:,}",
            field=path,
            metadata={"limit": str(most_chars)},
        )
    bad = UNPRINTABLE.search(value)
    if bad:
        raise ValidationError(f"has an unprintable character at position {bad.start()}", field=path)
    return value


def name(value: object, path: str) -> None:
    """The name of a tenant or a principal."""
    label(value, path, MOST_NAME_CHARS)


def principal(value: str, path: str) -> str:
    """The name of a principal, or a pattern of such names, that somebody may be called by."""
    name(value, path)
    if value == DEFAULT_PRINCIPAL:
        raise ValidationError(
            f"{value!r} is reserved for callers without a principal and cannot be granted; name another principal",
            field=path,
        )
    return value


def count(values: Collection[object], path: str, most: int) -> None:
    """At most so many entries, in something that has entries; one text alone is a sequence of letters too."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Collection):
        raise ValidationError(f"expected a list, got {type(values).__name__}", field=path)
    if len(values) > most:
        raise ValidationError(
            f"has {len(values):,} entries, the limit is {most:,}", field=path, metadata={"limit": str(most)}
        )


def labels(values: Collection[object], path: str, most: int, most_chars: int) -> None:
    """At most so many labels."""
    count(values, path, most)
    for index, value in enumerate(values):
        label(value, f"{path}[{index}]", most_chars)


def integer(value: object, path: str, least: int, most: int) -> None:
    """A whole number in a range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValidationError(f"expected {least} to {most}, got {value!r}", field=path)


def number(value: object, path: str, least: float, most: float) -> None:
    """A finite number in a range, both ends included."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise ValidationError(f"expected {least:g} to {most:g}, got {value!r}", field=path)


def cosine(value: object, path: str) -> None:
    """A cosine from which on two things count as alike: above 0, where everything would, at most 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value <= 1.0:
        raise ValidationError(f"expected a number above 0, at most 1, got {value!r}", field=path)


def mapping(value: object, path: str) -> None:
    """Something with keys and values."""
    if not isinstance(value, Mapping):
        raise ValidationError(f"expected a mapping, got {type(value).__name__}", field=path)


def choice(value: object, path: str, kind: type[StrEnum]) -> None:
    """A member of an enumeration; its bare name is compared with nothing further down."""
    if not isinstance(value, kind):
        raise ValidationError(
            f"expected a {kind.__name__}, one of {', '.join(kind)}; got {type(value).__name__}", field=path
        )


def named(value: object, path: str, kind: type[E]) -> E:
    """A member of an enumeration, from itself or its bare name."""
    try:
        return kind(str(value))
    except ValueError:
        shown = ascii(value)[:SHOWN_CHARS]
        raise ValidationError(f"expected one of {', '.join(kind)}, got {shown}", field=path) from None


def weights(values: Mapping[str, float], path: str, known: Iterable[str] | None = None) -> None:
    """Finite weights, none below 0, not all 0; keys out of ``known`` where that is given."""
    mapping(values, path)
    names = None if known is None else sorted(known)
    for key, value in values.items():
        if names is not None and key not in names:
            raise ValidationError(f"{key!r} is not one of {', '.join(names)}", field=path)
        # A million to one silences the others already; more only costs precision.
        number(value, f"{path}[{key}]", 0.0, 1e6)
    if names is not None and len(values) == len(names) and not any(values.values()):
        raise ValidationError("all weights are 0; set one above 0", field=path)


def a_datetime(value: object, path: str) -> None:
    """A datetime, with a zone or without."""
    if not isinstance(value, datetime):
        raise ValidationError(
            f"expected a datetime such as datetime(2024, 5, 8, tzinfo=UTC), got {type(value).__name__}", field=path
        )


def instant(value: datetime, path: str) -> None:
    """A datetime with a zone, within the years 1 to 9999 of UTC."""
    a_datetime(value, path)
    if value.tzinfo is None or value.utcoffset() is None:
        raise ValidationError(f"{value.isoformat()} has no time zone; use datetime(..., tzinfo=UTC)", field=path)
    if value.year in {MINYEAR, MAXYEAR}:
        try:
            value.astimezone(UTC)
        except OverflowError:
            raise ValidationError(f"{value.isoformat()} is beyond the years 1 to 9999 of UTC", field=path) from None


def time_zone(value: str, path: str) -> None:
    """An IANA name, or an offset from UTC."""
    if not isinstance(value, str):
        raise ValidationError(f"expected a text, got {type(value).__name__}", field=path)
    try:
        zone_of(value)
    except ValueError as error:
        raise ValidationError(str(error), field=path) from None


def time_range(value: TimeRange, path: str) -> None:
    """Zoned ends in order; one may be open."""
    if not isinstance(value, TimeRange):
        raise ValidationError(f"expected a TimeRange, got {type(value).__name__}", field=path)
    if value.start is None and value.end is None:
        raise ValidationError("has neither start nor end; leave it out instead", field=path)
    if value.start is not None:
        instant(value.start, f"{path}.start")
    if value.end is not None:
        instant(value.end, f"{path}.end")
    if value.start is not None and value.end is not None and value.start > value.end:
        raise ValidationError(
            f"starts at {value.start.isoformat()}, after its end at {value.end.isoformat()}", field=path
        )


def metadata(values: Metadata, path: str, limits: LimitSettings, *, reserved: bool = True) -> None:
    """Printable keys, scalar values, within the limits. Keys with a leading underscore are the system's own."""
    mapping(values, path)
    count(values, path, limits.metadata_keys)
    total = 0
    pairs: Iterable[tuple[object, object]] = values.items()
    for key, value in pairs:
        where = f"{path}[{key}]" if isinstance(key, str) and key.isprintable() else path
        if not isinstance(key, str) or not key or UNPRINTABLE.search(key):
            raise ValidationError("expected keys of printable text that are not empty", field=path)
        if reserved and key.startswith("_"):
            raise ValidationError("keys that start with an underscore are reserved", field=where)
        key_bytes = len(key.encode())
        if key_bytes > limits.metadata_key_bytes:
            raise ValidationError(f"key has {key_bytes} bytes, the limit is {limits.metadata_key_bytes}", field=path)
        total += key_bytes + _metadata_value(value, where, limits.metadata_value_bytes)
        if key == ALSO_RELEVANT_TO and reserved:
            _named_banks(value, where)
    if total > limits.metadata_bytes:
        raise ValidationError(
            f"keys and values take {total:,} bytes, the limit is {limits.metadata_bytes:,}", field=path
        )


def _named_banks(value: object, path: str) -> None:
    """Ids of banks with commas between."""
    if not isinstance(value, str):
        raise ValidationError(f"expected bank ids separated by commas, got {type(value).__name__}", field=path)
    names = value.split(SEPARATOR)
    count(names, path, MOST_NAMED)
    for name in names:
        bank_id(name.strip(), path)


def _metadata_value(value: object, path: str, most_bytes: int) -> int:
    """The size of a scalar that JSON and every client can hold."""
    if value is None or isinstance(value, bool):
        return 5
    if isinstance(value, str):
        text(value, path, most_bytes)
        if UNPRINTABLE.search(value.translate(_LAYOUT)):
            raise ValidationError("has a control character", field=path)
        return len(value.encode())
    if isinstance(value, int):
        if value not in INT64:
            raise ValidationError("does not fit in 64 bits; send it as text", field=path)
        return 20
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValidationError(f"expected a finite number, got {value}", field=path)
        return 24
    raise ValidationError(f"expected text, number, true, false or null, got {type(value).__name__}", field=path)


# Line ends and tabs are layout, not control, in a metadata value.
_LAYOUT = dict.fromkeys(map(ord, "\t\n\r"))


def embedding(value: object, path: str, most_dimensions: int) -> None:
    """Little-endian f32 of the stated number, all finite, with a direction, and the name of their model."""
    if not isinstance(value, Embedding):
        raise ValidationError(f"expected an Embedding, got {type(value).__name__}; see make_embedding", field=path)
    model: object = value.model
    if not isinstance(model, str) or not model or UNPRINTABLE.search(model):
        raise ValidationError("expected the name of the model that made the vector", field=f"{path}.model")
    integer(value.dimensions, f"{path}.dimensions", 1, most_dimensions)
    values: object = value.values
    if not isinstance(values, bytes):
        raise ValidationError(
            f"expected bytes, got {type(values).__name__}; see make_embedding", field=f"{path}.values"
        )
    if len(values) != 4 * value.dimensions:
        raise ValidationError(
            f"{value.dimensions} little-endian f32 are {4 * value.dimensions} bytes, got {len(values)}",
            field=f"{path}.values",
        )
    problem = vector_problem(values)
    if problem:
        raise ValidationError(problem, field=f"{path}.values")


def vector_problem(values: bytes) -> str | None:
    """Why a vector cannot be compared by cosine, or None."""
    norm = math.hypot(*struct.unpack(f"<{len(values) // 4}f", values))
    if not math.isfinite(norm):
        return "holds a NaN or an infinity"
    if norm < SMALLEST_NORM:
        return "is all zero, or too small to have a direction"
    return None


# What addresses may be: no file of the provider's machine, no script.
URL = re.compile(r"https?://[^\s/?#]+[^\s]*")
MOST_URL_CHARS = 2_048


def check_parts(parts: Sequence[ContentPart], path: str, limits: LimitSettings) -> None:
    """Parts: as many and as large as may be, each with what its kind needs and nothing else.

    Raises:
        ValidationError: One is wrong.
    """
    count(parts, path, limits.parts)
    size = 0
    for index, part in enumerate(parts):
        at = f"{path}[{index}]"
        if not isinstance(part, ContentPart):
            raise ValidationError(f"expected a ContentPart, got {type(part).__name__}", field=at)
        choice(part.kind, f"{at}.kind", PartKind)
        if part.kind is PartKind.TEXT:
            _text(part, at, limits)
        else:
            _media(part, at)
        size += len(part.data) + len(part.text)
        if size > limits.part_bytes:
            raise ValidationError(
                f"have {size:,} bytes or more together, the limit is {limits.part_bytes:,}",
                field=path,
                metadata={"limit": str(limits.part_bytes)},
            )


def _text(part: ContentPart, at: str, limits: LimitSettings) -> None:
    text(part.text, f"{at}.text", limits.part_bytes)
    if not part.text.strip():
        raise ValidationError("is empty", field=f"{at}.text")
    if part.data or part.url or part.media_type:
        raise ValidationError("has text and other fields; leave the other fields out", field=at)


def _media(part: ContentPart, at: str) -> None:
    if part.text:
        raise ValidationError(f"is not allowed in a part of kind {part.kind}; leave it out", field=f"{at}.text")
    if not isinstance(part.data, bytes):
        raise ValidationError(f"expected bytes, got {type(part.data).__name__}", field=f"{at}.data")
    if bool(part.data) == bool(part.url):
        raise ValidationError("needs exactly one of data and url", field=at)
    if part.url:
        label(part.url, f"{at}.url", MOST_URL_CHARS)
        if part.kind is not PartKind.IMAGE:
            raise ValidationError("is accepted for images only; send data", field=f"{at}.url")
        if not URL.fullmatch(part.url):
            raise ValidationError("expected an http or https URL", field=f"{at}.url")
    elif part.media_type not in MEDIA_TYPES[part.kind]:
        known = ", ".join(sorted(MEDIA_TYPES[part.kind]))
        raise ValidationError(f"must be one of {known}, got {ascii(part.media_type)[:64]}", field=f"{at}.media_type")
