"""Counterfactuals: the least change of a query, found by trying, that keeps a memory in the answer.

Each stage suggests changes, the smallest first. A change counts when the whole recall, run again with it, returns the
memory, and it may leave the bank. Where one change brings it to a later stage only, that stage suggests a further one.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from astrocyte.model import (
    Counterfactual,
    DetailLevel,
    ExplainStage,
    Explanation,
    MemoryHit,
    MultiBankStrategy,
    RecallQuery,
    TimeRange,
)
from astrocyte.pipelines.explain.filter_conditions import Changes, failing
from astrocyte.pipelines.explain.pipeline import ExplainPipeline, Join, Look, Subject
from astrocyte.pipelines.search.plan import Plan

# Changes that may have to come together.
ROUNDS = 4
# Recalls that one search for a number may take.
GUESSES = 24
# Of a cosine: finer differences say nothing.
COSINE_STEP = 1e-4
# More hits may bring it back.
RANKED = (ExplainStage.MAX_RESULTS, ExplainStage.ARM_CUT, ExplainStage.RERANKING)
# No query returns it.
HOPELESS = (ExplainStage.NOT_FOUND, ExplainStage.INDEX, ExplainStage.POLICY)


@dataclass(frozen=True, slots=True)
class Trial:
    """A query with changes, and what became of the memory in it."""

    changes: Mapping[str, Any]
    look: Look
    told: Explanation

    @property
    def returned(self) -> bool:
        """True if the memory is in the answer."""
        return self.told.stage is ExplainStage.RETURNED


class CounterfactualSearch:
    """Looks for what would have kept one memory.

    Args:
        pipeline: Runs recalls.
        plan: The recall in question.
        subject: The memory.
        passes: A hit as it may leave, or None.
        most_results: How many hits may be asked for.
        overfetch: Candidates of each arm per hit.
        join: Adds observations and mental models to an answer.
    """

    def __init__(  # noqa: PLR0913 - what a trial needs
        self,
        pipeline: ExplainPipeline,
        plan: Plan,
        subject: Subject,
        passes: Callable[[MemoryHit], MemoryHit | None],
        most_results: int,
        overfetch: int,
        *,
        join: Join,
    ) -> None:
        self._pipeline = pipeline
        self._plan = plan
        self._subject = subject
        self._passes = passes
        self._most_results = most_results
        self._overfetch = overfetch
        self._join = join

    async def find(self, asked: RecallQuery, look: Look, told: Explanation) -> Counterfactual | None:
        """The caller's query with the change, or None where none was found."""
        trial = Trial({}, look, told)
        for _ in range(ROUNDS):
            if trial.told.stage in HOPELESS:
                return None
            further = None
            async for attempt in self._attempts(trial):
                if attempt.returned:
                    return counterfactual(asked, await self._needed(attempt.changes))
                if further is None and attempt.told.stage is not trial.told.stage:
                    further = attempt
            if further is None:
                return None
            trial = further
        return None

    async def _needed(self, changes: Changes) -> Changes:
        """Those of several changes without which the memory is not returned: a later one may do for an earlier."""
        needed = dict(changes)
        for name in changes:
            # What tags match by has no sense without them.
            gone = {"tags", "tag_match"} if name in {"tags", "tag_match"} else {name}
            fewer = {other: value for other, value in needed.items() if other not in gone}
            if fewer and (await self._run(fewer)).returned:
                needed = fewer
        return needed

    async def _attempts(self, trial: Trial) -> AsyncIterator[Trial]:
        """The changes that the memory's stage suggests, tried."""
        stage = trial.told.stage
        for changes in suggested(trial.look.plan.query, trial.told, self._subject):
            yield await self._try(trial, changes)
        if stage in RANKED:
            async for attempt in self._more_results(trial):
                yield attempt
        elif stage is ExplainStage.TOKEN_BUDGET:
            async for attempt in self._more_tokens(trial):
                yield attempt
        if stage is not ExplainStage.FILTER:
            # Asked for alone, a memory has no better ones before it.
            yield await self._try(trial, {"memory_ids": (self._subject.memory_id,)})

    async def _more_results(self, trial: Trial) -> AsyncIterator[Trial]:
        """With as many hits as it takes, or as bring it to another stage."""
        wanted = self._guess(trial)
        for _ in range(GUESSES):
            if wanted > self._most_results:
                return
            attempt = await self._try(trial, {"max_results": wanted})
            if attempt.returned:
                attempt = await self._least(trial, "max_results", trial.look.plan.query.max_results, attempt)
            if attempt.told.stage not in RANKED:
                yield attempt
                return
            wanted = max(wanted + 1, self._guess(attempt))

    def _guess(self, trial: Trial) -> int:
        """The number of hits that may be enough."""
        told, now = trial.told, trial.look.plan.query.max_results
        match told.stage:
            case ExplainStage.MAX_RESULTS if not trial.look.plan.pool:
                fate = trial.look.fates[told.memory_id]
                return max(now + 1, fate.place or fate.fused_rank)
            case ExplainStage.ARM_CUT:
                nearest = min(arm.rank for arm in told.arms if arm.rank)
                return max(now + 1, math.ceil(nearest / self._overfetch))
            case _:
                return min(2 * now, self._most_results) if now < self._most_results else now + 1

    async def _more_tokens(self, trial: Trial) -> AsyncIterator[Trial]:
        """With as large a budget as it takes, or as brings it to another stage."""
        least, most = trial.look.plan.budget, trial.look.plan.most_tokens
        attempt, wanted = trial, least
        for _ in range(GUESSES):
            fate = attempt.look.fates[trial.told.memory_id]
            # Where the core lets it in, what is shown of it is what does not fit, and nobody says by how much.
            exact = fate.step == "budget" and fate.shortage > 0
            wanted = wanted + fate.shortage if exact else 2 * wanted
            if wanted > most and (exact or wanted >= 2 * most):
                return
            wanted = min(wanted, most)
            attempt = await self._try(trial, {"max_tokens": wanted})
            if attempt.returned and not exact:
                attempt = await self._least(trial, "max_tokens", least, attempt)
            if attempt.told.stage is not ExplainStage.TOKEN_BUDGET:
                yield attempt
                return

    async def _least(self, trial: Trial, field: str, below: int, found: Trial) -> Trial:
        """The trial with the least number that returns the memory, between one that does not and one that does."""
        nearest = found
        low, high = below, int(found.changes[field])
        # Mostly the number that was found is the least already.
        middle = high - 1
        while high - low > 1:
            attempt = await self._try(trial, {field: middle})
            if attempt.returned:
                nearest, high = attempt, middle
            else:
                low = middle
            middle = (low + high) // 2
        return nearest

    async def _try(self, trial: Trial, changes: Changes) -> Trial:
        return await self._run({**trial.changes, **changes})

    async def _run(self, merged: Changes) -> Trial:
        query = replace(self._plan.query, **merged)
        look = await self._pipeline.look(self._plan, query, [self._subject], self._join)
        return Trial(merged, look, self._pipeline.explain(look, self._subject, self._passes))


