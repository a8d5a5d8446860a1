"""Sentences that state different values of one thing: the newer one counts, and the older one is told as such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, Self

from astrocyte.model import MemoryHit
from astrocyte.pipelines.query.time_windows import EPOCH
from astrocyte.pipelines.reflect.evidence import Sentence


class Claimed(Protocol):
    """A statement that knows which others cannot hold beside it."""

    def contradicts(self, other: Self, /) -> bool:
        """True if two statements cannot hold at the same time."""


# The statements of a text by a speaker.
Statements = Callable[[str, str | None], Sequence[Claimed]]


class Superseded(NamedTuple):
    """Two sentences that contradict each other."""

    newer: Sentence
    older: Sentence


def when(hit: MemoryHit) -> datetime:
    """The time at which a memory happened, or was stored; every hit has the latter."""
    return hit.occurred_at or hit.retained_at or EPOCH


def superseded(
    chosen: Sequence[Sentence], compared: Sequence[Sentence], hits: Sequence[MemoryHit], read: Statements
) -> list[Superseded]:
    """Pairs of contradicting sentences, of which at least one is chosen; each sentence is in one pair at the most.

    Args:
        chosen: The sentences of the answer, best first.
        compared: All that the answer could have, best first.
        hits: The memories, to which sentences refer by number.
        read: Tells the statements of a sentence.
    """

    def claimed(sentences: Sequence[Sentence]) -> dict[int, Sequence[Claimed]]:
        return {id(one): read(one.text, one.speaker or hits[one.hit].speaker) for one in sentences}

    claims = claimed(chosen)
    if not any(claims.values()):
        # Most sentences state nothing that others could contradict.
        return []
    claims |= claimed([one for one in compared if id(one) not in claims])
    pairs: list[Superseded] = []
    taken: set[int] = set()
    for one in chosen:
        for other in compared:
            mine, theirs = when(hits[one.hit]), when(hits[other.hit])
            if mine == theirs or id(one) in taken or id(other) in taken:
                continue
            if any(claim.contradicts(against) for claim in claims[id(one)] for against in claims[id(other)]):
                pairs.append(Superseded(one, other) if mine > theirs else Superseded(other, one))
                taken.update((id(one), id(other)))
    return pairs
