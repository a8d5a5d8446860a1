"""The contract of every kind of external store."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any, ClassVar, Generic, Literal, TypeVar

from astrocyte.providers.storage import SPI_VERSION, Attributes, OutsideStore, Span, StoreFilters, StoreHit
from astrocyte.stores.lifecycle import ARCHIVE_INSTANT

S = TypeVar("S", bound=OutsideStore)

BANK = "4f2c/default/notes/1"
OTHER = "4f2c/default/notes/2"
# More than any bank of these tests holds.
ALL = 1_000
# Names that a pattern or a statement could take for something else.
ODD_BANKS = ("a%b/1", "a_b/1", "A_b/1", "a'b\"c;--/1", "ünï/1", "x" * 600)
SEED = 20_250_317


def scenario(test: Callable[[Any, Any], Awaitable[None]]) -> Callable[[Any], None]:
    """A test that is a coroutine on a store, as one that any pytest runs: in an event loop of its own."""

    def run(self: Any) -> None:
        async def within() -> None:
            async with self.open() as store:
                await test(self, store)

        asyncio.run(within())

    run.__doc__ = test.__doc__
    return run


def attributes(memory: int = 1, **fields: Any) -> Attributes:
    """The attributes of an item of the memory of that number."""
    return replace(Attributes(f"mem_{memory:032x}", 1_000, 1_000), **fields)


class OutsideContract(ABC, Generic[S]):
    """The clauses that all kinds share; a kind says how its items are put and found."""

    SPI_VERSION: ClassVar[int] = SPI_VERSION

    @abstractmethod
    def open(self) -> AbstractAsyncContextManager[S]:
        """An empty store, closed at the end. Called once for each test, within its event loop."""

    @abstractmethod
    async def put(self, store: S, bank_id: str, items: Mapping[str, Attributes]) -> None:
        """Store items that `find` meets, by their ids."""

    @abstractmethod
    async def find(
        self, store: S, bank_id: str, filters: StoreFilters | None = None, limit: int = ALL
    ) -> Sequence[StoreHit]:
        """Search for what all items have."""

    async def _ids(self, store: S, bank_id: str, filters: StoreFilters | None = None) -> list[str]:
        return sorted(hit.id for hit in await self.find(store, bank_id, filters))

    @scenario
    async def test_it_is_of_this_version_and_well(self, store: S) -> None:
        """The store declares the version of its protocol."""
        assert store.SPI_VERSION == self.SPI_VERSION
        assert await store.health()

    @scenario
    async def test_an_unknown_bank_is_empty(self, store: S) -> None:
        """An unknown bank is empty, and reading it is not an error."""
        assert await self.find(store, BANK) == []
        assert await store.position(BANK) == 0
        assert await store.delete(["mem_1"], BANK) == 0
        assert await store.list_banks("") == []
        await store.drop_bank(BANK)

    @scenario
    async def test_what_is_put_is_found_in_its_bank_alone(self, store: S) -> None:
        """Banks do not see each other, even where ids are equal."""
        await self.put(store, BANK, {"1": attributes(1), "2": attributes(2)})
        await self.put(store, OTHER, {"1": attributes(3)})
        assert {(hit.id, hit.memory_id) for hit in await self.find(store, BANK)} == {
            ("1", attributes(1).memory_id),
            ("2", attributes(2).memory_id),
        }
        assert [hit.memory_id for hit in await self.find(store, OTHER)] == [attributes(3).memory_id]

    @scenario
    async def test_putting_again_replaces(self, store: S) -> None:
        """The same write twice is one write; the last one holds, with all that filters look at."""
        await self.put(store, BANK, {"1": attributes(1, tags=("old",), metadata={"k": "sold"})})
        new = {"1": attributes(1, tags=("new",), metadata={"k": "snew"}, fact_type="world", known_until=2_000)}
        for _ in range(2):
            await self.put(store, BANK, new)
        now = StoreFilters(as_of=1_500)
        assert await self._ids(store, BANK, now) == ["1"]
        assert await self._ids(store, BANK) == []
        assert await self._ids(store, BANK, replace(now, tags=("old",))) == []
        assert await self._ids(store, BANK, replace(now, tags=("new",), fact_types=("world",))) == ["1"]
        assert await self._ids(store, BANK, replace(now, metadata={"k": "sold"})) == []

    @scenario
    async def test_archived_versions_are_found_at_their_instant_alone(self, store: S) -> None:
        """An archived version is known for a millisecond far ahead: neither now nor in the past."""
        archived = {"2": attributes(1, known_from=ARCHIVE_INSTANT, known_until=ARCHIVE_INSTANT + 1)}
        await self.put(store, BANK, {"1": attributes(1, known_until=2_000), "3": attributes(3), **archived})
        assert await self._ids(store, BANK) == ["3"]
        assert await self._ids(store, BANK, StoreFilters(as_of=1_500)) == ["1", "3"]
        for instant in (2_000, ARCHIVE_INSTANT - 1, ARCHIVE_INSTANT + 1):
            assert await self._ids(store, BANK, StoreFilters(as_of=instant)) == ["3"]
        assert await self._ids(store, BANK, StoreFilters(as_of=ARCHIVE_INSTANT)) == ["2", "3"]
        restored = {"2": attributes(1, known_from=3_000, known_until=3_000), "4": attributes(1, known_from=3_000)}
        await self.put(store, BANK, restored)
        assert await self._ids(store, BANK) == ["3", "4"]
        assert await self._ids(store, BANK, StoreFilters(as_of=ARCHIVE_INSTANT)) == ["3", "4"]

    @scenario
    async def test_hits_are_bounded_and_ordered(self, store: S) -> None:
        """Best first, equal scores by id, scores from 0 to 1, as many as were asked for."""
        await self.put(store, BANK, {f"{number:03}": attributes(number) for number in range(50)})
        hits = await self.find(store, BANK, limit=20)
        assert len(hits) == 20
        assert hits == sorted(hits, key=lambda hit: (-hit.score, hit.id))
        assert all(0.0 <= hit.score <= 1.0 for hit in hits)

    @scenario
    async def test_filters_are_those_of_the_definition(self, store: S) -> None:
        """The items that pass are those of `StoreFilters.admit`, and are filtered before the limit applies."""
        source = random.Random(SEED)  # noqa: S311 - a test
        items = {f"{number:03}": _random_item(source, number) for number in range(80)}
        await self.put(store, BANK, items)
        for _ in range(120):
            filters = _random_filter(source)
            wanted = sorted(item_id for item_id, item in items.items() if filters.admit(item))
            assert await self._ids(store, BANK, filters) == wanted, filters
            few = await self.find(store, BANK, filters, limit=3)
            assert len(few) == min(3, len(wanted)), filters

    @scenario
    async def test_deleting_goes_by_memory(self, store: S) -> None:
        """All items of the memories go, versions of the past included, from that bank alone."""
        await self.put(
            store,
            BANK,
            {"1": attributes(1, known_until=2_000), "2": attributes(1), "3": attributes(2), "4": attributes(3)},
        )
        await self.put(store, OTHER, {"1": attributes(1)})
        gone = [attributes(1).memory_id, attributes(3).memory_id, "mem_unknown"]
        assert await store.delete(gone, BANK) == 3
        assert await store.delete(gone, BANK) == 0
        assert await store.delete([], BANK) == 0
        assert await self._ids(store, BANK) == ["3"]
        assert await self._ids(store, BANK, StoreFilters(as_of=1_500)) == ["3"]
        assert await self._ids(store, OTHER) == ["1"]

    @scenario
    async def test_positions_are_kept_by_bank(self, store: S) -> None:
        """The last noted position holds, whatever is deleted."""
        await store.advance(BANK, 7)
        await store.advance(BANK, 2**40)
        await store.advance(OTHER, 3)
        await self.put(store, BANK, {"1": attributes(1)})
        await store.delete([attributes(1).memory_id], BANK)
        assert (await store.position(BANK), await store.position(OTHER)) == (2**40, 3)

    @scenario
    async def test_banks_are_listed_by_the_beginning_of_their_names(self, store: S) -> None:
        """Banks are listed if they have items, a position, or both; names compare byte by byte, without patterns."""
        assert await store.list_banks("") == []
        await self.put(store, BANK, {"1": attributes(1)})
        await store.advance(BANK, 1)
        await store.advance(OTHER, 1)
        for bank_id in ODD_BANKS:
            await self.put(store, bank_id, {"1": attributes(1)})
        assert await store.list_banks("") == sorted((BANK, OTHER, *ODD_BANKS))
        assert await store.list_banks("4f2c/") == [BANK, OTHER]
        assert await store.list_banks("a_") == ["a_b/1"]
        assert await store.list_banks("a%") == ["a%b/1"]
        assert [await self._ids(store, bank_id) for bank_id in ODD_BANKS] == [["1"]] * len(ODD_BANKS)

    @scenario
    async def test_a_bank_is_dropped_whole(self, store: S) -> None:
        """Its items and its position go; another bank's stay; doing it twice does it once."""
        for bank_id in (BANK, OTHER):
            await self.put(store, bank_id, {"1": attributes(1)})
            await store.advance(bank_id, 5)
        for _ in range(2):
            await store.drop_bank(BANK)
        assert await store.list_banks("") == [OTHER]
        assert (await store.position(BANK), await store.position(OTHER)) == (0, 5)
        assert await self._ids(store, BANK, StoreFilters(as_of=5_000)) == []
        assert await self._ids(store, OTHER) == ["1"]

    @scenario
    async def test_calls_at_once_do_not_disturb_each_other(self, store: S) -> None:
        """Writes and searches of several banks, all in progress together."""

        async def fill(number: int) -> list[str]:
            bank_id = f"bank/{number}"
            await self.put(store, bank_id, {f"{number}-{place}": attributes(place) for place in range(5)})
            await store.advance(bank_id, number)
            return await self._ids(store, bank_id)

        found = await asyncio.gather(*[fill(number) for number in range(12)])
        assert found == [[f"{number}-{place}" for place in range(5)] for number in range(12)]
        assert [await store.position(f"bank/{number}") for number in range(12)] == list(range(12))

    @scenario
    async def test_many_items_go_in_one_call(self, store: S) -> None:
        """A batch of the size that catching up makes."""
        await self.put(store, BANK, {f"{number:04}": attributes(number) for number in range(600)})
        assert len(await self.find(store, BANK)) == 600


