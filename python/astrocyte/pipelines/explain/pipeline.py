"""Explain: what became of certain memories in a recall.

A recall is run again as it was asked, by the same pipeline, and the core tells beside it what each step did with the
memories in question (`astrocyte.core.Bank.explain`). The database says whether a memory is there, and which conditions
of the query it does not meet. What would have kept it is searched for by trying (`counterfactuals`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, replace
from time import perf_counter

from astrocyte.core import Explanation as CoreExplanation
from astrocyte.core import Fate
from astrocyte.model import (
    ArmStanding,
    Bank,
    Boost,
    BorrowedScore,
    ExplainStage,
    Explanation,
    ItemExplanation,
    Memory,
    MemoryHit,
    RecallQuery,
    RecallResult,
)
from astrocyte.pipelines.explain.filter_conditions import failing
from astrocyte.pipelines.index.rows import bytes_to_id, id_to_bytes
from astrocyte.pipelines.recall.hits import MENTAL_MODEL_ARM, OBSERVATION_ARM, fitting
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.search.plan import Plan
from astrocyte.stores.protocols import MemoryStore

# A commit may come between the two looks at the index; then both are done again, so often at most.
TRIES = 3
# How an answer's plan begins where graphs were walked.
GRAPH = "graph"
# Arms of hits that are not memories.
ITEM_ARMS = frozenset({OBSERVATION_ARM, MENTAL_MODEL_ARM})

# Where a memory fell out, why, and the conditions of the query that exclude it.
Fallen = tuple[ExplainStage, str, tuple[str, ...]]
# An answer with observations and mental models, as recalls add them, and the fate of each.
Join = Callable[[RecallQuery, RecallResult], Awaitable[tuple[RecallResult, tuple[ItemExplanation, ...]]]]


@dataclass(frozen=True, slots=True)
class Subject:
    """A memory that is asked about, with all its versions, oldest first; none where it is not to be found."""

    memory_id: str
    versions: Sequence[Memory]


@dataclass(frozen=True, slots=True)
class Look:
    """A recall that was run, and what the core says of the subjects, by memory id.

    ``answer`` has the memories. ``joined`` has the observations and mental models between them, and ``items`` is the
    fate of each.
    """

    plan: Plan
    answer: RecallResult
    core: CoreExplanation
    fates: Mapping[str, Fate]
    joined: RecallResult
    items: tuple[ItemExplanation, ...] = ()

    @property
    def position(self) -> int:
        """The bank's, when the core looked."""
        return self.core.response.position


