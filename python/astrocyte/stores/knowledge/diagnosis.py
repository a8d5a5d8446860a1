"""The protocol of the reads of a diagnosis."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from astrocyte.model import Bank, Memory


class StaleItem(NamedTuple):
    """An item of knowledge of which a source changed or is gone."""

    kind: str
    item_id: str
    changed: int
    gone: int


class DiagnosisStore(Protocol):
    """Reads of a diagnosis, by bank. ``limit`` bounds the ids that are returned, not the counts."""

    def newest(self, bank: Bank, limit: int) -> tuple[list[Memory], int]:
        """The newest current memories, oldest first, and the number of all."""

    def expired(self, bank: Bank, now: int, limit: int) -> tuple[list[str], int]:
        """Current memories whose validity ended, and their number."""

    def oversize(self, bank: Bank, tokens: int, limit: int) -> tuple[list[str], int]:
        """Current memories with more tokens, largest first, and their number."""

    def without_vectors(self, bank: Bank, limit: int) -> tuple[list[str], int]:
        """Current memories without a vector of the bank's model, and their number."""

    def sources(self, bank: Bank) -> list[tuple[str, int]]:
        """The sources of current memories with their numbers, by descending number; "" for none."""

    def stale(self, bank: Bank, limit: int) -> tuple[list[StaleItem], int, int]:
        """Items of which a source changed or is gone, their number, and the number of all items."""

    def orphans(self, bank: Bank) -> dict[str, int]:
        """Rows by table that belong to a memory, item or entity which the database does not have."""

    async def delete_orphans(self, bank: Bank, *, by: str, validate_only: bool = False) -> int:
        """Delete these rows; returns their number. With ``validate_only`` they are counted and stay."""

    def expired_holds(self, bank: Bank, now: int) -> tuple[list[str], int]:
        """Ids of the standing holds whose ``expires_at`` is past, oldest first, and the number of all that stand."""
