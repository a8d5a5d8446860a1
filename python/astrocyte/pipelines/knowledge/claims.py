"""The content of a statement as far as others agree with it or contradict it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from astrocyte.pipelines.graph.names.gazetteers import area_levels, fold, gazetteers, place_table
from astrocyte.pipelines.retain.statement_differences import FIGURES, same_words
from astrocyte.stores.knowledge.items import CLAIM_KEYS


class Relation(StrEnum):
    """The way in which two statements of one subject and predicate concern each other."""

    # Of one object, a statement and its denial contradict each other; other objects are other statements.
    MANY = "many"
    # There is one object at a time, which a name denotes: a later one takes the place of the earlier one.
    ONE = "one"


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of a statement.

    ``words`` are the stems of the object, with names and numbers, in order. They find statements that may be alike; the
    object itself decides. ``frequency`` is an adverb such as "always", or when and why a state began; or empty.
    """

    words: tuple[str, ...]
    object: str
    frequency: str
    is_denied: bool
    relation: Relation

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Claim:
        """The claim of a body that has all of `CLAIM_KEYS`."""
        return cls(
            tuple(body["words"]), body["object"], body["frequency"], bool(body["denied"]), Relation(body["relation"])
        )

    def encoded(self) -> dict[str, Any]:
        """The inverse of `of`."""
        values = (list(self.words), self.object, self.frequency, self.is_denied, str(self.relation))
        return dict(zip(CLAIM_KEYS, values, strict=True))

    def agrees(self, other: Claim) -> bool:
        """True if two claims of one topic say the same."""
        return self.is_denied == other.is_denied and self.frequency == other.frequency and self._has_object_of(other)

    def contradicts(self, other: Claim) -> bool:
        """True if two claims of one topic cannot hold at the same time."""
        if self.is_denied != other.is_denied:
            denied, affirmed = (self, other) if self.is_denied else (other, self)
            # Who does not always eat meat may often eat it.
            return denied.frequency in {"", affirmed.frequency} and self._has_object_of(other)
        if Relation.MANY in {self.relation, other.relation} or self.is_denied:
            return False
        # "York" may be short for "York City", and neither denies the other.
        mine, others = set(_canonical(self.object).split()), set(_canonical(other.object).split())
        return not (mine <= others or others <= mine)

    def _has_object_of(self, other: Claim) -> bool:
        """True if the objects are the same, word by word but for articles and inflection."""
        return self.words == other.words and same_words(self.object, other.object)


def level_of(name: str) -> str | None:
    """The level of an area, or "" of anything else that a name denotes; names of two levels may both hold.

    Returns None for days, months and holidays, which are no places and no organisations.
    """
    folded = fold(name)
    if folded in FIGURES or folded in gazetteers().events:
        return None
    return area_levels().get(_canonical(name), "")


def may_be_place(name: str) -> bool:
    """True for a known place, and for a name that is known as nothing else."""
    known, folded = gazetteers(), _canonical(name)
    others = (known.words, known.organisations, known.products, known.events)
    return folded in known.places or not any(folded in names for names in others)


def _canonical(name: str) -> str:
    folded = fold(name).removeprefix("the ")
    return place_table().get(folded, folded)
