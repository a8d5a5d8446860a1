"""External context: results that the caller brings from another system, as one more list in the answer.

Another system's results become hits beside the bank's own, under the same filter, the same count and the same token
budget. Scores of two systems cannot be compared, so the list's are laid over the span of the bank's fused scores: its
best item stands with the best memory (at weight 1), one of score 0 with the last. Of equal texts the memory is kept.
Nothing of it is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from astrocyte.core import content_hash, count_tokens, relevance_at_rank, text_relevance
from astrocyte.model import ArmScore, DetailLevel, MemoryHit, RecallQuery
from astrocyte.pipelines.query.layers import by_layer
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.pipelines.recall.relevance import descending, rank_score
from astrocyte.pipelines.recall.row_filter import compile_filter
from astrocyte.pipelines.text import detail_levels
from astrocyte.stores.records import HydratedRow

ARM = "external_context"
# Before the hash that names an item without an id.
ID_PREFIX = "ext_"


def brought(hit: MemoryHit) -> bool:
    """True if a hit of an answer is an item of the caller's, not a bank's memory."""
    return any(arm.arm == ARM for arm in hit.arms)


def passing(query: RecallQuery) -> list[MemoryHit]:
    """The caller's items that meet the query's filter and clock, best first; equal scores in the caller's order."""
    meets = compile_filter(query)
    kept = []
    for item in query.external_context:
        known = item.retained_at
        if query.as_of is not None and (known is None or known > query.as_of):
            continue
        if query.retained_range is not None and known is None:
            continue
        if query.time_range is not None and known is None and item.occurred_at is None:
            continue
        if meets is None or meets(row_of(item)):
            kept.append(item)
    return sorted(kept, key=lambda item: -item.score)


def blend(
    query: RecallQuery, hits: Sequence[MemoryHit], items: Sequence[MemoryHit], *, weight: float, budget: int
) -> tuple[tuple[MemoryHit, ...], bool]:
    """The best of both lists within the query's count and the budget; and whether an item was cut or dropped for it.

    Args:
        query: What was asked.
        hits: The bank's, best first, within the budget already.
        items: The caller's, as `passing` gives them.
        weight: 1 lays the items over the span of the hits; less keeps them lower, 0 leaves them out.
        budget: Tokens.
    """
    seen = {content_hash(hit.text) for hit in hits}
    further = [item for item in _scored(query, hits, items, weight) if weight and content_hash(item.text) not in seen]
    ranked = sorted([*hits, *further], key=lambda hit: -rank_score(hit))[: query.max_results]
    placed = [
        replace(hit, score=relevance_at_rank(hit.score, place)) if brought(hit) else hit
        for place, hit in enumerate(ranked, 1)
    ]
    return within(descending(placed), budget)


def within(ranked: Sequence[MemoryHit], budget: int) -> tuple[tuple[MemoryHit, ...], bool]:
    """The hits that fit into the budget, in order, the first cut if need be; and whether one was cut or dropped."""
    kept: list[MemoryHit] = []
    truncated = False
    for hit in ranked:
        fitting = hit
        if hit.token_count > budget:
            truncated = True
            if kept:
                continue
            text = detail_levels.cut(hit.text, budget)
            fitting = replace(hit, text=text, token_count=count_tokens(text))
        budget -= fitting.token_count
        kept.append(fitting)
    return tuple(kept), truncated


def _scored(
    query: RecallQuery, hits: Sequence[MemoryHit], items: Sequence[MemoryHit], weight: float
) -> Iterator[MemoryHit]:
    """The items as hits, their scores laid over the span of the bank's."""
    top = max(map(rank_score, hits), default=1.0)
    span = top - min(map(rank_score, hits), default=0.0) or 1.0
    least = min((item.score for item in items), default=0.0)
    least = min(least, 0.0)
    most = max((item.score for item in items), default=0.0)
    weights = by_layer(query.layer_weights)
    for rank, item in enumerate(items, 1):
        share = (item.score - least) / (most - least) if most > least else 1.0
        share *= weight * weights.get(item.memory_layer or "", 1.0)
        yield _hit(query, item, top - (1.0 - share) * span, rank)


def _hit(query: RecallQuery, item: MemoryHit, score: float, rank: int) -> MemoryHit:
    text = detail_levels.title(row_of(item)) if query.detail_level is DetailLevel.TITLES else item.text
    return replace(
        item,
        text=text,
        score=text_relevance(query.query, item.text),
        fused_score=score,
        # Whatever the caller says of it: it is no bank's.
        bank_id=query.bank_id or None,
        also_in=(),
        bank_rank=0,
        memory_id=item.memory_id or f"{ID_PREFIX}{content_hash(item.text).hex()}",
        metadata=item.metadata or {},
        tags=item.tags or (),
        source=item.source if query.include_sources else None,
        principal=None,
        chunk_index=-1,
        token_count=count_tokens(text),
        arms=(ArmScore(ARM, rank, item.score),),
    )


def row_of(item: MemoryHit) -> HydratedRow:
    """The item as the database would tell of it; times that it lacks were asked about before."""
    occurred, retained = item.occurred_at, item.retained_at
    return HydratedRow(
        row_key=0,
        ordinal=-1,
        memory_id=item.memory_id or "",
        version=item.version,
        content=item.text,
        chunk_text=item.text,
        fact_type=item.fact_type or "",
        memory_layer=item.memory_layer or "",
        tags=tuple(item.tags or ()),
        metadata=item.metadata or {},
        source=item.source,
        session_id=item.session_id,
        speaker=item.speaker,
        principal="",
        occurred_at=None if occurred is None else to_ms(occurred),
        retained_at=0 if retained is None else to_ms(retained),
        chunk_count=1,
        token_count=0,
    )
