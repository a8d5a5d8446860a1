"""Participants in a recall beside the core: query analysers, external stores, custom arms, and a custom fusion."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from astrocyte.pipelines.custom.fusion import CustomFusion
from astrocyte.pipelines.custom.query_analysis import CustomAnalysis
from astrocyte.pipelines.custom.retrieval_arms import CustomArms
from astrocyte.pipelines.external_stores.stores import ExternalStores
from astrocyte.pipelines.query.reference import ReferenceClock
from astrocyte.pipelines.search.plan import Plan

if TYPE_CHECKING:
    # It comes with an extra.
    from astrocyte.pipelines.query.multilingual_dates import MultilingualDates


@dataclass(frozen=True, slots=True)
class RecallStages:
    """The custom steps of a recall: query analyser, arms and fusion."""

    analysis: CustomAnalysis | None = None
    arms: CustomArms | None = None
    fusion: CustomFusion | None = None


NO_STAGES = RecallStages()


class Others:
    """Asks them.

    Args:
        external: External stores, if there are any.
        multilingual: Parses dates of other languages than English; None if they are not configured.
        stages: Steps that others wrote.
        executor: Where dates are looked for.
        references: Knows what relative dates count from.
    """

    def __init__(
        self,
        external: ExternalStores | None,
        multilingual: MultilingualDates | None,
        stages: RecallStages,
        executor: Executor,
        references: ReferenceClock,
    ) -> None:
        self._external = external
        self._multilingual = multilingual
        self._stages = stages
        self._executor = executor
        self._references = references
        self.fusion = stages.fusion
        self.propose_any = external is not None or stages.arms is not None
        self.reads_any = multilingual is not None or stages.analysis is not None
        self.any = self.propose_any or multilingual is not None or stages != NO_STAGES

    async def read(self, plans: Sequence[Plan]) -> None:
        """Analyse the questions: dates of other languages, and the custom analysis."""
        if self.reads_any:
            for plan in plans:
                plan.reference = self._references.of(plan.query, plan.bank.bank_id)
        if self._multilingual is not None:
            await self._date(plans, self._multilingual)
        if self._stages.analysis is not None:
            await self._stages.analysis.analyse(plans)

    async def propose(self, plans: Sequence[Plan]) -> None:
        """Set the proposals of stores and arms in the plans; all are queried concurrently."""
        if not self.propose_any:
            return
        waiting = [plan for plan in plans if plan.outside is None]
        arms = self._stages.arms
        if arms is None:
            if self._external is not None:
                await self._external.ask(waiting)
            return
        asked = asyncio.gather(*[arms.ask(plan) for plan in waiting])
        if self._external is not None:
            await asyncio.gather(self._external.ask(waiting), asked)
        lists = await asked
        for plan, own in zip(waiting, lists, strict=True):
            plan.outside = [*(plan.outside or ()), *own]
            plan.asked = perf_counter()

    async def _date(self, plans: Sequence[Plan], multilingual: MultilingualDates) -> None:
        """Parse dates of other languages in the executor: a question takes tens of milliseconds."""
        run = asyncio.get_running_loop().run_in_executor
        for plan in plans:
            if plan.reference is not None and plan.query.query:
                plan.multilingual_windows = await run(
                    self._executor, multilingual.windows, plan.query.query, plan.reference
                )
