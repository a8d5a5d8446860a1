"""Recall over several banks: asked at once or in turn, fused, and cut to one budget.

1. plan every bank of a step, and embed the question once;
2. core: all banks of the step in one call; for `parallel` that is all banks, for `cascade` and `first_match` one;
3. fuse (`bank_fusion`), and share the token budget;
4. hydrate what is left, each bank's hits from that bank.

A bank that fails or is late is named in the trace, and the others answer, unless the strategy requires all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import NamedTuple

from astrocyte.config import Settings
from astrocyte.core import Hit, count_tokens
from astrocyte.errors import AstrocyteError, DeadlineExceeded
from astrocyte.model import (
    Bank,
    BankOutcome,
    BankStrategy,
    DetailLevel,
    MemoryHit,
    MultiBankMode,
    RecallQuery,
    RecallResult,
)
from astrocyte.pipelines import detail
from astrocyte.pipelines.abstention import confidence
from astrocyte.pipelines.bank_fusion import BankList, Candidate, Spread, fuse, split_budget
from astrocyte.pipelines.bank_trace import Part, trace_of
from astrocyte.pipelines.external import blend, passing
from astrocyte.pipelines.indexing import id_to_bytes
from astrocyte.pipelines.recall import RecallPipeline
from astrocyte.pipelines.rescoring import boosted
from astrocyte.pipelines.shaping import hit_of, text_of
from astrocyte.stores.protocols import HydratedRow

# Why the banks after it were not asked.
ENOUGH_RESULTS = "enough_results"
MATCHED = "first_match"

# Outside lists have no spread over all memories: their best score of 1 stands out as much as in the core's fusion.
OUTSIDE_SPREAD = Spread(1, 0.0, 1.0 / 3.0)

# A hit among all banks: the place of its bank, its row key and ordinal.
Place = tuple[int, int, int]
# A candidate with its row, and what it shows with its tokens.
Shown = tuple[Candidate, HydratedRow, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Question:
    """A query to several banks, in the order in which they are asked; the strategy is complete.

    Errors of its fields are told with ``at`` before their names. ``refuses`` says of a memory whether its bank keeps it
    out of answers, in which case another bank may show the same. ``beside`` has, by bank, memories of other banks that
    are relevant to it.
    """

    query: RecallQuery
    banks: Sequence[Bank]
    strategy: BankStrategy
    most_tokens: int
    at: str = ""
    refuses: Callable[[MemoryHit], bool] = lambda _: False
    beside: Mapping[str, Sequence[tuple[Bank, tuple[str, ...]]]] = field(default_factory=dict)


class _Answer(NamedTuple):
    """What leaves; ``brought`` counts the caller's items that passed the filter."""

    hits: tuple[MemoryHit, ...]
    truncated: bool
    brought: int