def suggested(query: RecallQuery, told: Explanation, subject: Subject) -> Iterator[Changes]:
    """Changes of fixed values that a memory's stage suggests."""
    match told.stage:
        case ExplainStage.FILTER:
            failed = failing(query, subject.versions)
            first: dict[str, Any] = {}
            for one in failed:
                first.update(one.changes[0])
            yield first
            if len(failed) == 1:
                yield from failed[0].changes[1:]
            else:
                yield {name: value for one in failed for name, value in one.changes[-1].items()}
        case ExplainStage.DUPLICATE if told.similarity is not None:
            above = math.floor(told.similarity / COSINE_STEP + 1.0) * COSINE_STEP
            yield {"dedup_threshold": min(round(above, 4), 1.0)}
        case ExplainStage.NO_ARM if query.weights:
            yield {"weights": {}}
        case ExplainStage.TOKEN_BUDGET if query.detail_level is DetailLevel.FULL:
            yield {"detail_level": DetailLevel.CHUNK}


def counterfactual(asked: RecallQuery, changes: Mapping[str, Any]) -> Counterfactual:
    """A query with changes that return the memory in question."""
    query = replace(asked, **changes)
    changed = [name for name in changes if getattr(query, name) != getattr(asked, name)]
    summary = ", ".join(f"{name}={_shown(changes[name])}" for name in changed)
    return Counterfactual(query, tuple(changed), summary)


def _shown(value: object) -> str:
    """A value as a person writes it."""
    match value:
        case TimeRange():
            return f"{_shown(value.start)} to {_shown(value.end)}"
        case datetime():
            return value.isoformat()
        case tuple():
            return f"[{', '.join(map(str, value))}]"
        case None:
            return "none"
        case MultiBankStrategy():
            said = {part.name: getattr(value, part.name) for part in fields(value)}
            usual = MultiBankStrategy()
            return ", ".join(
                f"{name} {one}" for name, one in said.items() if one is not None and one != getattr(usual, name)
            )
        case _:
            return str(value)