class ExplainPipeline:
    """Runs recalls again, and tells of the memories in question.

    Args:
        store: Knows which memories there are.
        recall: What is explained.
        executor: Where large banks are searched.
        inline_rows: Up to how many rows they are not large.
    """

    def __init__(self, store: MemoryStore, recall: RecallPipeline, executor: Executor, inline_rows: int) -> None:
        self._store = store
        self._recall = recall
        self._executor = executor
        self._inline_rows = inline_rows

    async def plan(self, bank: Bank, query: RecallQuery, most_tokens: int) -> Plan:
        """The query, ready to be run as often as wanted: its text is embedded once. Raises what a recall does."""
        plan = await self._recall.plan(bank, replace(query, include_trace=True), most_tokens, perf_counter())
        plan.trial = True
        await self._recall.embed([plan])
        return plan

    def subjects(self, bank: Bank, memory_ids: Sequence[str]) -> list[Subject]:
        """The memories, as the database has them."""
        return [Subject(memory_id, self._store.versions(bank, memory_id)) for memory_id in memory_ids]

    async def look(self, plan: Plan, query: RecallQuery, subjects: Sequence[Subject], join: Join | None = None) -> Look:
        """Run a query in the place of the plan's, and ask the core about the subjects; None joins nothing."""
        named = (id_to_bytes(subject.memory_id) for subject in subjects)
        identities = [one for one in dict.fromkeys(named) if one is not None]
        tries = TRIES
        while True:
            asked = copy(plan)
            asked.query, asked.outside = query, None
            if self._recall.vectors.waits(asked):
                await self._recall.embed([asked])
            answer = await self._recall.answer(asked)
            core = await self.ask(asked, identities)
            tries -= 1
            if not tries or answer.trace is None or answer.trace.position == core.response.position:
                break
        fates = {bytes_to_id(fate.memory_id): fate for fate in core.fates}
        joined, items = (answer, ()) if join is None else await join(asked.query, answer)
        return Look(asked, answer, core, fates, joined, items)

    async def ask(self, plan: Plan, identities: Sequence[bytes]) -> CoreExplanation:
        """The core's explanation of memories in a recall that was answered."""
        request = self._recall.request(plan)
        if plan.index.small(self._inline_rows):
            # Many of these may follow each other; others want the loop too.
            await asyncio.sleep(0)
            return plan.index.core.explain(request, identities)
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, plan.index.core.explain, request, identities
        )

    def visible(self, plan: Plan, passage: tuple[int, int]) -> bool:
        """True if the database lets a query see what the index proposes."""
        return bool(self._recall.assembly.rows(plan, [passage]))

    def explain(self, look: Look, subject: Subject, passes: Callable[[MemoryHit], MemoryHit | None]) -> Explanation:
        """The fate of a memory, without the change that would have kept it.

        Args:
            look: The recall.
            subject: The memory.
            passes: The hit as it may leave, or None.
        """
        if not subject.versions:
            return Explanation(subject.memory_id, ExplainStage.NOT_FOUND, "there is no such memory")
        fate = look.fates[bytes_to_id(id_to_bytes(subject.memory_id) or b"")]
        told = told_by(look.core, subject, fate, look.plan)
        known = subject.versions[-1].memory_id
        rank, hit = place_of(look.joined, known)
        if hit is not None:
            return returned(told, rank, hit, passes(hit))
        rank, hit = place_of(look.answer, known)
        if hit is not None:
            return displaced(told, look.plan.query, look.joined, rank)
        stage, detail, conditions = self._stage(look, subject, fate)
        return replace(told, stage=stage, detail=detail, conditions=conditions)

    def _stage(self, look: Look, subject: Subject, fate: Fate) -> Fallen:
        """Where a memory fell out, why, and the conditions that exclude it."""
        return in_the_core(look.plan.query, look.core, subject, fate) or (*self._after_the_core(look, fate), ())

    def _after_the_core(self, look: Look, fate: Fate) -> tuple[ExplainStage, str]:
        """Where a memory fell out that the core's scan has among the hits."""
        query, answer, response = look.plan.query, look.answer, look.core.response
        rows = self._recall.assembly.rows(look.plan, response.passages)
        place = next((hit for hit in response.hits if hit.memory_id == fate.memory_id), None)
        if place is None or not any(row[:2] == (place.key, place.ordinal) for row in rows):
            return ExplainStage.INDEX, "the database does not let the query see what the index proposes"
        if answer.trace is not None and (answer.trace.plan or "").startswith(GRAPH):
            return ExplainStage.APPROXIMATE_SEARCH, "the walk of the bank's graphs passed it over"
        if look.plan.pool:
            return _rescored(look, fate)
        if len(answer.hits) < query.max_results and answer.truncated:
            return ExplainStage.TOKEN_BUDGET, "what is shown of it did not fit"
        return ExplainStage.MAX_RESULTS, "results from elsewhere were better"


def place_of(answer: RecallResult, memory_id: str) -> tuple[int, MemoryHit | None]:
    """Rank and hit of a memory in an answer; 0 and None where it is not there."""
    for rank, hit in enumerate(answer.hits, 1):
        if hit.memory_id == memory_id and not any(own.arm in ITEM_ARMS for own in hit.arms):
            return rank, hit
    return 0, None


def displaced(told: Explanation, query: RecallQuery, joined: RecallResult, rank: int) -> Explanation:
    """Of a memory, number ``rank`` of them, whose place in the answer an observation or a mental model took."""
    if len(joined.hits) < query.max_results and joined.truncated:
        stage, reason = ExplainStage.TOKEN_BUDGET, "did not fit beside observations and mental models"
    else:
        stage, reason = ExplainStage.MAX_RESULTS, "observations and mental models took the places"
    return replace(told, stage=stage, detail=f"rank {rank} of the memories, and {reason}", rank=0, score=None)


