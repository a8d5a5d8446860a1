"""Reflect: the question and the answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from astrocyte.model.derived.knowledge import Directive
from astrocyte.model.memory import Embedding
from astrocyte.model.multi_bank import MultiBankStrategy
from astrocyte.model.recall import MemoryHit, RecallTrace, TagMatch, TimeRange


class ReflectMode(StrEnum):
    """The way of answering: rules over sentences, a language model in one call, one that searches, or a custom one."""

    EXTRACTIVE = "extractive"
    LLM = "llm"
    AGENTIC = "agentic"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Dispositions:
    """Dispositions of an answer, each from 1 (little) to 5 (much); 3 is neither.

    A sceptic wants more evidence before it answers; a literal mind keeps to the words of the memories; an empathic one
    minds how people feel.
    """

    skepticism: int = 3
    literalism: int = 3
    empathy: int = 3


@dataclass(frozen=True, slots=True)
class ReflectQuery:
    """One reflect. Fields are checked by the gate, not here; None takes the configured default.

    ``max_tokens`` is of the answer. The filters, and how several banks are named, are those of a recall.
    """

    query: str
    bank_id: str = ""
    max_tokens: int | None = None
    tags: tuple[str, ...] = ()
    tag_match: TagMatch = TagMatch.ANY
    fact_types: tuple[str, ...] = ()
    session_id: str | None = None
    time_range: TimeRange | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None
    query_reference_date: datetime | None = None
    time_zone: str | None = None
    include_sources: bool = True
    dispositions: Dispositions | None = None
    mode: ReflectMode | None = None
    embedding: Embedding | None = None
    min_position: int = 0
    banks: tuple[str, ...] = ()
    bank_group: str | None = None
    strategy: MultiBankStrategy | None = None


class Citation(NamedTuple):
    """The source of a part of the answer. ``start`` and ``end`` count characters; the end is not included."""

    start: int
    end: int
    memory_id: str


@dataclass(frozen=True, slots=True)
class ReflectResult:
    """An answer out of memory.

    ``confidence`` estimates, from 0 to 1, how likely memory holds what was asked and the answer rests on it.
    ``abstained`` says that memory does not hold the answer, in which case ``sources`` is empty. ``sources`` are the
    memories that the answer cites, in the order of their first citation; None where they were not asked for.
    ``observations`` are remarks on the answer for its reader. ``mode`` is who answered, None where only the recalled
    texts are given; ``fallback_used`` says that it is not who was asked to. ``tokens_used`` counts those of the
    language model. ``directives`` are the rules that applied, the highest priority first.
    """

    answer: str
    confidence: float | None = None
    sources: tuple[MemoryHit, ...] | None = None
    observations: tuple[str, ...] | None = None
    authority_context: str | None = None
    citations: tuple[Citation, ...] = ()
    abstained: bool = False
    mode: ReflectMode | None = None
    fallback_used: bool = False
    truncated: bool = False
    tokens_used: int = 0
    trace: RecallTrace | None = None
    directives: tuple[Directive, ...] = ()
