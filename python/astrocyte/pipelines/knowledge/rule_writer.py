"""Consolidation by rules, a step of some changes at a time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from astrocyte.config import ConsolidationSettings
from astrocyte.core import failpoint
from astrocyte.model import Bank
from astrocyte.pipelines.knowledge.consolidation import plan
from astrocyte.pipelines.knowledge.consolidator import Written, run
from astrocyte.pipelines.knowledge.scopes import normalised, scopes_of
from astrocyte.stores.knowledge.consolidation import ConsolidationStore, ConsolidationWork, Reached

# Changes of one step: some ten milliseconds' worth, after which others have their turn.
CHANGES_AT_ONCE = 64


class RuleWriter:
    """Writes observations by rules.

    Args:
        store: Memories and observations.
        settings: Of a bank, by its id.
        most: Observations that a bank may have.
        executor: Reads and plans.
    """

    def __init__(
        self,
        store: ConsolidationStore,
        settings: Callable[[str], ConsolidationSettings],
        most: int,
        executor: Executor,
    ) -> None:
        self._store = store
        self._settings = settings
        self._most = most
        self._executor = executor

    def takes(self, bank: Bank) -> bool:
        """True if the bank's observations are written by rules."""
        return self._settings(bank.bank_id).writer == "rules"

    def rest(self) -> float | None:
        """No bank rests."""
        return None

    async def write(self, work: ConsolidationWork) -> Written:
        """One step; raises what `ConsolidationStore.step` does."""
        store, bank = self._store, work.bank
        wanted = list(map(normalised, self._settings(bank.bank_id).scopes))
        memory_ids, position = await run(
            self._executor,
            lambda: store.changed(bank, after=work.position, until=work.target, limit=CHANGES_AT_ONCE),
        )
        actions = await run(
            self._executor,
            lambda: plan(store, bank, memory_ids, self._most, lambda memory: scopes_of(memory, wanted)),
        )
        failpoint("consolidation.planned")
        done, left_out = await store.step(work, actions, Reached(position))
        return Written(len(memory_ids), left_out, done)