def in_the_core(query: RecallQuery, core: CoreExplanation, subject: Subject, fate: Fate) -> Fallen | None:
    """Where the core leaves a memory out, why, and the conditions that exclude it; None where it does not."""
    match fate.step:
        case "unknown" | "filter":
            failed = tuple(one.field for one in failing(query, subject.versions))
            if failed:
                return ExplainStage.FILTER, f"it does not meet {', '.join(failed)}", failed
            return ExplainStage.INDEX, "the index has not what the database has", ()
        case "arms":
            found = _unproposed(core, fate)
        case "duplicate":
            found = (ExplainStage.DUPLICATE, "it repeats a better hit")
        case "budget":
            found = (ExplainStage.TOKEN_BUDGET, f"{fate.tokens} tokens, where {fate.left} were left")
        case "results":
            found = (ExplainStage.MAX_RESULTS, f"fused rank {fate.fused_rank}, behind enough others")
        case _:
            return None
    return (*found, ())


def _rescored(look: Look, fate: Fate) -> tuple[ExplainStage, str]:
    """Where a candidate fell out of which the stages after the core had the word."""
    query, response = look.plan.query, look.core.response
    ranked = look.plan.candidates or ()
    place = next((at for at, one in enumerate(ranked) if one.hit.memory_id == fate.memory_id), None)
    if place is None:
        return ExplainStage.RERANKING, "a stage after the fusion left it out"
    before = [(one.hit, one.row) for one in ranked[:place]]
    hits, _ = fitting(query, before, response.arm_names, look.plan.budget)
    if len(hits) < query.max_results:
        if query.external_context and look.answer.hits and not look.answer.truncated:
            return ExplainStage.MAX_RESULTS, "results from elsewhere were better"
        return ExplainStage.TOKEN_BUDGET, "what is shown of it did not fit"
    if fate.fused_rank <= query.max_results:
        return ExplainStage.RERANKING, f"fused rank {fate.fused_rank}, and {place + 1} after the stages that follow"
    return ExplainStage.MAX_RESULTS, f"rank {place + 1}, behind enough others"


def _unproposed(core: CoreExplanation, fate: Fate) -> tuple[ExplainStage, str]:
    """Of a memory that no arm proposes: whether any knows it."""
    response = core.response
    standings = zip(response.arm_names, fate.arms, response.trace.arm_candidates.values(), strict=True)
    ranks = [f"{name}: rank {rank} beyond {count}" for name, (rank, _, _), count in standings if rank]
    if ranks:
        return ExplainStage.ARM_CUT, f"no arm's candidate ({'; '.join(ranks)})"
    return ExplainStage.NO_ARM, "no arm of the search knows it for this query"


def told_by(core: CoreExplanation, subject: Subject, fate: Fate, plan: Plan) -> Explanation:
    """The core's fate of a memory."""
    response = core.response
    arms = tuple(
        ArmStanding(name, rank, score, proposed, cut)
        for name, (rank, score, proposed), cut in zip(
            response.arm_names if fate.arms else (), fate.arms, core.arm_cuts if fate.arms else (), strict=True
        )
    )
    borrowed = tuple(
        BorrowedScore(response.arm_names[arm], bytes_to_id(neighbour), amount, lender)
        for arm, neighbour, amount, lender in fate.shares
    )
    repeats, similarity = fate.twin or (None, None)
    return Explanation(
        subject.memory_id,
        ExplainStage.RETURNED,
        "",
        fused_rank=fate.fused_rank,
        fused_score=fate.fused_score,
        arms=arms,
        borrowed=borrowed,
        boosts=tuple(Boost(name, value) for name, value in fate.boosts),
        repeats=None if repeats is None else bytes_to_id(repeats),
        similarity=similarity,
        token_count=fate.tokens,
        tokens_left=fate.left if fate.step == "budget" else None,
        via=plan.paths.get(subject.versions[-1].memory_id),
    )


def returned(told: Explanation, rank: int, hit: MemoryHit, leaving: MemoryHit | None) -> Explanation:
    """Of a memory that is in the answer, if it may leave."""
    if leaving is None:
        detail = "it holds personal data that may not leave the bank"
        return replace(told, stage=ExplainStage.POLICY, detail=detail)
    redacted = leaving != hit
    detail = f"hit {rank}" + (", with personal data replaced" if redacted else "")
    return replace(told, detail=detail, rank=rank, score=hit.score, redacted=redacted)
