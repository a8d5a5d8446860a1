"""Explain where an answer is of several sides: banks that are asked together, and engines beside the pipeline.

A recall is run again as it was asked, by the same pipelines, which let be seen what each step let through
(`multi_bank.Inspection`, and the list of all sides before it is cut). Within its own bank a memory is explained as in a
recall on that bank; what comes after is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from astrocyte.core import Explanation as CoreExplanation
from astrocyte.core import Fate
from astrocyte.model import (
    Bank,
    BankOutcome,
    DetailLevel,
    ExplainStage,
    Explanation,
    ItemExplanation,
    MemoryHit,
    RecallQuery,
    RecallResult,
)
from astrocyte.pipelines.explain.pipeline import (
    GRAPH,
    ExplainPipeline,
    Look,
    Subject,
    displaced,
    in_the_core,
    place_of,
    returned,
    told_by,
)
from astrocyte.pipelines.index.rows import bytes_to_id, id_to_bytes
from astrocyte.pipelines.multi_bank.bank_answers import Part
from astrocyte.pipelines.multi_bank.fusion import Candidate
from astrocyte.pipelines.multi_bank.pipeline import Inspection

NOT_FOUND = "there is no such memory"
WEIGHTLESS = "the pipeline has weight 0 beside this engine"
MOVED = "its bank changed while it was looked at"
Fallen = tuple[ExplainStage, str]


@dataclass(frozen=True, slots=True)
class Run:
    """A recall that was run, and what was seen of it.

    Attributes:
        query: What was asked.
        banks: Whom.
        result: The answer, before the barriers look at it.
        look: Where the pipeline was asked about one bank.
        inspection: Where it was asked about several.
        failed: Whether it was asked and did not answer.
        fused: All hits of the pipeline and the engines, best first; None where no engine answered.
        memories: The answer without observations and mental models.
        items: The fate of each of those.
    """

    query: RecallQuery
    banks: Sequence[Bank]
    result: RecallResult
    look: Look | None = None
    inspection: Inspection | None = None
    fused: Sequence[MemoryHit] | None = None
    failed: bool = False
    memories: RecallResult | None = None
    items: tuple[ItemExplanation, ...] = ()


class _Home(NamedTuple):
    """The part of a call in whose bank a memory is, and what the core says of it there."""

    part: Part
    subject: Subject
    core: CoreExplanation
    fate: Fate


class SeveralExplained:
    """Tells what became of memories in such a recall.

    Args:
        pipeline: Tells what the core, and one bank, say of a memory.
    """

    def __init__(self, pipeline: ExplainPipeline) -> None:
        self._pipeline = pipeline

    async def explain(
        self, run: Run, memory_id: str, passes: Callable[[MemoryHit], MemoryHit | None]
    ) -> tuple[Subject, Explanation]:
        """The memory, and what became of it, but not yet what would have kept it.

        Args:
            run: The recall.
            memory_id: As the request names it.
            passes: The hit as it may leave, or None.
        """
        subject, told = await self._in_the_pipeline(run, memory_id)
        known = subject.versions[-1].memory_id if subject.versions else memory_id
        rank, hit = place_of(run.result, known)
        if hit is not None:
            return subject, returned(told, rank, hit, passes(hit))
        rank, hit = (0, None) if run.memories is None else place_of(run.memories, known)
        if hit is not None:
            return subject, displaced(told, run.query, run.result, rank)
        if told.stage is ExplainStage.RETURNED:
            stage, detail = _beside(run, known) or (told.stage, told.detail)
            if stage is ExplainStage.RETURNED:
                stage, detail = ExplainStage.INDEX, MOVED
            told = replace(told, stage=stage, detail=detail)
        return subject, replace(told, rank=0, score=None)

    async def _in_the_pipeline(self, run: Run, memory_id: str) -> tuple[Subject, Explanation]:
        """The memory's fate in the pipeline's answer."""
        if run.look is not None:
            (subject,) = self._pipeline.subjects(run.look.plan.bank, [memory_id])
            identity = id_to_bytes(memory_id)
            if subject.versions and identity is not None and bytes_to_id(identity) not in run.look.fates:
                core = await self._pipeline.ask(run.look.plan, [identity])
                fates = {**run.look.fates, **{bytes_to_id(fate.memory_id): fate for fate in core.fates}}
                return subject, self._pipeline.explain(replace(run.look, fates=fates), subject, lambda hit: hit)
            return subject, self._pipeline.explain(run.look, subject, lambda hit: hit)
        if run.inspection is not None:
            return await self._in_the_banks(run.query, run.inspection, memory_id)
        for bank in run.banks:
            (subject,) = self._pipeline.subjects(bank, [memory_id])
            if subject.versions and run.failed:
                return subject, Explanation(memory_id, ExplainStage.BANK_UNAVAILABLE, "the pipeline did not answer")
            if subject.versions:
                return subject, Explanation(memory_id, ExplainStage.ENGINE_FUSION, WEIGHTLESS)
        return Subject(memory_id, ()), Explanation(memory_id, ExplainStage.NOT_FOUND, NOT_FOUND)

    async def _in_the_banks(self, query: RecallQuery, seen: Inspection, memory_id: str) -> tuple[Subject, Explanation]:
        part, subject = self._home(seen, memory_id)
        if part is None:
            return subject, Explanation(memory_id, ExplainStage.NOT_FOUND, NOT_FOUND)
        bank_id = part.bank.bank_id
        if part.response is None:
            stage, detail = _unasked(part)
            return subject, Explanation(memory_id, stage, detail, bank_id=bank_id)
        core = await self._pipeline.ask(part.searched, [id_to_bytes(memory_id) or b""])
        home = _Home(part, subject, core, core.fates[0])
        told = replace(told_by(core, subject, home.fate, part.searched), bank_id=bank_id)
        fallen = in_the_core(part.query, core, subject, home.fate)
        if fallen is not None:
            return subject, replace(told, stage=fallen[0], detail=fallen[1], conditions=fallen[2])
        if any(hit.memory_id == subject.versions[-1].memory_id for hit in seen.result.hits):
            return subject, told
        return subject, self._between_the_banks(query, seen, home, told)

    def _home(self, seen: Inspection, memory_id: str) -> tuple[Part | None, Subject]:
        """The part of the call in whose bank the memory is; none where no bank of the call shows it."""
        for part in seen.parts:
            (subject,) = self._pipeline.subjects(part.bank, [memory_id])
            if subject.versions and (not part.only or subject.versions[-1].memory_id in part.only):
                return part, subject
        return None, Subject(memory_id, ())

    def _between_the_banks(self, query: RecallQuery, seen: Inspection, home: _Home, told: Explanation) -> Explanation:
        """Where a memory fell out that its bank has among its hits, as the core knows them."""
        part, identity = home.part, home.fate.memory_id
        hits = part.ranked if part.ranked is not None else part.answer.hits
        own = next((hit for hit in hits if hit.memory_id == identity), None)
        place = next((hit for hit in home.core.response.hits if hit.memory_id == identity), None)
        visible = place is not None and self._pipeline.visible(part.searched, (place.key, place.ordinal))
        stage, detail = _in_its_bank(home, in_bank=own is not None, visible=visible)
        if own is None or not visible:
            return replace(told, stage=stage, detail=detail)
        if not any(one is part for one in seen.counted):
            detail = "another bank's hits count alone" if seen.counted else "no bank has a hit that is good enough"
            return replace(told, stage=ExplainStage.BANK_NOT_ASKED, detail=detail)
        number = next(at for at, one in enumerate(seen.counted) if one is part)
        if any(place[:2] == (number, own.key) for place in seen.gone):
            detail = "it may not leave its bank, and another bank holds the same"
            return replace(told, stage=ExplainStage.POLICY, detail=detail)
        if part.weight <= 0.0:
            return replace(told, stage=ExplainStage.BANK_FUSION, detail="its bank has weight 0")
        at = next((at for at, one in enumerate(seen.order) if one.bank == number and one.hit.key == own.key), None)
        if at is None:
            return _folded(seen, number, own.content_hash, told)
        stage, detail = _passed_over(query, seen, at)
        return replace(told, stage=stage, detail=detail)


def _unasked(part: Part) -> Fallen:
    """Of a memory whose bank did not answer."""
    if part.outcome is BankOutcome.NOT_NEEDED:
        return ExplainStage.BANK_NOT_ASKED, f"its bank was not asked: {part.reason}"
    return ExplainStage.BANK_UNAVAILABLE, f"its bank did not answer: {part.reason}"


def _in_its_bank(home: _Home, *, in_bank: bool, visible: bool) -> Fallen:
    """Of a memory that the core has among its candidates: where its bank leaves it out."""
    part = home.part
    if not visible:
        return ExplainStage.INDEX, "the database does not let the query see what the index proposes"
    if in_bank:
        return ExplainStage.RETURNED, ""
    if part.answer.trace.plan.startswith(GRAPH):
        return ExplainStage.APPROXIMATE_SEARCH, "the walk of the bank's graphs passed it over"
    if part.ranked is None:
        return ExplainStage.INDEX, MOVED
    if home.fate.fused_rank <= part.query.max_results:
        return ExplainStage.RERANKING, f"fused rank {home.fate.fused_rank}, and beyond the wanted after the stages"
    return ExplainStage.MAX_RESULTS, f"fused rank {home.fate.fused_rank}, behind enough others of its bank"


def _folded(seen: Inspection, number: int, content_hash: bytes, told: Explanation) -> Explanation:
    """Of a memory whose content another bank holds too, where repeats are one hit."""
    twin: Candidate | None = next(
        (one for one in seen.order if number in one.others and one.hit.content_hash == content_hash), None
    )
    if twin is None:
        return replace(told, stage=ExplainStage.INDEX, detail=MOVED)
    bank_id = seen.counted[twin.bank].bank.bank_id
    detail = f"bank {bank_id!r} holds the same, and it is worth more there"
    return replace(
        told, stage=ExplainStage.DUPLICATE, detail=detail, repeats=bytes_to_id(twin.hit.memory_id), similarity=None
    )


def _passed_over(query: RecallQuery, seen: Inspection, at: int) -> Fallen:
    """Of a memory at a place in the list of all banks: whether count or budget left it out."""
    hits = seen.result.hits
    places = {
        (seen.counted[one.bank].bank.bank_id, bytes_to_id(one.hit.memory_id)): n for n, one in enumerate(seen.order)
    }
    after = any(places.get((hit.bank_id or "", hit.memory_id or ""), -1) > at for hit in hits)
    ranked = f"rank {at + 1} of all banks"
    # Titles are made of the first that are wanted alone.
    beyond = query.detail_level is DetailLevel.TITLES and at >= query.max_results
    if beyond or (len(hits) >= query.max_results and not after):
        return ExplainStage.BANK_FUSION, f"{ranked}, behind enough others"
    return ExplainStage.TOKEN_BUDGET, f"{ranked}, and its bank's part of the budget had no room for it"


def _beside(run: Run, memory_id: str) -> Fallen | None:
    """Of a memory that a side has among its hits: where the answer of all sides leaves it out; None of another."""
    if run.fused is None:
        return None
    at = next((at for at, hit in enumerate(run.fused) if hit.memory_id == memory_id), None)
    pipeline = run.look.answer.hits if run.look is not None else ()
    if run.inspection is not None:
        pipeline = run.inspection.result.hits
    if at is None:
        if any(hit.memory_id == memory_id for hit in pipeline):
            return ExplainStage.ENGINE_FUSION, WEIGHTLESS
        return None
    if at < run.query.max_results:
        return ExplainStage.TOKEN_BUDGET, f"rank {at + 1} of all sides, and it did not fit"
    return ExplainStage.ENGINE_FUSION, f"rank {at + 1} of all sides, behind enough others"