class MultiBankPipeline:
    """Answers queries to several banks.

    Args:
        recall: What answers each bank.
        settings: Time limits, and k of rrf.
        executor: Where searches run.
    """

    def __init__(self, recall: RecallPipeline, settings: Settings, executor: Executor) -> None:
        self._recall = recall
        self._executor = executor
        self._seconds = settings.multi_bank.bank_timeout_seconds
        self._rank_constant = settings.recall.rank_constant
        self._external_weight = settings.recall.external_weight
        self._inline_rows = settings.recall.inline_rows
        self._abstention_floor = settings.recall.abstention_floor

    async def run(self, question: Question) -> RecallResult:
        """The answer of all banks together.

        Raises:
            AstrocyteError: No bank could answer, or one could not and the strategy requires all: the first one's.
        """
        start = perf_counter()
        groups = [_parts(question, bank) for bank in question.banks]
        parts = [part for group in groups for part in group]
        parallel = question.strategy.mode is MultiBankMode.PARALLEL
        for step in [parts] if parallel else groups:
            await self._ask(question, step, start)
            reason = _enough(question.strategy, parts)
            if reason:
                for part in parts:
                    if part.outcome is BankOutcome.NOT_NEEDED:
                        part.reason = reason
                break
        _fail(parts, require_all=question.strategy.require_all)
        searched = perf_counter()
        if sum(part.searched.index.row_count for part in parts if part.response is not None) <= self._inline_rows:
            answer = self._answer(question, parts)
        else:
            run = asyncio.get_running_loop().run_in_executor
            answer = await run(self._executor, self._answer, question, parts)
        available = sum(part.response.candidates for part in _counted(question.strategy, parts) if part.response)
        sure = max(
            [confidence(part.response) for part in _counted(question.strategy, parts) if part.response], default=0.0
        )
        result = RecallResult(
            answer.hits,
            available + answer.brought,
            answer.truncated,
            confidence=sure,
            abstain=sure < self._abstention_floor,
        )
        if not question.query.include_trace:
            return result
        return replace(result, trace=trace_of(parts, answer.hits, question.strategy, start, searched))

    async def _ask(self, question: Question, step: Sequence[Part], start: float) -> None:
        """Search the banks of a step, and write down what became of each."""
        # One object for all banks: what it says beyond its words is then found out once.
        query = _for_a_bank(question.query)
        await asyncio.gather(
            *[
                self._load(question, asked, part, start)
                for part, asked in [(part, _for_part(query, part)) for part in step]
                if not self._plan(question, asked, part, start)
            ]
        )
        # Those that are asked the same stand together.
        step = sorted(step, key=lambda part: part.leader is not None)
        planned = await self._embed([part for part in step if part.plan is not None])
        rows = sum(part.plan.index.row_count for part in planned if part.plan is not None)
        if rows <= self._inline_rows:
            self._search(planned)
        else:
            await asyncio.get_running_loop().run_in_executor(self._executor, self._search, planned)

    async def _embed(self, planned: list[Part]) -> list[Part]:
        """Those of the banks that have what they need: the embedder's failure is that of the banks which need it."""
        try:
            await self._recall.embed([part.searched for part in planned])
        except AstrocyteError as error:
            for part in planned:
                if self._recall.waits(part.searched):
                    part.failed(error)
            planned = [part for part in planned if part.error is None]
            await self._recall.embed([part.searched for part in planned])
        return planned

    def _plan(self, question: Question, query: RecallQuery, part: Part, start: float) -> bool:
        """Plan a bank whose index is there; False if it has to be waited for."""
        try:
            part.plan = self._recall.plan_now(part.bank, query, question.most_tokens, start, question.at)
        except AstrocyteError as error:
            part.failed(error)
        return part.plan is not None or part.outcome is BankOutcome.FAILED

    async def _load(self, question: Question, query: RecallQuery, part: Part, start: float) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                part.plan = await self._recall.plan(part.bank, query, question.most_tokens, start, question.at)
        except TimeoutError:
            message = f"bank {part.bank.bank_id!r} was not ready within {self._seconds:g} s"
            part.failed(DeadlineExceeded(message), BankOutcome.LATE)
        except AstrocyteError as error:
            part.failed(error)

    def _search(self, planned: Sequence[Part]) -> None:
        """All in one call; should that fail, each for itself, to see whose fault it is."""
        plans = [part.plan for part in planned if part.plan is not None]
        try:
            responses = self._recall.search(plans)
        except AstrocyteError as error:
            if len(planned) == 1:
                planned[0].failed(error)
                return
            for part in planned:
                self._search([part])
            return
        for part, response in zip(planned, responses, strict=True):
            part.answered(response)

    def _answer(self, question: Question, parts: Sequence[Part]) -> _Answer:
        """The hits of the banks that count, and what the caller brought, within the budget."""
        query, counted = question.query, _counted(question.strategy, parts)
        for part in counted:
            self._rescore(part)
        gone: set[Place] = set()
        hits, truncated, missing = self._fused(question, counted, gone)
        while missing:
            # Another bank holds what one of these says.
            gone |= missing
            hits, truncated, missing = self._fused(question, counted, gone)
        external = passing(query) if query.external_context else []
        if external:
            budget = _budget(question)
            hits, dropped = blend(query, hits, external, weight=self._external_weight, budget=budget)
            truncated = truncated or dropped
        return _Answer(hits, truncated, len(external))

    def _fused(
        self, question: Question, counted: Sequence[Part], gone: AbstractSet[Place]
    ) -> tuple[tuple[MemoryHit, ...], bool, set[Place]]:
        """The hits of the banks but for those that are gone, within the budget; whether one was cut or left out for it.

        And which of them cannot be shown, though another bank holds the same: the answer is to be made without them.
        """
        query, strategy = question.query, question.strategy
        groups = _groups(counted)
        fused = fuse(
            self._lists(counted, gone, groups),
            strategy.fusion_method,
            query.rank_constant or self._rank_constant,
            dedup=strategy.dedup_across_banks,
        )
        budget = _budget(question)
        titles = query.detail_level is DetailLevel.TITLES
        # Titles are counted when they are made, so that only those are made that may be wanted.
        chosen = fused[: query.max_results] if titles else []
        shown = self._shown(query, counted, chosen)
        sizes = (
            [(groups[one.bank], tokens) for one, _, (_, tokens) in shown]
            if titles
            else [(groups[one.bank], one.hit.tokens) for one in fused]
        )
        share = split_budget(sizes, [part.weight for part in counted], budget, query.max_results)
        if titles:
            found = [one for one, _, _ in shown]
            shown = [shown[place] for place in share.places]
        else:
            chosen = [fused[place] for place in share.places]
            shown = self._shown(query, counted, chosen)
            found = [one for one, _, _ in shown]
        missing = {_place(one) for one in chosen if one.others} - {_place(one) for one in found}
        if share.cut and shown:
            one, row, (text, _) = shown[0]
            text = detail.cut(text, budget)
            shown = [(one, row, (text, count_tokens(text)))]
        for part, tokens in zip(counted, share.parts, strict=True):
            part.token_budget = tokens
        truncated = share.truncated or any(part.response.truncated for part in counted if part.response is not None)
        hits = tuple(_hit(counted, one) for one in shown)
        refused = [one for (one, _, _), hit in zip(shown, hits, strict=True) if one.others and question.refuses(hit)]
        missing.update(map(_place, refused))
        return hits, truncated, missing

    def _lists(self, counted: Sequence[Part], gone: AbstractSet[Place], groups: Sequence[int]) -> list[BankList]:
        """What the banks answered, without the hits that are gone."""
        if not counted:
            return []
        # The query is the same for all, and so are the weights.
        weights = self._recall.arm_weights(counted[0].searched)
        by_arm = dict(zip(("semantic", "keyword", "temporal"), weights, strict=True))
        return [
            self._list(part, _left(number, part, gone), by_arm, groups[number]) for number, part in enumerate(counted)
        ]

    def _list(self, part: Part, hits: Sequence[Hit], by_arm: Mapping[str, float], group: int) -> BankList:
        assert part.response is not None  # noqa: S101 - only banks that answered count
        response, names, allowed = part.response, part.response.arm_names, part.response.allowed
        spreads = [Spread(allowed, mean, deviation) for mean, deviation in response.arm_spreads]
        outside = part.searched.outside
        if outside:
            by_arm = {**by_arm, **{name: weight for name, weight, _ in outside}}
            proposers = {name for name, _, _ in outside}
            spreads = [
                OUTSIDE_SPREAD if name in proposers else spread for name, spread in zip(names, spreads, strict=True)
            ]
        return BankList(
            part.weight,
            hits,
            names,
            [by_arm.get(name, 1.0) for name in names],
            spreads,
            part.searched.index.model,
            self._lifts(part, hits),
            group,
        )

    def _rescore(self, part: Part) -> None:
        """Put the bank's hits into the order of the stages after the core, where one has something to do."""
        plan = part.searched
        if plan.pool and part.response is not None:
            candidates = self._recall.rescored(plan, part.response, self._recall.rows(plan, part.response.passages))
            kept = candidates[: plan.query.max_results]
            part.ranked = [one.hit for one in kept]
            part.boosted = {one.hit.key: one for one in kept}

    def _lifts(self, part: Part, hits: Sequence[Hit]) -> list[float]:
        """What the stages after the core added to each hit, in deviations; nothing where none ran."""
        if part.ranked is None:
            return []
        unit = self._recall.unit(part.searched)
        return [(part.boosted[hit.key].score - hit.score) / unit for hit in hits]

    def _shown(self, query: RecallQuery, parts: Sequence[Part], chosen: Sequence[Candidate]) -> list[Shown]:
        """The candidates that the database knows, in their order, each read from its own bank."""
        passages: dict[int, list[tuple[int, int]]] = {}
        for one in chosen:
            passages.setdefault(one.bank, []).append((one.hit.key, one.hit.ordinal))
        rows: dict[tuple[int, int, int], HydratedRow] = {}
        for number, wanted in passages.items():
            plan = parts[number].plan
            if plan is not None:
                rows.update({(number, *row[:2]): row for row in self._recall.rows(plan, wanted)})
        shown = []
        for one in chosen:
            row = rows.get((one.bank, one.hit.key, one.hit.ordinal))
            if row is not None:
                shown.append((one, row, text_of(query.detail_level, one.hit, row)))
        return shown


