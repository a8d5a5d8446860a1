"""Replication of entity graphs to a graph store, beside the memories that a `Follower` brings there.

The log of a graph says which entities and links changed; what goes out is what they are now. The store keeps the number
of the last change that it has, apart from its position in the change log of memories. A change that is a refill lets
the store begin the bank anew, memories included.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from astrocyte.model import Bank
from astrocyte.pipelines.external_stores.calls import Calls
from astrocyte.pipelines.external_stores.graph_items import item_id, links_of_callers, records_of
from astrocyte.providers.storage import GraphStore
from astrocyte.stores.following import FollowedGraphs, GraphChange, GraphChangeKind

# Changes followed in one step, as in `sync`: texts of links are a few megabytes at the most.
CHANGES_AT_ONCE = 256


class GraphReplication:
    """Applies the changes of entity graphs to one graph store.

    Args:
        store: Where they go.
        graphs: Where they come from.
        calls: How both are reached.
    """

    def __init__(self, store: GraphStore, graphs: FollowedGraphs, calls: Calls) -> None:
        self._store = store
        self._graphs = graphs
        self._calls = calls
        # How far each bank is, once it is known; and the number up to which changed banks were told.
        self.reached: dict[int, int] = {}
        self._told = 0

    async def changed(self) -> list[Bank]:
        """Banks that changed since the last call; the first one names all that ever did."""
        banks, self._told = await self._calls.read(self._graphs.changed, self._told)
        return banks

    async def last(self, bank: Bank) -> int:
        """The number of the bank's last change."""
        return await self._calls.read(self._graphs.last, bank)

    async def begins_anew(self, bank: Bank, name: str) -> bool:
        """True if the store must drop the bank, because it is ahead of the truth, or a refill is due."""
        number = self.reached.get(bank.key)
        if number is None:
            number = await self._calls.call(partial(self._store.graph_position, name))
            if number > await self.last(bank):
                return True
            self.reached[bank.key] = number
        return _is_refill(await self._changes(bank, number, 1))

    async def started_anew(self, bank: Bank, name: str) -> None:
        """Note that the store has dropped the bank. After a crash before that it is dropped once more."""
        found = await self._changes(bank, 0, 1)
        await self._advance(bank, name, found[0].number if _is_refill(found) else 0)

    async def follow(self, bank: Bank, name: str) -> bool:
        """Bring the store up to date; False where a refill came, which is left for `begins_anew`."""
        # A bank that was deleted before anything was known of it has none.
        number = self.reached.get(bank.key)
        while number is not None and (changes := await self._changes(bank, number, CHANGES_AT_ONCE)):
            if _is_refill(changes):
                return False
            await self._bring(bank, name, changes)
            number = changes[-1].number
            await self._advance(bank, name, number)
        return True

    async def _bring(self, bank: Bank, name: str, changes: Sequence[GraphChange]) -> None:
        """Replace these entities and links in the store by what they are now."""
        store, call, read = self._store, self._calls.call, self._calls.read
        entity_keys = [change.key for change in changes if change.kind is GraphChangeKind.ENTITY]
        link_keys = [change.key for change in changes if change.kind is GraphChangeKind.LINK]
        records = records_of(await read(self._graphs.entities, bank, entity_keys), name)
        links = links_of_callers(await read(self._graphs.links, bank, link_keys), name)
        # What is gone first: the id of an entity may belong to a new one by now.
        if gone := _without(entity_keys, {record.id for record in records}):
            await call(partial(store.delete_entities, gone, name))
        if gone := _without(link_keys, {link.id for link in links}):
            await call(partial(store.delete_links, gone, name))
        if records:
            await call(partial(store.store_entities, records))
        if links:
            await call(partial(store.store_links, links))

    async def _advance(self, bank: Bank, name: str, number: int) -> None:
        await self._calls.call(partial(self._store.advance_graph, name, number))
        self.reached[bank.key] = number

    async def _changes(self, bank: Bank, after: int, limit: int) -> list[GraphChange]:
        return await self._calls.read(self._graphs.changes, bank, after=after, limit=limit)


def _is_refill(changes: Sequence[GraphChange]) -> bool:
    # A refill is the first change of its bank: it takes the place of all before it.
    return bool(changes) and changes[0].kind is GraphChangeKind.REFILL


def _without(keys: Sequence[int], held: set[str]) -> list[str]:
    return [one for one in map(item_id, keys) if one not in held]
