"""Counterfactuals of answers of several sides: as `counterfactuals`, with changes of the strategy.

Nothing is known here of what a number would have to be, so numbers are doubled until they help, and halved from there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

from astrocyte.errors import ValidationError
from astrocyte.model import Counterfactual, ExplainStage, Explanation, MultiBankMode, RecallQuery
from astrocyte.model.multi_bank import OPEN_STRATEGY
from astrocyte.pipelines.explain.counterfactuals import RANKED, counterfactual, suggested
from astrocyte.pipelines.explain.filter_conditions import Changes
from astrocyte.pipelines.explain.pipeline import Subject

# Changes that may have to come together, and ways that are followed from each.
ROUNDS = 5
WIDTH = 3
# Stages at which it matters that a bank has weight 0.
WEIGHED = (ExplainStage.BANK_NOT_ASKED, ExplainStage.BANK_FUSION)
# More hits may bring it back.
OUTRANKED = (*RANKED, ExplainStage.BANK_FUSION, ExplainStage.ENGINE_FUSION)
# No query returns it, or none of which that could be said.
HOPELESS = (ExplainStage.NOT_FOUND, ExplainStage.INDEX, ExplainStage.POLICY, ExplainStage.BANK_UNAVAILABLE)


@dataclass(frozen=True, slots=True)
class _Trial:
    changes: Changes
    query: RecallQuery
    told: Explanation

    @property
    def returned(self) -> bool:
        return self.told.stage is ExplainStage.RETURNED


class SeveralCounterfactuals:
    """Looks for what would have kept one memory.

    Args:
        run: Runs a query, and says what became of the memory.
        subject: The memory.
        asked: The query as it was run.
        told: What became of the memory then.
        most_results: How many hits may be asked for.
        most_tokens: How large a budget may be.
    """

    def __init__(
        self,
        run: Callable[[RecallQuery], Awaitable[Explanation]],
        subject: Subject,
        asked: RecallQuery,
        told: Explanation,
        most_results: int,
        most_tokens: int,
    ) -> None:
        self._run = run
        self._subject = subject
        self._asked = asked
        self._told = told
        self._most_results = most_results
        self._most_tokens = most_tokens

    async def find(self, asked: RecallQuery) -> Counterfactual | None:
        """The caller's query with the change, or None where none was found."""
        if self._told.stage in HOPELESS:
            return None
        trials = [_Trial({}, self._asked, self._told)]
        for _ in range(ROUNDS):
            further: list[_Trial] = []
            for trial in trials[:WIDTH]:
                async for attempt in self._attempts(trial):
                    if attempt.returned:
                        return counterfactual(asked, await self._needed(attempt.changes))
                    if attempt.told.stage is not trial.told.stage:
                        further.append(attempt)
            trials = [one for one in further if one.told.stage not in HOPELESS]
        return None

    async def _needed(self, changes: Changes) -> Changes:
        """Those of several changes without which the memory is not returned."""
        needed = dict(changes)
        for name in changes:
            gone = {"tags", "tag_match"} if name in {"tags", "tag_match"} else {name}
            fewer = {other: value for other, value in needed.items() if other not in gone}
            if fewer and (await self._with(fewer)).returned:
                needed = fewer
        return needed

    async def _attempts(self, trial: _Trial) -> AsyncIterator[_Trial]:
        """The changes that the memory's stage suggests, tried."""
        stage, query = trial.told.stage, trial.query
        for changes in (*suggested(query, trial.told, self._subject), *self._of_banks(trial)):
            yield await self._with({**trial.changes, **changes})
        if stage in OUTRANKED:
            yield await self._more(trial, "max_results", query.max_results, self._most_results)
        elif stage is ExplainStage.TOKEN_BUDGET:
            now = min(query.max_tokens or self._most_tokens, self._most_tokens)
            yield await self._more(trial, "max_tokens", now, self._most_tokens)
        if stage is not ExplainStage.FILTER:
            # Asked for alone, a memory has no better ones before it.
            yield await self._with({**trial.changes, "memory_ids": (self._subject.memory_id,)})

    @staticmethod
    def _of_banks(trial: _Trial) -> Iterator[Changes]:
        """Changes of how several banks are asked."""
        strategy, told = trial.query.strategy or OPEN_STRATEGY, trial.told
        if not told.bank_id:
            return
        weights = strategy.bank_weights or {}
        if told.stage is ExplainStage.BANK_NOT_ASKED:
            # What ends a search that asks all at once is refused.
            parallel = replace(strategy, mode=MultiBankMode.PARALLEL, min_score_to_stop=None)
            strategy = replace(parallel, min_results_to_stop=None)
            yield {"strategy": strategy}
        elif told.stage is ExplainStage.DUPLICATE and told.similarity is None:
            yield {"strategy": replace(strategy, dedup_across_banks=False)}
        if told.stage in WEIGHED and weights.get(told.bank_id, 1.0) <= 0.0:
            yield {"strategy": replace(strategy, bank_weights={**weights, told.bank_id: 1.0})}

    async def _more(self, trial: _Trial, field: str, now: int, most: int) -> _Trial:
        """With the least larger number that returns it, or brings it to another stage; else with the largest."""
        low = now
        attempt = trial
        while low < most:
            attempt = await self._with({**trial.changes, field: min(2 * low, most)})
            if attempt.told.stage is not trial.told.stage:
                break
            low = min(2 * low, most)
        if not attempt.returned:
            return attempt
        high = int(attempt.changes[field])
        while high - low > 1:
            middle = (low + high) // 2
            between = await self._with({**trial.changes, field: middle})
            if between.returned:
                attempt, high = between, middle
            else:
                low = middle
        return attempt

    async def _with(self, changes: Changes) -> _Trial:
        query = replace(self._asked, **changes)
        try:
            return _Trial(changes, query, await self._run(query))
        except ValidationError:
            # A group of banks says something that does not go with it.
            return _Trial(changes, query, self._told)
