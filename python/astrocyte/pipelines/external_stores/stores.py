"""The external stores of a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor

from astrocyte.config import Settings
from astrocyte.errors import ProviderUnavailable
from astrocyte.model import Bank
from astrocyte.pipelines.external_stores.adapters import Guarded
from astrocyte.pipelines.external_stores.search import Asker
from astrocyte.pipelines.external_stores.sync import Follower
from astrocyte.pipelines.search.plan import Plan
from astrocyte.stores.following import FollowedGraphs, FollowedStore
from astrocyte.stores.protocols import MemoryStore


class ExternalStores:
    """Replicates the primary store to each external store, and queries them in recalls.

    Args:
        stores: Those that the settings name, at least one.
        truth: What they follow.
        followed: The truth, as followers read it.
        graphs: Its entity graphs, as graph stores follow them.
        settings: How long things may take.
        executor: Where the truth is read.
    """

    def __init__(
        self,
        stores: Sequence[Guarded],
        truth: MemoryStore,
        followed: FollowedStore,
        graphs: FollowedGraphs,
        settings: Settings,
        executor: Executor,
    ) -> None:
        self._settings = settings.outside_stores
        self._followers = {
            store.kind.name: Follower(store, truth, followed, graphs, settings.outside_stores, executor)
            for store in stores
        }
        self._asker = Asker(stores, followed.installation, settings.recall, settings.outside_stores.recall_seconds)

    def start(self) -> None:
        """Start replication in the background; a second call does nothing."""
        for follower in self._followers.values():
            follower.start()

    async def close(self) -> None:
        """Stop, and release connections."""
        await asyncio.gather(*[follower.close() for follower in self._followers.values()])

    async def ask(self, plans: Iterable[Plan]) -> None:
        """Set the proposals of the stores in the plans."""
        await self._asker.ask(plans)

    async def confirm(self, bank: Bank, position: int) -> None:
        """Return once all stores have the bank's changes up to a position, and graph stores those of its graph.

        Raises:
            ProviderUnavailable: One has not in time; it will be tried again until it has.
        """
        waiting = {
            name: asyncio.create_task(follower.reached(bank, position)) for name, follower in self._followers.items()
        }
        _, late = await asyncio.wait(waiting.values(), timeout=self._settings.erase_seconds)
        for task in late:
            task.cancel()
        names = ", ".join(name for name, task in waiting.items() if task in late)
        if names:
            raise ProviderUnavailable(
                f"{names} did not confirm within {self._settings.erase_seconds:g} s; the local deletion is complete "
                "and the "
                "external one is queued; repeat the call with the same request id to get its result",
                metadata={"provider": names},
            )
