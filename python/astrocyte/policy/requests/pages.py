"""The bounds of a page: a number of entries, and the bytes that they take in an answer."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar

from astrocyte.policy.requests.page_tokens import LONGEST_TOKEN

# The other fields of a page are a position and a digest.
RESERVED_BYTES = LONGEST_TOKEN + 256
# Tag and length of a field, or of an entry of a map with the tags within it.
FIELD_BYTES, MAP_ENTRY_BYTES = 8, 16
# A number, an instant or an enum; an instant is a message of two numbers.
SCALAR_BYTES = 24

P = TypeVar("P")
T = TypeVar("T")


class PageLimit(NamedTuple):
    """Most entries of a page, and most bytes of them in an answer."""

    entries: int
    size_bytes: int

    @classmethod
    def within(cls, entries: int, answer_bytes: int) -> PageLimit:
        """The limit of a page that is sent as an answer of at most ``answer_bytes``."""
        return cls(entries, max(answer_bytes - RESERVED_BYTES, 0))


def cut_page(rows: Sequence[tuple[P, T]], limit: PageLimit) -> tuple[tuple[T, ...], P | None]:
    """Cut a page from the first rows of a list.

    The first row is always taken, so that every page advances; the transport refuses it if it is too large alone.

    Args:
        rows: Place and entry of each row; one more than ``limit.entries`` if the list goes on.
        limit: Entries and bytes of the page.

    Returns:
        The entries, and the place of the last one if more follow.
    """
    left = limit.size_bytes
    count = 0
    for _, entry in rows[: limit.entries]:
        left -= largest_size(entry)
        if left < 0 and count:
            break
        count += 1
    more = len(rows) > count
    return tuple(entry for _, entry in rows[:count]), rows[count - 1][0] if more else None


def largest_size(value: object) -> int:
    """Bytes of a value in an answer: an upper bound, for the exact size is known only to the services."""
    if isinstance(value, str):
        return FIELD_BYTES + len(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return FIELD_BYTES + len(value)
    if isinstance(value, Mapping):
        return sum(MAP_ENTRY_BYTES + largest_size(key) + largest_size(item) for key, item in value.items())
    kind: type[Any] = type(value)
    if names := _names(kind):  # type: ignore[arg-type]  # every type is hashable
        return FIELD_BYTES + sum(largest_size(getattr(value, name)) for name in names)
    if isinstance(value, Collection):
        return FIELD_BYTES + sum(map(largest_size, value))
    return SCALAR_BYTES


@cache
def _names(kind: Hashable) -> tuple[str, ...]:
    """The fields and computed values of a dataclass or NamedTuple; none for other types."""
    names = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else getattr(kind, "_fields", ())
    # Computed values, such as an entity's id, may be sent too.
    return names and (*names, *(name for name, value in vars(kind).items() if isinstance(value, property)))
