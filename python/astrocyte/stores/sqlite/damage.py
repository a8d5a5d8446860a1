"""Damaged pages and rows: telling them from other failures, and reading around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import apsw

from astrocyte.errors import StoreError
from astrocyte.model import Bank
from astrocyte.stores.quarantine import Quarantine
from astrocyte.stores.records import VersionRecord

T = TypeVar("T")

PAGE, ROW, HASH, VECTOR = "unreadable page", "malformed row", "content hash mismatch", "vector of another size"
# Decoding a malformed row raises these. Text that is not UTF-8 raises a ValueError.
_MALFORMED = (ValueError, TypeError, AttributeError, LookupError, RecursionError, OverflowError)
# A failed system call is not among them: it may succeed the next time, and the row may be intact.
_UNREADABLE = (apsw.CorruptError, apsw.NotADBError)
FLOAT_BYTES = 4
# Forwards up to the damage, if there is any; then backwards down to it, and what the index knows.
_KEYS = (
    "SELECT row_key FROM memories NOT INDEXED WHERE bank_key = ?1 AND row_key > ?2 ORDER BY row_key LIMIT ?3",
    "SELECT row_key FROM memories NOT INDEXED WHERE bank_key = ?1 AND row_key > ?2 AND ?3 > 0 ORDER BY row_key DESC",
    (
        "SELECT row_key FROM memories INDEXED BY memories_listed"
        " WHERE bank_key = ?1 AND row_key > ?2 AND forgotten_at IS NULL AND ?3 > 0 ORDER BY row_key"
    ),
)
# Years 0001 to 9999, in milliseconds since 1970; a damaged time beyond them cannot be shown.
FIRST_TIME, LAST_TIME = -62_135_596_800_000, 253_402_300_799_999


def problem_of(error: BaseException) -> str | None:
    """Return what an error says of the data that was read, or None if it is about something else."""
    cause = error.__cause__ if isinstance(error, StoreError) else error
    if isinstance(cause, _UNREADABLE):
        return PAGE
    return ROW if isinstance(cause, _MALFORMED) else None


def around(read: Callable[[int], T | None], keys: Iterator[int], bank: Bank, quarantine: Quarantine) -> Iterator[T]:
    """Read rows one by one, and put those that cannot be read into quarantine.

    Args:
        read: Returns what a row key stands for, or None.
        keys: Row keys; those in quarantine are left out.
        bank: Whose.
        quarantine: Where damaged rows go.
    """
    for key in keys:
        if key in quarantine:
            continue
        try:
            found = read(key)
        except Exception as error:
            problem = problem_of(error)
            if problem is None:
                raise
            quarantine.add(bank.key, key, problem)
            continue
        if found is not None:
            yield found


def keys_of(connection: apsw.Connection, bank: Bank, after: int, limit: int) -> list[int]:
    """Return the next row keys of a bank, from whatever can be read of its table and its index."""
    found: set[int] = set()
    for reading in _KEYS:
        try:
            for (key,) in connection.execute(reading, (bank.key, after, limit)):
                found.add(key)
        except _UNREADABLE:
            continue
        if reading is _KEYS[0]:
            break
    return sorted(found)[:limit]


def record_problem(record: VersionRecord, bank: Bank) -> str | None:
    """Return what is wrong with the decoded parts of a version, or None."""
    memory, size = record.memory, FLOAT_BYTES * bank.dimensions
    if type(memory.metadata) is not dict or not _shown(record.retained_at, record.known_from, memory.occurred_at):
        return ROW
    vectors = (memory.vector, *[chunk.vector for chunk in memory.chunks])
    return VECTOR if any(vector is not None and len(vector) != size for vector in vectors) else None


def _shown(*times: int | None) -> bool:
    """Return whether times can be shown."""
    return all(time is None or FIRST_TIME <= time <= LAST_TIME for time in times)
