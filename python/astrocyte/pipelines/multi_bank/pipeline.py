"""Recall over several banks: asked at once or in turn, fused, and cut to one budget.

1. plan every bank of a step, and embed the question once;
2. core: all banks of the step in one call; for `parallel` that is all banks, for `cascade` and `first_match` one;
3. fuse, share the token budget, and read back what is left (`bank_joining`).

A bank that fails or is late is named in the trace, and the others answer, unless the strategy requires all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import NamedTuple, TypeVar

from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, DeadlineExceeded
from astrocyte.model import BankOutcome, BankStrategy, MemoryHit, MultiBankMode, RecallQuery, RecallResult
from astrocyte.pipelines.multi_bank.bank_answers import Part, Question, counted, good, parts_of
from astrocyte.pipelines.multi_bank.fusion import Candidate, Place
from astrocyte.pipelines.multi_bank.merge import Joined, Joining
from astrocyte.pipelines.multi_bank.trace import trace_of
from astrocyte.pipelines.query.time_windows import optional_ms
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.text.time_questions import evidence_of, is_general, with_date

# Why the banks after it were not asked.
ENOUGH_RESULTS = "enough_results"
MATCHED = "first_match"

T = TypeVar("T")
# What is joined, the banks that count, and when all had been searched.
_Answer = tuple[Joined, Sequence[Part], float]


class Inspection(NamedTuple):
    """An answer of several banks, and what became of their hits.

    Attributes:
        result: The answer.
        parts: All banks of the call, and what was asked of others.
        counted: Those whose hits count.
        gone: Hits that could not be shown, and for which another bank's stand.
        order: All hits of the banks that count but those, best first; their banks are places in ``counted``.
    """

    result: RecallResult
    parts: Sequence[Part]
    counted: Sequence[Part]
    gone: Collection[Place]
    order: Sequence[Candidate] = ()


class MultiBankPipeline:
    """Answers queries to several banks.

    Args:
        recall: What answers each bank.
        settings: Time limits, and how the answers become one.
        executor: Where searches run.
    """

    def __init__(self, recall: RecallPipeline, settings: Settings, executor: Executor) -> None:
        self._recall = recall
        self._joining = Joining(recall, settings)
        self._executor = executor
        self._seconds = settings.multi_bank.bank_timeout_seconds
        self._inline_rows = settings.recall.inline_rows
        self._abstention_floor = settings.recall.abstention_floor

    async def run(self, question: Question) -> RecallResult:
        """The answer of all banks together.

        Raises:
            AstrocyteError: No bank could answer, or one could not and the strategy requires all: the first one's.
        """
        return (await self._run(question)).result

    async def inspect(self, question: Question) -> Inspection:
        """The answer, and all that became of the banks' hits on the way; raises what `run` does."""
        seen = await self._run(question)
        return seen._replace(order=self._joining.order(question, seen.counted, seen.gone))

    async def _run(self, question: Question) -> Inspection:
        start = perf_counter()
        parts = parts_of(question)
        if question.strategy.mode is MultiBankMode.PARALLEL:
            # Searched and joined by one hop to a thread: a change of thread costs as much as a bank.
            planned = await self._planned(question, parts, start)
            answer, own, searched = await self._compute(planned, lambda: self._all(question, parts, planned))
        else:
            await self._in_turn(question, parts, start)
            asked = [part for part in parts if part.response is not None]
            answer, own, searched = await self._compute(asked, lambda: self._joined(question, parts))
        trace = None
        if question.query.include_trace:
            told = answer.told if len(own) == len(parts) else None
            trace = trace_of(parts, answer.hits, question.strategy, start, searched, told)
        sure = _dated(max(answer.told.confidences, default=0.0), parts, answer.hits)
        result = RecallResult(
            answer.hits,
            answer.told.candidates + answer.brought,
            answer.truncated,
            trace,
            warnings=_warnings(parts),
            confidence=sure,
            abstain=sure < self._abstention_floor,
        )
        return Inspection(result, parts, own, answer.gone)

    async def _in_turn(self, question: Question, parts: Sequence[Part], start: float) -> None:
        """Ask one bank after the other, each with what stands beside it, until there is enough."""
        found: set[object] = set()
        reason = ""
        for group in [list(group) for _, group in groupby(parts, lambda part: id(part.leader or part))]:
            if reason:
                for part in group:
                    part.reason = reason
                continue
            planned = await self._planned(question, group, start)
            await self._compute(planned, partial(self._search, planned))
            reason = _enough(question.strategy, group, found)

    async def _compute(self, parts: Sequence[Part], work: Callable[[], T]) -> T:
        """The result of work on banks: on the loop where they are small, else beside it."""
        if sum([part.searched.index.row_count for part in parts]) <= self._inline_rows:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _all(self, question: Question, parts: Sequence[Part], planned: Sequence[Part]) -> _Answer:
        """Search all banks, and go on as `_joined`."""
        self._search(planned)
        return self._joined(question, parts)

    def _joined(self, question: Question, parts: Sequence[Part]) -> _Answer:
        """The answer of the banks that count, these, and when all had been searched, by `perf_counter`."""
        _fail(parts, require_all=question.strategy.require_all)
        searched = perf_counter()
        own = counted(question.strategy, parts)
        return self._joining.join(question, own), own, searched

    async def _planned(self, question: Question, step: Sequence[Part], start: float) -> list[Part]:
        """Those banks of a step that can be searched; of the others is written down why not."""
        # One object for all banks: what it says beyond its words is then found out once.
        query = _for_a_bank(question.query)
        for part in step:
            self._plan(question, _for_part(query, part) if part.only else query, part, start)
        absent = [part for part in step if part.plan is None and part.error is None]
        if absent:
            await asyncio.gather(*[self._load(question, _for_part(query, part), part, start) for part in absent])
        if question.beside:
            # Those that are asked the same stand together.
            step = sorted(step, key=lambda part: part.leader is not None)
        return await self._embed([part for part in step if part.plan is not None])

    async def _embed(self, planned: list[Part]) -> list[Part]:
        """Those of the banks that have what they need: the embedder's failure is that of the banks which need it."""
        try:
            await self._recall.embed([part.searched for part in planned])
        except AstrocyteError as error:
            for part in planned:
                if self._recall.vectors.waits(part.searched):
                    part.failed(error)
            planned = [part for part in planned if part.error is None]
            await self._recall.embed([part.searched for part in planned])
        return planned

    def _plan(self, question: Question, query: RecallQuery, part: Part, start: float) -> None:
        """Plan a bank, unless its index has to be waited for."""
        try:
            part.plan = self._recall.plan_now(part.bank, query, question.most_tokens, start, question.at)
        except AstrocyteError as error:
            part.failed(error)

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
            part.response, part.outcome = response, BankOutcome.SEARCHED