def _random_item(source: random.Random, number: int) -> Attributes:
    known_from = source.randrange(0, 100)
    return Attributes(
        memory_id=f"mem_{number % 30:032x}",
        retained_at=source.randrange(0, known_from + 1),
        known_from=known_from,
        known_until=source.choice((None, None, known_from + source.randrange(1, 50))),
        occurred_at=source.choice((None, source.randrange(-50, 100))),
        valid_from=source.choice((None, source.randrange(0, 50))),
        valid_until=source.choice((None, source.randrange(50, 100))),
        fact_type=source.choice(("world", "experience", "")),
        session_id=source.choice((None, "s1", "s2")),
        tags=tuple(source.sample(("a", "b", "ünï", "it's"), source.randrange(0, 4))),
        metadata=dict(source.sample((("k", "s1"), ("n", "i1"), ("q'", 'st"r')), source.randrange(0, 4))),
    )


def _random_filter(source: random.Random) -> StoreFilters:
    def span() -> Span:
        first = source.choice((None, source.randrange(-50, 80)))
        return first, source.choice((None, (first or 0) + source.randrange(0, 60)))

    def rarely(value: Any) -> Any:
        return source.choice((value, None, None))

    match: Literal["any", "all", "none"] = source.choice(("any", "all", "none"))
    return StoreFilters(
        tags=tuple(rarely(source.sample(("a", "b", "ünï", "it's", "none has it"), source.randrange(1, 3))) or ()),
        tag_match=match,
        fact_types=rarely(("world", "experience")) or (),
        memory_ids=rarely(tuple(f"mem_{number:032x}" for number in source.sample(range(40), 15))) or (),
        session_id=rarely("s1"),
        metadata=rarely({"k": "s1"}) or {},
        time_range=rarely(span()),
        retained_range=rarely(span()),
        as_of=rarely(source.randrange(0, 150)),
        valid_at=rarely(source.randrange(0, 100)),
    )
