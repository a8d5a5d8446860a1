"""The protocols of the books of daily quotas, and of rates that several processes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol


class Use(NamedTuple):
    """A counter: an operation in a bank."""

    tenant: str
    bank_id: str
    operation: str


class QuotaBook(Protocol):
    """Counts by day that survive the process, shared by all that open the same book. Safe from any thread."""

    def reserve(self, day: int, use: Use, *, least: int, limit: int) -> int:
        """Count some of what is left of a day's limit as used; returns how many: at least ``least``, or 0.

        More than ``least`` is taken while much is left, so that not every call has to write; what the caller does not
        use is given back with `give_back`, or lost with the process. All that is ever taken together is at most
        ``limit``.

        Args:
            day: Days since the epoch, UTC. What is written of days before the last is deleted.
            use: What is counted.
            least: How many are needed now, at least 1.
            limit: How many the day has in all.

        Raises:
            StoreError: The book cannot be written.
        """

    def give_back(self, day: int, use: Use, count: int) -> None:
        """Return unused reservations."""

    def close(self) -> None:
        """Release the file. A second call does nothing."""


class RateBook(Protocol):
    """The levels of token buckets that several processes draw from."""

    def locked(self) -> AbstractContextManager[None]:
        """Hold the buckets: what is read and written within is one step for all processes.

        Raises:
            StoreError: The lock could not be had.
        """

    def read(self, keys: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Level and when it was that, in nanoseconds, of the buckets that are not full."""

    def write(self, levels: Mapping[str, tuple[int, int, int]]) -> None:
        """Set level, when it is that, and when the bucket will be full."""

    def close(self) -> None:
        """Release the file."""
