"""Recall: the question and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from astrocyte.model.derived.knowledge import Directive
from astrocyte.model.engines import EngineTrace
from astrocyte.model.fusion import FusionMethod
from astrocyte.model.memory import Embedding, Metadata
from astrocyte.model.multi_bank import BankTrace, MultiBankStrategy


class TagMatch(StrEnum):
    """The rule of a tag filter. Untagged memories never pass ANY or ALL."""

    ANY = "any"
    ALL = "all"
    NONE = "none"


class DetailLevel(StrEnum):
    """The part of a memory that a hit's text holds."""

    TITLES = "titles"
    CHUNK = "chunk"
    FULL = "full"


class Intent(StrEnum):
    """The kind of question that a query is. UNKNOWN changes nothing."""

    FACTUAL = "factual"
    TEMPORAL = "temporal"
    RELATIONAL = "relational"
    COMPARATIVE = "comparative"
    PROCEDURAL = "procedural"
    EXPLORATORY = "exploratory"
    UNKNOWN = "unknown"


class QueryIntent(NamedTuple):
    """A query's intent and how sure the rules are, from 0 to 1."""

    intent: Intent
    confidence: float


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From start to end, both included; None is open."""

    start: datetime | None = None
    end: datetime | None = None


@dataclass(slots=True)
class RecallQuery:
    """One recall. Fields are checked by the gate, not here; None takes the configured default.

    ``time_range`` holds on occurred_at, or retained_at where there is none. ``as_of`` is what the service knew then,
    ``valid_at`` what was true then. ``weights`` is by arm (semantic, keyword, temporal). ``external_context`` holds
    results of another system, which are filtered and blended into the answer, and never stored. Relative dates in the
    query count from ``query_reference_date``, else from now, in the days of ``time_zone`` (an IANA name or an offset),
    else of the offset of ``query_reference_date`` where that is not UTC, else of the bank's time zone. Instead of
    ``bank_id``, which is "" then, ``banks`` or ``bank_group`` name several; ``strategy`` says how they are asked.
    ``include_archived`` finds archived memories besides, of now alone. ``require_phrases`` excludes memories that do
    not hold each phrase of the query in double quotation marks. With ``expand_prefixes`` a word of the query that ends
    with "*" stands for the words of the bank that begin with it.
    """

    query: str
    bank_id: str = ""
    max_results: int = 10
    max_tokens: int | None = None
    tags: tuple[str, ...] = ()
    tag_match: TagMatch = TagMatch.ANY
    fact_types: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    session_id: str | None = None
    time_range: TimeRange | None = None
    retained_range: TimeRange | None = None
    as_of: datetime | None = None
    valid_at: datetime | None = None
    query_reference_date: datetime | None = None
    time_zone: str | None = None
    include_sources: bool = False
    include_trace: bool = True
    layer_weights: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    fusion_method: FusionMethod | None = None
    rank_constant: float | None = None
    dedup_threshold: float | None = None
    detail_level: DetailLevel = DetailLevel.CHUNK
    embedding: Embedding | None = None
    min_position: int = 0
    external_context: tuple[MemoryHit, ...] = ()
    banks: tuple[str, ...] = ()
    bank_group: str | None = None
    strategy: MultiBankStrategy | None = None
    include_archived: bool = False
    require_phrases: bool = False
    expand_prefixes: bool = False


class ArmScore(NamedTuple):
    """Where one arm put a hit: rank from 1, and the arm's raw score."""

    arm: str
    rank: int
    score: float


