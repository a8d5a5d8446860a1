"""The ranking of a blended recall: private memories by similarity and age, canonical ones by similarity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import exp

from astrocyte.model import AgentMemory, AgentMemoryHit, MemoryHit, SourceTag
from astrocyte.pipelines.agent_memory.index import Nearest

MILLISECONDS_PER_DAY = 86_400_000
# The arm of a recall whose scores are cosines.
SEMANTIC = "semantic"


def decay(updated_at: int, now: int, decay_days: float) -> float:
    """exp(-age / decay_days), times in milliseconds; 1 for a memory of this moment or of the future."""
    return exp(-max(now - updated_at, 0) / (decay_days * MILLISECONDS_PER_DAY))


def youngest_nearest(nearest: Sequence[Nearest], now: int, decay_days: float, count: int) -> list[Nearest]:
    """The best memories by cosine and age."""
    return nlargest(count, nearest, key=lambda one: one.cosine * decay(one.updated_at, now, decay_days))


def private_hits(
    nearest: Iterable[Nearest], memories: Mapping[int, AgentMemory], now: int, decay_days: float
) -> list[AgentMemoryHit]:
    """Hits of an agent's memories; a memory that is not among ``memories`` was forgotten meanwhile."""
    found = ((one, memories[one.memory_key]) for one in nearest if one.memory_key in memories)
    return [
        AgentMemoryHit(
            memory.memory_id,
            memory.content,
            SourceTag.PRIVATE,
            one.cosine,
            one.cosine * (recency := decay(one.updated_at, now, decay_days)),
            memory.topic,
            memory.topic_raw,
            memory.source,
            updated_at=memory.updated_at,
            recency_score=recency,
        )
        for one, memory in found
    ]


def canonical_hits(hits: Iterable[MemoryHit]) -> list[AgentMemoryHit]:
    """Hits of shared banks; those that no vector found have no similarity and are left out."""
    found = []
    for hit in hits:
        cosine = next((score.score for score in hit.arms if score.arm == SEMANTIC), None)
        if cosine is not None:
            found.append(
                AgentMemoryHit(
                    hit.memory_id or "",
                    hit.text,
                    SourceTag.CANONICAL,
                    cosine,
                    cosine,
                    source=hit.metadata or {},
                    bank_id=hit.bank_id,
                    updated_at=hit.retained_at,
                )
            )
    return found


def blended(hits: Sequence[AgentMemoryHit], count: int, least: float) -> tuple[AgentMemoryHit, ...]:
    """The best hits of at least some similarity, by score, then by id."""
    kept = [hit for hit in hits if hit.similarity >= least]
    return tuple(sorted(kept, key=lambda hit: (-hit.score, hit.memory_id))[:count])
