"""Shared by the stores in plain Python: items and positions by bank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from astrocyte.providers.storage.protocols import CURRENT, SPI_VERSION, Attributes, StoreFilters, StoreHit


class _Item(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def bank_id(self) -> str: ...
    @property
    def attributes(self) -> Attributes: ...


I = TypeVar("I", bound=_Item)  # noqa: E741 - an item


class Shelf(Generic[I]):
    """Items and positions by bank."""

    SPI_VERSION: ClassVar[int] = SPI_VERSION

    def __init__(self) -> None:
        self._banks: dict[str, dict[str, I]] = {}
        self._positions: dict[str, int] = {}

    async def position(self, bank_id: str) -> int:
        """The position in the bank's change log up to which the store is current."""
        return self._positions.get(bank_id, 0)

    async def advance(self, bank_id: str, position: int) -> None:
        """Set the position up to which the store is current."""
        self._positions[bank_id] = position

    async def delete(self, ids: Sequence[str], bank_id: str) -> int:
        """Delete all items of these memories in the bank."""
        items = self._banks.get(bank_id, {})
        going = [item.id for item in items.values() if item.attributes.memory_id in set(ids)]
        for item_id in going:
            del items[item_id]
        return len(going)

    async def list_banks(self, prefix: str) -> list[str]:
        """Banks whose names have the prefix."""
        there = {bank_id for bank_id, items in self._banks.items() if items} | self._positions.keys()
        return sorted(bank_id for bank_id in there if bank_id.startswith(prefix))

    async def drop_bank(self, bank_id: str) -> None:
        """Delete the bank with everything in it."""
        self._banks.pop(bank_id, None)
        self._positions.pop(bank_id, None)

    async def health(self) -> bool:
        """Always true: a store in memory cannot be unreachable."""
        return True

    async def close(self) -> None:
        """Nothing to release."""

    def put(self, items: Sequence[I]) -> list[str]:
        """Store the items, replacing those of the same bank and id."""
        for item in items:
            self._banks.setdefault(item.bank_id, {})[item.id] = item
        return [item.id for item in items]

    def passing(self, bank_id: str, filters: StoreFilters | None) -> list[I]:
        """The items of the bank that pass the filter."""
        admit = (filters or CURRENT).admit
        return [item for item in self._banks.get(bank_id, {}).values() if admit(item.attributes)]


def best(hits: list[StoreHit], limit: int) -> list[StoreHit]:
    """The hits of the highest scores, equal ones by id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]