class Boost(NamedTuple):
    """The change of a hit's score by a stage after the arms, in the score's measure."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class MemoryPath:
    """A path through the entity graph, from an entity of the query to one that the memory mentions.

    ``link_types`` has one item less than ``entity_ids``: the types of the links between them, in either direction. With
    ``through_memory_id`` the path goes on from that memory, which mentions the last entity, to this one, and
    ``link_types`` has one item more: the type of the link between the two memories.
    """

    memory_id: str
    entity_ids: tuple[str, ...]
    link_types: tuple[str, ...] = ()
    bank_id: str = ""
    through_memory_id: str = ""


class PrefixExpansion(NamedTuple):
    """The words of a bank that a prefix of a query stands for, those that most memories hold first.

    ``total`` counts all words of the bank that begin with the prefix. ``words`` are those that were searched; they are
    empty where the bank looks for personal data in answers, which may be a word of a memory that is not returned.
    """

    prefix: str
    bank_id: str = ""
    words: tuple[str, ...] = ()
    total: int = 0


@dataclass(slots=True)
class MemoryHit:
    """A memory that matched. ``chunk_index`` counts from 0; -1 when the text is not a chunk.

    In the answer of several banks, ``bank_rank`` is its rank in its own bank, from 1, and ``also_in`` names the banks
    that hold the same content. ``boosts`` say what stages after the arms added to the score, ``utility_score`` how
    useful the memory has been, from 0 to 1, where that is counted. ``engine`` names the engine that brought it; "" for
    a memory of this server's own.

    ``score`` is the calibrated relevance, from 0 to 1 and at most that of the hit before: it has the same meaning in
    every bank and with every fusion method. ``fused_score`` is that of the fusion and the stages after it, comparable
    within one answer only; None where nothing was fused.
    """

    text: str
    score: float
    memory_id: str | None = None
    bank_id: str | None = None
    metadata: Metadata | None = None
    tags: tuple[str, ...] | None = None
    occurred_at: datetime | None = None
    retained_at: datetime | None = None
    source: str | None = None
    memory_layer: str | None = None
    fact_type: str | None = None
    session_id: str | None = None
    speaker: str | None = None
    principal: str | None = None
    chunk_index: int = -1
    chunk_count: int = 1
    token_count: int = 0
    version: int = 1
    arms: tuple[ArmScore, ...] = ()
    bank_rank: int = 0
    also_in: tuple[str, ...] = ()
    boosts: tuple[Boost, ...] = ()
    utility_score: float | None = None
    engine: str = ""
    fused_score: float | None = None


@dataclass(slots=True)
class RecallTrace:
    """The trace of a recall. Every field is filled; ``tier_used`` is 1 (cache), 2 (fast path), 3 (full) or 4 (agentic).

    ``tier_reason`` says, where recalls go by tiers, which steps were tried and what they found.
    ``stage_timings_ms`` covers embed, outside (where external stores are asked), queue (in a batch, while the query
    waits for others), analyse, core, feedback (words that the first hits add), turns, hydrate, and the stages
    after it that ran (boosts, utility, curated);
    ``strategy_timings_ms`` the arms inside core.
    ``plan`` says how the filter was met: rows allowed, rows in all, scan or gather. ``degraded`` is not empty where a
    provider was unavailable: ``empty_recall`` for an answer without a search, ``cache`` for an earlier, stale one;
    names of external stores (such as ``vector_store``) for one that was made without them.
    ``date_warnings`` name dates in the query that no calendar has, such as 30 February; they make no time window.
    ``via`` says by which paths the arm ``graph`` found hits, in their order. ``prefixes`` are the words that stand for
    the prefixes of the query, in each bank.
    ``engines`` says what became of each side where an engine stands beside the pipeline, the pipeline first.
    """

    strategies_used: tuple[str, ...] | None = None
    total_candidates: int | None = None
    fusion_method: str | None = None
    latency_ms: float | None = None
    strategy_timings_ms: Mapping[str, float] | None = None
    strategy_candidate_counts: Mapping[str, int] | None = None
    tier_used: int | None = None
    layer_distribution: Mapping[str, int] | None = None
    cache_hit: bool | None = None
    wiki_tier_used: bool | None = None
    stage_timings_ms: Mapping[str, float] | None = None
    plan: str | None = None
    time_windows: tuple[TimeRange, ...] = ()
    position: int = 0
    degraded: str = ""
    intent: Intent = Intent.UNKNOWN
    intent_confidence: float = 0.0
    banks: tuple[BankTrace, ...] = ()
    engines: tuple[EngineTrace, ...] = ()
    tier_reason: str = ""
    date_warnings: tuple[str, ...] = ()
    via: tuple[MemoryPath, ...] = ()
    prefixes: tuple[PrefixExpansion, ...] = ()


@dataclass(slots=True)
class RecallResult:
    """Ranked hits. ``total_available`` counts the distinct memories that any arm proposed.

    ``truncated`` is True when the token budget dropped or cut a hit. ``warnings`` say what the barriers changed or
    found in the query or the hits. ``hits`` never change: who wants others makes another result. ``confidence``, from 0
    to 1, is how likely the hits hold what was asked (None where nothing was searched); ``abstain`` is True where it is
    below `recall.abstention_floor`. ``directives`` are the rules that apply, the highest priority first; they are the
    only part of a result that is an instruction to its reader.
    """

    hits: Sequence[MemoryHit]
    total_available: int
    truncated: bool
    trace: RecallTrace | None = None
    authority_context: str | None = None
    warnings: tuple[str, ...] = ()
    confidence: float | None = None
    abstain: bool = False
    directives: tuple[Directive, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """A recall on the bank as it was known at ``as_of``."""

    hits: Sequence[MemoryHit]
    total_available: int
    truncated: bool
    as_of: datetime
    bank_id: str
    trace: RecallTrace | None = None
    warnings: tuple[str, ...] = ()
