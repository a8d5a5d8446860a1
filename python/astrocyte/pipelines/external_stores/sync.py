"""Replication of the primary store to an external store.

The change log says which memories changed; what goes out is what they are now, so that a change which is followed twice
does no harm, and one that has been overtaken none either. The position that the store has reached is kept in the store,
after what it stands for. A store that was away goes on from there, and one that is ahead of the truth, which then came
out of a backup, begins anew. What was forgotten or erased leaves the store with the same step; a deleted bank leaves it
when all banks are compared. A graph store follows the entity graphs too, see `graph_sync`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial

import structlog

from astrocyte.config import OutsideStoreSettings
from astrocyte.errors import AstrocyteError, CircuitOpen, frames
from astrocyte.model import Bank, Change
from astrocyte.pipelines.external_stores.adapters import Graph, Guarded
from astrocyte.pipelines.external_stores.calls import Calls
from astrocyte.pipelines.external_stores.graph_sync import GraphReplication
from astrocyte.pipelines.external_stores.items import name_of
from astrocyte.stores.following import FollowedGraphs, FollowedStore
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import IndexBatch, VersionRecord

# Changes followed in one step: its items are a few megabytes at the most.
CHANGES_AT_ONCE = 256
BANKS_AT_ONCE = 1_000
# How long to rest after a failure that says no other time.
REST_SECONDS = 1.0

log = structlog.get_logger(__name__)


class Follower:
    """Applies the changes of all banks to one external store.

    Args:
        store: Where they go.
        truth: Where they come from.
        followed: The truth, as followers read it.
        graphs: Its entity graphs, which a graph store follows too.
        settings: How long things may take.
        executor: Where the truth is read.
    """

    def __init__(
        self,
        store: Guarded,
        truth: MemoryStore,
        followed: FollowedStore,
        graphs: FollowedGraphs,
        settings: OutsideStoreSettings,
        executor: Executor,
    ) -> None:
        self._guarded = store
        self._external = store.kind.store
        self._truth = truth
        self._followed = followed
        self._settings = settings
        calls = Calls(store, settings.write_seconds, executor)
        self._call, self._read = calls.call, calls.read
        kind = store.kind
        self._graph = GraphReplication(kind.store, graphs, calls) if isinstance(kind, Graph) else None
        # Banks that have changed, or whose position outside is not known; and how far each is, once it is known.
        self._waiting: dict[int, Bank] = {}
        self._reached: dict[int, int] = {}
        self._changed = asyncio.Event()
        self._moved = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        truth.subscribe(self._on_commit)
        if self._graph is not None:
            graphs.subscribe(self._on_graphs)

    def start(self) -> None:
        """Start replication in the background of the running loop; a second call does nothing."""
        if self._task is None:
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._follow_for_ever(), name=f"astrocyte-{self._guarded.kind.name}")

    async def close(self) -> None:
        """Stop; the next process continues from the position of the store."""
        self._loop = None
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self._external.close()

    async def reached(self, bank: Bank, position: int) -> None:
        """Return when the store has the bank's changes up to a position, and that is confirmed after a start.

        A graph store has then also all changes of the bank's entity graph that were committed before the call.
        """
        number = 0 if self._graph is None else await self._graph.last(bank)
        self._note(bank)
        async with self._moved:
            await self._moved.wait_for(lambda: self._has(bank, position, number))

    def _has(self, bank: Bank, position: int, number: int) -> bool:
        graph = self._graph is None or self._graph.reached.get(bank.key, -1) >= number
        return graph and self._reached.get(bank.key, -1) >= position

    def _on_commit(self, batch: IndexBatch) -> None:
        self._soon(partial(self._note, batch.bank))

    def _on_graphs(self) -> None:
        self._soon(self._changed.set)

    def _soon(self, work: Callable[[], None]) -> None:
        loop = self._loop
        if loop is not None:
            # A loop that closed has nobody left to wake.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(work)

    def _note(self, bank: Bank) -> None:
        self._waiting[bank.key] = bank
        self._changed.set()

    async def _follow_for_ever(self) -> None:
        while True:
            rest = REST_SECONDS
            try:
                await self._compare()
                while await self._change_within(self._settings.compare_seconds):
                    await self._catch_up()
                continue
            except CircuitOpen as error:
                rest = max(error.retry_after, REST_SECONDS)
            except AstrocyteError as error:
                log.warning("outside_store_behind", store=self._guarded.kind.name, reason=error.reason)
            except Exception as error:  # noqa: BLE001 - what has not been followed still waits
                # No traceback: it could show the values of variables, which are content.
                log.error(  # noqa: TRY400
                    "outside_store_behind",
                    store=self._guarded.kind.name,
                    error=type(error).__name__,
                    frames=frames(error),
                )
            await asyncio.sleep(rest)

    async def _change_within(self, seconds: float) -> bool:
        """Wait for a change; False when a comparison is due."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
                return True
        return False

    async def _compare(self) -> None:
        """Drop deleted banks at the store, and bring the others up to date."""
        banks: list[Bank] = []
        while found := await self._read(self._banks_after, banks[-1].key if banks else 0):
            banks += found
        names = {name_of(self._followed.installation, bank) for bank in banks}
        prefix = f"{self._followed.installation}/"
        for name in await self._call(partial(self._external.list_banks, prefix)):
            if name not in names:
                await self._call(partial(self._external.drop_bank, name))
        self._waiting |= {bank.key: bank for bank in banks}
        for reached in (self._reached, {} if self._graph is None else self._graph.reached):
            for key in reached.keys() - {bank.key for bank in banks}:
                del reached[key]
        await self._catch_up()

    async def _catch_up(self) -> None:
        self._changed.clear()
        if self._graph is not None:
            self._waiting |= {bank.key: bank for bank in await self._graph.changed()}
        while self._waiting:
            key = next(iter(self._waiting))
            bank = self._waiting.pop(key)
            try:
                await self._follow(bank)
            except BaseException:
                self._waiting.setdefault(key, bank)
                raise

    async def _follow(self, bank: Bank) -> None:
        name = name_of(self._followed.installation, bank)
        while True:
            position = await self._position(bank, name)
            while changes := await self._read(self._changes_after, bank, position):
                await self._bring(bank, name, changes)
                position = changes[-1].position
                await self._at(bank, position)
            if self._graph is None:
                return
            if await self._graph.follow(bank, name):
                # Once more, for those who wait for the graph.
                await self._at(bank, position)
                return

    async def _position(self, bank: Bank, name: str) -> int:
        """Where to go on in the change log: at its beginning where the store must begin the bank anew."""
        position = self._reached.get(bank.key)
        current = self._truth.get_bank(bank.tenant, bank.bank_id)
        there = current is not None and current.key == bank.key
        ahead = False
        if position is None:
            position = await self._call(partial(self._external.position, name))
            ahead = current is not None and there and position > current.position
        # What a deleted bank left is dropped when all banks are compared.
        if self._graph is not None and there:
            ahead = await self._graph.begins_anew(bank, name) or ahead
        if ahead:
            await self._drop(bank, name)
            position = 0
        await self._at(bank, position)
        return position

    async def _drop(self, bank: Bank, name: str) -> None:
        # First, so that after a failure the store is asked how far it came.
        self._reached.pop(bank.key, None)
        if self._graph is not None:
            self._graph.reached.pop(bank.key, None)
        await self._call(partial(self._external.drop_bank, name))
        if self._graph is not None:
            await self._graph.started_anew(bank, name)

    async def _bring(self, bank: Bank, name: str, changes: Sequence[Change]) -> None:
        """Replace these memories in the store by their current versions, and advance its position."""
        # A change of the bank as a whole names no memory.
        memory_ids = list(dict.fromkeys(change.memory_id for change in changes if change.memory_id))
        versions = await self._read(self._versions, bank, memory_ids)
        held = {version.memory.memory_id for version in versions}
        gone = [memory_id for memory_id in memory_ids if memory_id not in held]
        if gone:
            await self._call(partial(self._external.delete, gone, name))
        items = await self._read(self._guarded.kind.items, versions, name)
        if items:
            await self._call(partial(self._guarded.kind.put, items))
        await self._call(partial(self._external.advance, name, changes[-1].position))

    async def _at(self, bank: Bank, position: int) -> None:
        async with self._moved:
            self._reached[bank.key] = position
            self._moved.notify_all()

    def _banks_after(self, key: int) -> list[Bank]:
        return self._followed.banks(after=key, limit=BANKS_AT_ONCE)

    def _changes_after(self, bank: Bank, position: int) -> list[Change]:
        return self._truth.changes(bank, after=position, limit=CHANGES_AT_ONCE)

    def _versions(self, bank: Bank, memory_ids: Sequence[str]) -> list[VersionRecord]:
        return self._followed.versions(bank, memory_ids)
