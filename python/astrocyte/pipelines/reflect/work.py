"""A reflect on its way: its bounds, its memories, and what is read off them."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from astrocyte.core import count_tokens
from astrocyte.model import Citation, Intent, MemoryHit, RecallQuery, RecallResult, RecallTrace, ReflectQuery
from astrocyte.pipelines.reflect.custom_synthesis import STAGE
from astrocyte.pipelines.reflect.draft import Draft
from astrocyte.pipelines.reflect.evidence import Evidence
from astrocyte.pipelines.reflect.prompts import Variant

# Questions for what no memory says outright.
CONCLUDING = re.compile(r"\b(?:would|likely|probably|might|considered|interested in|prefer|leaning)\b", re.IGNORECASE)
# Confidence below which a model is told that the evidence looks weak.
WEAK = 0.3


def _no_turns(hits: Sequence[MemoryHit]) -> Mapping[str, str]:  # noqa: ARG001 - as of `Allowance.turns_before`
    return {}


@dataclass(frozen=True, slots=True)
class Allowance:
    """The bounds of a reflect.

    Attributes:
        most_tokens: Ceiling of the answer's tokens.
        recall: Asks the bank, or the banks, of the request, whichever a query names; what comes back was looked at for
            personal data.
        directives: The rules that the answer must follow, the most important first; there may be more after a recall.
        subject: A stored name, which the question is; a prompt has it behind the fence. "" for a question of a caller.
        turns_before: The ids of the turns before memories in their sessions, by the ids of the memories. A turn may be
            one that the caller must not see: it is read by `recall`.
    """

    most_tokens: int
    recall: Callable[[RecallQuery], Awaitable[RecallResult]]
    directives: Callable[[], tuple[str, ...]] = tuple
    subject: str = ""
    turns_before: Callable[[Sequence[MemoryHit]], Mapping[str, str]] = _no_turns


@dataclass(slots=True)
class Work:
    """A reflect on its way."""

    query: ReflectQuery
    recalled: RecallResult
    evidence: Evidence
    confidence: float
    intent: Intent
    allowance: Allowance
    deadline: float
    # When its memories were there, by `perf_counter`.
    start: float
    tokens_used: int = 0
    # What could not answer, and why.
    missed: str = ""


def traced(work: Work) -> RecallTrace | None:
    """The trace of the recall, with what came after it."""
    trace = work.recalled.trace
    if trace is None:
        return None
    stages = {**(trace.stage_timings_ms or {}), STAGE: (time.perf_counter() - work.start) * 1e3}
    degraded = ", ".join(filter(None, (trace.degraded, work.missed)))
    return replace(trace, stage_timings_ms=stages, degraded=degraded)


def variant_of(work: Work) -> Variant:
    """The variant of the prompt for the kind of question."""
    if work.intent is Intent.TEMPORAL:
        return Variant.TEMPORAL
    if work.intent in {Intent.EXPLORATORY, Intent.COMPARATIVE, Intent.RELATIONAL}:
        return Variant.SYNTHESIS
    if CONCLUDING.search(work.query.query):
        return Variant.INFERENCE
    return Variant.STRICT if work.confidence < WEAK else Variant.DEFAULT


def joined(work: Work) -> Draft:
    """The memories one below the other, best first, as many as fit."""
    budget = min(work.query.max_tokens or work.allowance.most_tokens, work.allowance.most_tokens)
    text, citations, sources, truncated = "", [], [], False
    for hit in work.recalled.hits:
        joint = "\n" if text else ""
        if count_tokens(f"{text}{joint}{hit.text}") > budget:
            truncated = True
            continue
        start = len(text) + len(joint)
        citations.append(Citation(start, start + len(hit.text), hit.memory_id or ""))
        text = f"{text}{joint}{hit.text}"
        sources.append(hit)
    return Draft(text, tuple(citations), tuple(sources), confidence=work.confidence, truncated=truncated)