def _budget(question: Question) -> int:
    """Tokens for all hits: the caller's wish, under the ceiling."""
    wish, most = question.query.max_tokens, question.most_tokens
    return most if wish is None else min(wish, most)


def _for_a_bank(query: RecallQuery) -> RecallQuery:
    """The query as a recall on any bank alone."""
    return replace(query, banks=(), bank_group=None, strategy=None, external_context=())


def _parts(question: Question, bank: Bank) -> list[Part]:
    """A bank's part of a call, and those of other banks' memories that are relevant to it."""
    leader = Part(bank, question.strategy.bank_weights.get(bank.bank_id, 1.0))
    wanted = {id_to_bytes(one) for one in question.query.memory_ids}
    parts = [leader]
    for other, memory_ids in question.beside.get(bank.bank_id, ()):
        only = tuple(one for one in memory_ids if not wanted or id_to_bytes(one) in wanted)
        if only:
            parts.append(Part(other, leader.weight, leader, only))
    return parts


def _for_part(query: RecallQuery, part: Part) -> RecallQuery:
    """The query as it is put to one bank: the same object, unless only some of its memories are asked."""
    return replace(query, memory_ids=part.only, min_position=0) if part.only else query


def _groups(parts: Sequence[Part]) -> list[int]:
    """For each part the place of the first one that belongs together with it."""
    first: dict[int, int] = {}
    return [first.setdefault(id(part.leader or part), place) for place, part in enumerate(parts)]


