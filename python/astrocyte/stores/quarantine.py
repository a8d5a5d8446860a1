"""Damaged rows: found on reading, left out of answers, and named to operators."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

# Returns whether a content hash fits content, speaker, session and time.
HashFits = Callable[[bytes, str, str | None, str | None, int | None], bool]
# Where more is damaged, the disk is. The names take far more memory than the keys, which are all kept.
MOST_NAMED = 10_000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DamagedRow:
    """A version of a memory that cannot be used.

    Attributes:
        bank_key: Key of the bank.
        row_key: Key of the version.
        problem: What is wrong with it; no content.
    """

    bank_key: int
    row_key: int
    problem: str


class Quarantine:
    """The damaged rows that this process has met. Safe to use from any thread.

    Attributes:
        keys: Their row keys, to be read only.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.keys: set[int] = set()
        # The first of them.
        self._rows: dict[int, DamagedRow] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, row_key: int) -> bool:
        return row_key in self.keys

    @property
    def rows(self) -> list[DamagedRow]:
        """The first `MOST_NAMED` of them, by row key."""
        with self._lock:
            return [self._rows[key] for key in sorted(self._rows)]

    def add(self, bank_key: int, row_key: int, problem: str) -> None:
        """Leave a row out of answers from now on."""
        with self._lock:
            if row_key in self.keys:
                return
            self.keys.add(row_key)
            if len(self._rows) >= MOST_NAMED:
                return
            self._rows[row_key] = DamagedRow(bank_key, row_key, problem)
        log.error("row_quarantined", bank_key=bank_key, row_key=row_key, problem=problem)

    def discard(self, row_key: int) -> None:
        """Take a row off the list: it was erased."""
        with self._lock:
            self.keys.discard(row_key)
            self._rows.pop(row_key, None)
