"""Recall's last steps: rows are read back, hits are made of them, and with the trace they become the result.

The database decides what may be seen, whatever the index proposed; the query's filter is checked again (`row_filter`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from astrocyte.config import Settings
from astrocyte.core import Answer
from astrocyte.model import MemoryHit, RecallQuery, RecallResult
from astrocyte.pipelines.recall.boosts import BoostStage
from astrocyte.pipelines.recall.external_context import blend, passing
from astrocyte.pipelines.recall.hits import found
from astrocyte.pipelines.recall.post_ranking import Rescorer, reordered
from astrocyte.pipelines.recall.row_filter import compile_filter
from astrocyte.pipelines.recall.trace import trace_of
from astrocyte.pipelines.search.candidates import Candidate
from astrocyte.pipelines.search.core_request import NOW, visibility
from astrocyte.pipelines.search.plan import Plan
from astrocyte.pipelines.text.time_questions import evidence_of, is_general, with_date
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import HydratedRow, Visibility


class ResultAssembly:
    """Makes results of what the core ranked.

    Args:
        store: Reads hits back.
        settings: The stages after the core that are on, and the weight of what callers bring.
        clock: Milliseconds since the epoch.
    """

    def __init__(self, store: MemoryStore, settings: Settings, clock: Callable[[], int]) -> None:
        self._store = store
        self._settings = settings.recall
        self.rescorer = Rescorer(settings, clock)
        if self.rescorer.usage is not None:
            store.subscribe(self.rescorer.usage.on_commit)

    def finish(self, plan: Plan, response: Answer) -> RecallResult:
        """The result of a plan."""
        query, passages = plan.query, response.passages
        if query.as_of is None and query.valid_at is None and not query.include_archived:
            rows = self._store.hydrate(plan.bank, passages, NOW)
        else:
            rows = self._store.hydrate(plan.bank, passages, visibility(query))
        plan.hydrated = perf_counter()
        return self._result(plan, response, _meeting(query, rows) if plan.narrows else rows)

    def finish_all(self, plans: list[Plan], responses: list[Answer]) -> list[RecallResult]:
        """As `finish` of each, with one read for all that look at the same time."""
        looks: dict[Visibility, dict[int, list[int]]] = {}
        for number, plan in enumerate(plans):
            looks.setdefault(visibility(plan.query), {}).setdefault(plan.bank.key, []).append(number)
        results: list[RecallResult | None] = [None] * len(plans)
        for looked, banks in looks.items():
            asked = [
                (plans[numbers[0]].bank, [passage for number in numbers for passage in responses[number].passages])
                for numbers in banks.values()
            ]
            read = self._store.hydrate_each(asked, looked)
            hydrated = perf_counter()
            for numbers, rows, (_, passages) in zip(banks.values(), read, asked, strict=True):
                # Rows come in the order in which they were asked for.
                whole = len(rows) == len(passages)
                known = {} if whole else {row[:2]: row for row in rows}
                start = 0
                for number in numbers:
                    plan, response = plans[number], responses[number]
                    plan.hydrated = hydrated
                    end = start + len(response.passages)
                    own = rows[start:end] if whole else [known[one] for one in passages[start:end] if one in known]
                    results[number] = self._result(plan, response, _meeting(plan.query, own))
                    start = end
        return [result for result in results if result is not None]

    def rows(self, plan: Plan, passages: Sequence[tuple[int, int]]) -> list[HydratedRow]:
        """Those of the passages that the database lets this query see, in the order given."""
        return _meeting(plan.query, self._store.hydrate(plan.bank, passages, visibility(plan.query)))

    def rows_each(self, asked: Sequence[tuple[Plan, Sequence[tuple[int, int]]]]) -> list[list[HydratedRow]]:
        """As `rows` of each plan of one query, for banks of which each comes once; by one read."""
        if not asked:
            return []
        passages = [(plan.bank, wanted) for plan, wanted in asked]
        read = self._store.hydrate_each(passages, visibility(asked[0][0].query))
        return [_meeting(plan.query, rows) for (plan, _), rows in zip(asked, read, strict=True)]

    def rescored(self, plan: Plan, response: Answer, rows: list[HydratedRow]) -> list[Candidate]:
        """The candidates of the core, in the order of the stages after it."""
        candidates, plan.stages = self.rescorer.run(plan, response, rows)
        return candidates

    def note_use(self, plan: Plan, hits: Sequence[MemoryHit]) -> None:
        """Count that candidates of a plan were of use, where that is counted."""
        if self.rescorer.usage is not None and not plan.trial:
            shown = {hit.memory_id for hit in hits}
            self.rescorer.usage.note([one.row for one in plan.candidates or () if one.row.memory_id in shown])

    def _result(self, plan: Plan, response: Answer, rows: list[HydratedRow]) -> RecallResult:
        query = plan.query
        if plan.lift:
            plan.stages = {BoostStage.name: response.trace.lift_millis}
        if plan.pool and not plan.lift:
            hits, truncated = self._reordered(plan, response, rows)
        else:
            hits, truncated = found(query, response, rows, plan.budget)
        if query.external_context:
            plan.external = passing(query)
            weight = self._settings.external_weight
            hits, dropped = blend(query, hits, plan.external, weight=weight, budget=plan.budget)
            truncated = truncated or dropped
            plan.blended = perf_counter()
        trace = trace_of(plan, response, hits) if query.include_trace else None
        sure = (response.confidence or 0.0) if rows else 0.0
        if plan.question_windows:
            times = [row.occurred_at for row in rows]
            sure = with_date(sure, evidence_of(times, plan.question_windows, only_time=is_general(plan.undated)))
        return RecallResult(
            hits,
            response.candidates + len(plan.external),
            truncated=truncated,
            trace=trace,
            warnings=plan.warnings,
            confidence=sure,
            abstain=sure < self._settings.abstention_floor,
        )

    def _reordered(self, plan: Plan, response: Answer, rows: list[HydratedRow]) -> tuple[Sequence[MemoryHit], bool]:
        """The hits in the order of the stages after the core, within the budget; and whether one was cut or dropped.

        A reranker has the next word on its candidates, and so there are no hits yet.
        """
        plan.candidates = self.rescored(plan, response, rows)
        if plan.reranked:
            plan.arm_names = response.arm_names
            return (), False
        hits, truncated = reordered(plan.query, plan.candidates, response.arm_names, plan.budget)
        self.note_use(plan, hits)
        return hits, truncated


def _meeting(query: RecallQuery, rows: list[HydratedRow]) -> list[HydratedRow]:
    """The rows that meet the query's filter, whatever the index believed."""
    meets = compile_filter(query)
    return rows if meets is None else [row for row in rows if meets(row)]
