"""The protocol of what ingest keeps: receipts of webhook deliveries, cursors and known items of poll sources.

All of it is of a source and not of a bank: a delivery or an item stays known when the bank of its memory is deleted. It
holds no content, only digests, those of deliveries keyed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Standing(StrEnum):
    """The standing of a delivery: new, sent again, replayed, or another one under a known id."""

    NEW = "new"
    REPEATED = "repeated"
    REPLAYED = "replayed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery with a valid signature.

    Attributes:
        key: 32 bytes by which its source knows it again.
        digest: Keyed digest of its body, 32 bytes.
        signed_at: Seconds since 1970, from the signature; 0 where the signature has no time.
    """

    key: bytes
    digest: bytes
    signed_at: int


@dataclass(frozen=True, slots=True)
class KnownItem:
    """An item of a poll source, as it was last.

    Attributes:
        key: Digest of its place and its id, 32 bytes.
        version: Digest of its version, 32 bytes.
        bank_id: Bank in which it was stored; "" if it was refused before there was one.
        memory_id: The memory that is this item's own; None if there is none.
    """

    key: bytes
    version: bytes
    bank_id: str
    memory_id: str | None


class IngestStore(Protocol):
    """Reads and writes are as those of `astrocyte.stores.protocols.MemoryStore`."""

    def standing(self, source_id: str, delivery: Delivery) -> Standing:
        """The standing of a delivery.

        One with a newer time than the last accepted under its key is repeated by its sender; with the same or an older
        time it is a copy.
        """

    async def accept(self, source_id: str, delivery: Delivery, *, expires_at: int | None) -> Standing:
        """Write the receipt of a delivery unless it is replayed or changed; returns the standing that it had.

        Args:
            source_id: The source.
            delivery: The delivery.
            expires_at: Milliseconds since the epoch from which the receipt may go; None keeps it.
        """

    def poll_cursor(self, source_id: str, place: str) -> str | None:
        """The cursor of a source, as JSON; None if there is none for this place."""

    def known_items(self, source_id: str, keys: Collection[bytes]) -> Mapping[bytes, KnownItem]:
        """Those of some items that a source knows, by their keys."""

    async def advance_poll(self, source_id: str, place: str, cursor: str, items: Sequence[KnownItem]) -> None:
        """Write a cursor and the items before it, both or neither. Items of another place are dropped."""
