"""The entities that a question names, from which a search of the graph begins."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from astrocyte.model import Entity
from astrocyte.pipelines.graph.comparison import sides
from astrocyte.pipelines.search.entity_arm import (
    MOST_MEMORIES,
    MOST_SHARE,
    MOST_WORDS,
    POSSESSIVE,
    READ_WORDS,
    WORD,
)
from astrocyte.stores.graph.entity_graph import GraphReader

# Types of the entities that a run of words may name. E-mail addresses and hashtags come from the extraction at retain.
TYPES = ("person", "org", "place", "project", "product", "event", "name", "email", "hashtag")
# Entities of a question, or of one side of a comparison, at which a search begins.
MOST_SEEDS = 8
# Mentions that are few in any bank: of a dozen mentions, a quarter says nothing.
FEW_MENTIONS = 8


class Anchors(NamedTuple):
    """The keys of the entities of a question, in groups from each of which activation spreads by itself.

    ``compared`` is True if the first two groups are the sides of a comparison.
    """

    groups: tuple[tuple[int, ...], ...]
    compared: bool = False


def anchors_of(reader: GraphReader, question: str) -> Anchors:
    """The anchors of a question; no group if it names no entity that the bank knows.

    An entity that nearly every memory mentions tells nothing, and is left out; the sides of a comparison are not.
    """
    words = _words(question)
    known = reader.known_words({part for word in words for part in word.split("-")})
    named = _canonical(reader, words, known)
    if not named:
        return Anchors(())
    compared = sides(question) if len(named) > 1 else None
    if compared is not None:
        left, right = (_canonical(reader, _words(side), known) for side in compared)
        left = [key for key in left if key not in right] or left
        right = [key for key in right if key not in left]
        if left and right:
            rest = _telling(reader, [key for key in named if key not in {*left, *right}])
            groups = (left, right, rest) if rest else (left, right)
            return Anchors(tuple(tuple(group[:MOST_SEEDS]) for group in groups), compared=True)
    seeds = _telling(reader, named)[:MOST_SEEDS]
    return Anchors((tuple(seeds),) if seeds else ())


def _canonical(reader: GraphReader, words: Sequence[str], known: Collection[str]) -> list[int]:
    """The entities that words name, longest names first, each by the one that it is merged into."""
    ids = [f"{kind}:{name}" for name in _names(words, known) for kind in TYPES]
    keys = reader.keys(ids) if ids else {}
    groups = reader.groups([keys[one] for one in ids if one in keys]) if keys else {}
    return list(dict.fromkeys(group.canonical for group in groups.values()))


def _telling(reader: GraphReader, keys: Sequence[int]) -> list[int]:
    """Those of the entities that tell memories apart."""
    if not keys:
        return []
    groups = reader.groups(keys)
    counts = reader.counts([member for group in groups.values() for member in group.members])
    totals = {key: sum(counts.get(member, 0) for member in groups[key].members) for key in keys}
    doubtful = [total for total in totals.values() if FEW_MENTIONS < total <= MOST_MEMORIES]
    most = FEW_MENTIONS
    if doubtful:
        # Entities with one mention each are enough for the largest of these totals: no more have to be counted.
        counted = math.ceil(max(doubtful) / MOST_SHARE)
        most = max(most, min(MOST_MEMORIES, math.ceil(MOST_SHARE * reader.mention_counts(counted))))
    return [key for key in keys if totals[key] <= most]


def _words(text: str) -> list[str]:
    """The words of a text as the ids of entities have them; of the head of a long one."""
    found = (POSSESSIVE.sub("", word) for word in WORD.findall(text.casefold())[:READ_WORDS])
    return [Entity(word).id.partition(":")[2] for word in found]


def _names(words: Sequence[str], known: Collection[str]) -> list[str]:
    """The runs of words that may be names, longest first: all of their words are in the name of an entity."""
    places = [place for place, word in enumerate(words) if word and all(part in known for part in word.split("-"))]
    runs = (
        "-".join(words[place : place + length])
        for length in range(MOST_WORDS, 0, -1)
        for number, place in enumerate(places)
        # The run has no gap.
        if number + length <= len(places) and places[number + length - 1] == place + length - 1
    )
    return list(dict.fromkeys(runs))