def _place(one: Candidate) -> Place:
    return one.bank, one.hit.key, one.hit.ordinal


def _left(number: int, part: Part, gone: AbstractSet[Place]) -> Sequence[Hit]:
    """The bank's hits but for those that are gone."""
    hits = part.hits
    return [hit for hit in hits if (number, hit.key, hit.ordinal) not in gone] if gone else hits


def _counted(strategy: BankStrategy, parts: Sequence[Part]) -> list[Part]:
    """The banks whose hits count: for a first match that bank alone, should there be one."""
    answered = [part for part in parts if part.response is not None]
    if strategy.mode is MultiBankMode.FIRST_MATCH:
        last = {id(part.leader or part) for part in answered[-1:]}
        group = [part for part in answered if id(part.leader or part) in last]
        return group if any(_good(part, strategy) for part in group) else []
    return answered


def _enough(strategy: BankStrategy, parts: Sequence[Part]) -> str:
    """Why no further bank has to be asked, or nothing."""
    match strategy.mode:
        case MultiBankMode.PARALLEL:
            return ""
        case MultiBankMode.FIRST_MATCH:
            return MATCHED if any(_good(part, strategy) for part in parts) else ""
        case MultiBankMode.CASCADE:
            found: set[object] = set()
            for part in parts:
                found.update(_good(part, strategy))
            return ENOUGH_RESULTS if len(found) >= strategy.min_results_to_stop else ""


def _good(part: Part, strategy: BankStrategy) -> set[object]:
    """The bank's hits that are good enough to stop for: contents, where repeats are folded, else memories."""
    if part.response is None or part.weight <= 0.0:
        return set()
    least = strategy.min_score_to_stop
    good = [hit for hit in part.response.hits if least is None or hit.score >= least]
    if strategy.dedup_across_banks:
        return {hit.content_hash for hit in good}
    return {(part.bank.bank_id, hit.memory_id) for hit in good}


def _fail(parts: Sequence[Part], *, require_all: bool) -> None:
    errors = [part.error for part in parts if part.error is not None and part.leader is None]
    if errors and (require_all or not any(part.response for part in parts)):
        raise errors[0]


def _hit(parts: Sequence[Part], shown: Shown) -> MemoryHit:
    """The hit that leaves, with its place in its own bank and the other banks that hold it."""
    one, row, text = shown
    part = parts[one.bank]
    names = [] if part.response is None else part.response.arm_names
    hit = hit_of(part.query, one.hit, row, names, text)
    if one.hit.key in part.boosted:
        hit = boosted(hit, part.boosted[one.hit.key])
    return replace(
        hit,
        bank_id=part.bank.bank_id,
        score=one.score,
        bank_rank=one.rank,
        also_in=tuple(parts[other].bank.bank_id for other in one.others),
    )
