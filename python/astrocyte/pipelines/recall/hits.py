"""Recall's last step: hits, of what the core ranked and the database read back.

Most answers leave by the wire, and no rule looks into them. `FoundHits` therefore becomes `MemoryHit` objects only when
somebody looks; the server asks it for its bytes, which the core writes from the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from astrocyte.core import Answer, Hit, count_tokens
from astrocyte.model import ArmScore, Boost, DetailLevel, MemoryHit, RecallQuery
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.pipelines.recall.relevance import set_scores
from astrocyte.pipelines.text import detail_levels
from astrocyte.stores.records import HydratedRow

# Arms of observations and mental models.
OBSERVATION_ARM, MENTAL_MODEL_ARM = "observation", "mental_model"
ITEM_ARMS = frozenset({OBSERVATION_ARM, MENTAL_MODEL_ARM})


class FoundHits(Sequence[MemoryHit]):
    """The chunks of an answer in the core's order. Equals a tuple of the same hits.

    Args:
        query: What was asked.
        response: What the core ranked.
        rows: What the database knows of the hits, in their order; a hit without a row is left out.
    """

    __slots__ = ("_made", "_query", "_response", "rows")
    __hash__ = None  # type: ignore[assignment]  # as equal to tuples as it is, it would have to be hashed as one

    def __init__(self, query: RecallQuery, response: Answer, rows: Sequence[HydratedRow]) -> None:
        self._query = query
        self._response = response
        self.rows = rows
        self._made: tuple[MemoryHit, ...] | None = None

    def encode(self, result: object, windows: Sequence[bytes]) -> bytes:
        """A response on the wire: these hits, and the fields of a `RecallResult`; see `Answer.encode`."""
        query = self._query
        return self._response.encode(result, self.rows, query.bank_id, query.include_sources, windows)

    def encode_hits(self) -> bytes:
        """The hits as field 1 of an answer on the wire."""
        return self._response.encode_hits(self.rows, self._query.bank_id, self._query.include_sources)

    @property
    def memory_ids(self) -> tuple[str, ...]:
        """The memory of each hit, best first."""
        known = {row[:2]: row.memory_id for row in self.rows}
        return tuple([known[passage] for passage in self._response.passages if passage in known])

    @property
    def token_count(self) -> int:
        """Tokens of all texts together."""
        if len(self.rows) == len(self._response.passages):
            return self._response.tokens
        return sum(hit.token_count for hit in self._hits())

    def _hits(self) -> tuple[MemoryHit, ...]:
        if self._made is None:
            self._made, _ = shaped(self._query, self._response, self.rows, self._response.tokens)
        return self._made

    def __len__(self) -> int:
        return len(self._hits())

    def __bool__(self) -> bool:
        """True if there are any, without making them: each row is that of a hit."""
        return bool(self.rows)

    @overload
    def __getitem__(self, index: int) -> MemoryHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[MemoryHit, ...]: ...
    def __getitem__(self, index: int | slice) -> MemoryHit | tuple[MemoryHit, ...]:
        return self._hits()[index]

    def __iter__(self) -> Iterator[MemoryHit]:
        return iter(self._hits())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (tuple, FoundHits)) and self._hits() == tuple(other)

    def __repr__(self) -> str:
        return repr(self._hits())


def found(
    query: RecallQuery, response: Answer, rows: Sequence[HydratedRow], budget: int
) -> tuple[Sequence[MemoryHit], bool]:
    """The hits whose rows are given, within the budget; and whether one was cut or dropped for it."""
    if query.detail_level is DetailLevel.CHUNK and response.tokens <= budget:
        return FoundHits(query, response, rows), response.truncated
    return shaped(query, response, rows, budget)


def ids_of(hits: Sequence[MemoryHit]) -> tuple[str, ...]:
    """The memories of an answer, best first, without making its hits. Callers choose the ids of knowledge items."""
    if isinstance(hits, FoundHits):
        return hits.memory_ids
    return tuple([hit.memory_id for hit in hits if hit.memory_id and not _is_item(hit)])


def _is_item(hit: MemoryHit) -> bool:
    return any(arm.arm in ITEM_ARMS for arm in hit.arms)


def tokens_of(hits: Sequence[MemoryHit]) -> int:
    """Tokens of all texts of an answer, without making its hits."""
    return hits.token_count if isinstance(hits, FoundHits) else sum(hit.token_count for hit in hits)


def count_of(hits: Sequence[MemoryHit]) -> int:
    """The number of hits of an answer, without making them."""
    return len(hits.rows if isinstance(hits, FoundHits) else hits)


def layer_distribution(hits: Sequence[MemoryHit]) -> dict[str, int]:
    """The number of hits of each layer."""
    layers: dict[str, int] = {}
    for one in hits.rows if isinstance(hits, FoundHits) else hits:
        layer = one.memory_layer or ""
        layers[layer] = layers.get(layer, 0) + 1
    return layers


def shaped(
    query: RecallQuery, response: Answer, rows: Sequence[HydratedRow], budget: int
) -> tuple[tuple[MemoryHit, ...], bool]:
    """As `found`, each hit made at once."""
    by_passage = {row[:2]: row for row in rows}
    ranked = [(hit, row) for hit in response.hits if (row := by_passage.get((hit.key, hit.ordinal))) is not None]
    hits, truncated = fitting(query, ranked, response.arm_names, budget)
    return hits, response.truncated or truncated


def fitting(
    query: RecallQuery, ranked: Iterable[tuple[Hit, HydratedRow]], names: Sequence[str], budget: int
) -> tuple[tuple[MemoryHit, ...], bool]:
    """The first hits of a ranking that are wanted and fit the budget; and whether one was cut or dropped for it."""
    truncated = False
    hits: list[MemoryHit] = []
    for hit, row in ranked:
        if len(hits) == query.max_results:
            break
        text, tokens = text_of(query.detail_level, hit, row)
        if tokens > budget:
            truncated = True
            if hits:
                continue
            text = detail_levels.cut(text, budget)
            tokens = count_tokens(text)
        budget -= tokens
        hits.append(hit_of(query, hit, row, names, (text, tokens)))
    set_scores(hits)
    return tuple(hits), truncated


def text_of(level: DetailLevel, hit: Hit, row: HydratedRow) -> tuple[str, int]:
    """The text of a hit at a detail level, and its tokens."""
    if level is DetailLevel.CHUNK:
        return row.chunk_text, hit.tokens
    if level is DetailLevel.FULL:
        return row.content, row.token_count
    text = detail_levels.title(row)
    return text, count_tokens(text)


class Standing(NamedTuple):
    """A hit in an answer of several banks: its bank, its fused score, its rank in its bank, and who repeats it."""

    bank_id: str
    fused_score: float
    bank_rank: int
    also_in: tuple[str, ...]


def hit_of(
    query: RecallQuery,
    hit: Hit,
    row: HydratedRow,
    arm_names: Sequence[str],
    shown: tuple[str, int],
    standing: Standing | None = None,
) -> MemoryHit:
    """The hit that leaves, of what the core and the database know of it, and what it shows with its tokens."""
    (
        _, ordinal, memory_id, version, _, _, fact_type, layer, tags, metadata, source, session_id, speaker, principal,
        occurred_at, retained_at, chunk_count, _,
    ) = row  # fmt: skip
    text, tokens = shown
    bank_id, fused_score, bank_rank, also_in = standing or (query.bank_id, hit.score, 0, ())
    return MemoryHit(
        text=text,
        score=hit.relevance,
        memory_id=memory_id,
        bank_id=bank_id,
        metadata=metadata,
        tags=tags,
        occurred_at=None if occurred_at is None else from_ms(occurred_at),
        retained_at=from_ms(retained_at),
        source=source if query.include_sources else None,
        memory_layer=layer,
        fact_type=fact_type,
        session_id=session_id,
        speaker=speaker,
        principal=principal if query.include_sources else None,
        chunk_index=ordinal if query.detail_level is DetailLevel.CHUNK else -1,
        chunk_count=chunk_count,
        token_count=tokens,
        version=version,
        arms=tuple([ArmScore(arm_names[arm], rank, arm_score) for arm, rank, arm_score in hit.arms]),
        bank_rank=bank_rank,
        also_in=also_in,
        boosts=tuple([Boost(name, value) for name, value in hit.boosts]),
        fused_score=fused_score,
    )
