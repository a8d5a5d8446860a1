"""The entity graph as the operations use it: its store, and what keeps it up to date."""

from __future__ import annotations

from dataclasses import dataclass, replace

from astrocyte.config import EntityGraphSettings
from astrocyte.errors import FailedPrecondition
from astrocyte.model import Bank, GraphStats
from astrocyte.pipelines.graph.following import GraphFollower
from astrocyte.stores.graph.entity_graph import EntityGraphStore


@dataclass(frozen=True, slots=True)
class GraphPipeline:
    """The entity graphs of all banks."""

    store: EntityGraphStore
    follower: GraphFollower
    settings: EntityGraphSettings

    def start(self) -> None:
        """Start deriving in the background, unless that is switched off."""
        if self.settings.enabled:
            self.follower.start()

    async def close(self) -> None:
        """Stop deriving."""
        await self.follower.close()

    async def caught_up(self) -> None:
        """Wait for the memories that are stored, up to the configured time."""
        await self.follower.caught_up(self.settings.read_wait_seconds)

    def check_enabled(self) -> None:
        """Refuse what only has an effect where graphs are derived.

        Raises:
            FailedPrecondition: They are not.
        """
        if not self.settings.enabled:
            raise FailedPrecondition(
                "entity_graph.enabled is false; set it to true and restart", metadata={"key": "entity_graph.enabled"}
            )

    def with_progress(self, bank: Bank, stats: GraphStats) -> GraphStats:
        """Counts with the work in progress; reads the store."""
        done, last = self.store.progress()
        pending = self.store.pending() if last > done else 0
        unread = self.follower.unread(bank)
        rebuild = next((one for one in self.store.rebuilds() if one.bank_key == bank.key), None)
        if rebuild is None:
            return replace(stats, pending_memories=pending, unread_memories=unread)
        share = rebuild.row_key / rebuild.until_row_key if rebuild.until_row_key else 1.0
        return replace(stats, pending_memories=pending, rebuilding=True, rebuilt_share=share, unread_memories=unread)
