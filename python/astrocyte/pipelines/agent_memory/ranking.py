"""The ranking of a blended recall: private memories by similarity and age, canonical ones by similarity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from math import exp
from operator import itemgetter

from astrocyte.model import AgentMemory, AgentMemoryHit, MemoryHit, SourceTag
from astrocyte.pipelines.agent_memory.index import AgentIndex, Nearest

MILLISECONDS_PER_DAY = 86_400_000
# The nearest memories that the age of each is looked at: first few, then many. Beyond the last a memory would have to
# be both less similar than a thousand others and much younger than all of them.
DEPTHS = (32, 1_000)
# The arm of a recall whose scores are cosines.
SEMANTIC = "semantic"


def decay(updated_at: int, now: int, decay_days: float) -> float:
    """exp(-age / decay_days), times in milliseconds; 1 for a memory of this moment or of the future."""
    return exp(-max(now - updated_at, 0) / (decay_days * MILLISECONDS_PER_DAY))


def best_memories(
    index: AgentIndex, vector: bytes, users: Sequence[str], now: int, decay_days: float, count: int
) -> list[Nearest]:
    """The best memories of an agent for a query by cosine and age.

    Few of the nearest are looked at, unless a memory beyond them could be better because it is younger: its cosine is
    not above that of the last of them, and it is not younger than the youngest of the agent.
    """
    youngest = decay(index.newest, now, decay_days)
    best: list[tuple[float, Nearest]] = []
    for depth in DEPTHS:
        nearest = index.nearest(vector, depth, users=users)
        ranked = ((one.cosine * decay(one.updated_at, now, decay_days), one) for one in nearest)
        best = nlargest(count, ranked, key=itemgetter(0))
        # Fewer than asked for are all that there are.
        if len(nearest) < depth or (len(best) == count and best[-1][0] >= max(nearest[-1].cosine, 0.0) * youngest):
            break
    return [one for _, one in best]


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