def _for_a_bank(query: RecallQuery) -> RecallQuery:
    """The query as a recall on any bank alone."""
    return replace(query, banks=(), bank_group=None, strategy=None, external_context=())


def _for_part(query: RecallQuery, part: Part) -> RecallQuery:
    """The query as it is put to one bank: the same object, unless only some of its memories are asked."""
    return replace(query, memory_ids=part.only, min_position=0) if part.only else query


def _enough(strategy: BankStrategy, step: Sequence[Part], found: set[object]) -> str:
    """Why no further bank has to be asked, or nothing; what is good enough in this step joins what was found before."""
    if strategy.mode is MultiBankMode.PARALLEL:
        return ""
    for part in step:
        found |= good(part, strategy)
    if strategy.mode is MultiBankMode.FIRST_MATCH:
        return MATCHED if found else ""
    return ENOUGH_RESULTS if len(found) >= strategy.min_results_to_stop else ""


def _fail(parts: Sequence[Part], *, require_all: bool) -> None:
    errors = [part.error for part in parts if part.error is not None and part.leader is None]
    if errors and (require_all or not any(part.response for part in parts)):
        raise errors[0]


def _warnings(parts: Sequence[Part]) -> tuple[str, ...]:
    """The sentences about phrases and prefixes in single banks, each with its bank."""
    return tuple(
        f"bank {part.searched.bank.bank_id}: {warning}"
        for part in parts
        if part.response is not None
        for warning in part.searched.warnings
    )


def _dated(sure: float, parts: Sequence[Part], hits: Sequence[MemoryHit]) -> float:
    """A confidence that takes the dates in the question into account."""
    plans = [part.plan for part in parts if part.plan is not None and part.plan.question_windows]
    if not plans:
        return sure
    windows = [window for plan in plans for window in plan.question_windows]
    times = [optional_ms(hit.occurred_at) for hit in hits]
    return with_date(sure, evidence_of(times, windows, only_time=is_general(plans[0].undated)))
