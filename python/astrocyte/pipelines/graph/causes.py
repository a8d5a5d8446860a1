"""Causal links by rule: clauses joined by "because", "so that", "led to" and their like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from astrocyte.model.derived.graph import Relation
from astrocyte.pipelines.graph.anchors import SENTENCE_END, Anchor

# Between two clauses: the cause comes after these words, before those.
CAUSE_AFTER = re.compile(
    r"\b(?:because(?: of)?|due to|owing to|thanks to|as a result of|on account of|caused by|triggered by)\b",
    re.IGNORECASE,
)
CAUSE_BEFORE = re.compile(
    r"\b(?:led to|resulted in|caused|triggered|which is why|that is why|that's why|so that|as a result,|therefore"
    r"|consequently|which forced|which made|forcing|meaning that)\b",
    re.IGNORECASE,
)
# Opens a sentence whose cause comes first: "Because X, Y".
OPENING = re.compile(r"\s*(?:because(?: of)?|due to|owing to|thanks to|as a result of)\b", re.IGNORECASE)
MOST_CAUSES = 8
OF_CLAUSES = 0.6


class CausalPair(NamedTuple):
    """A cause and its effect, as places in a text."""

    cause: tuple[int, int]
    effect: tuple[int, int]
    confidence: float


def causal_pairs(text: str) -> list[CausalPair]:
    """The causes and effects that a text states in one sentence each, up to `MOST_CAUSES`."""
    pairs: list[CausalPair] = []
    start = 0
    ends = [found.start() for found in SENTENCE_END.finditer(text)] + [len(text)]
    for end in ends:
        pair = _of_sentence(text, start, end) if text[end : end + 1] != "?" else None
        if pair is not None:
            pairs.append(pair)
        if len(pairs) == MOST_CAUSES:
            break
        start = end + 1
    return pairs


def _of_sentence(text: str, start: int, end: int) -> CausalPair | None:
    opening = OPENING.match(text, start, end)
    if opening is not None:
        comma = text.find(",", opening.end(), end)
        return CausalPair((opening.end(), comma), (comma + 1, end), 0.8) if comma > 0 else None
    after = CAUSE_AFTER.search(text, start, end)
    if after is not None:
        return CausalPair((after.end(), end), (start, after.start()), 0.8)
    before = CAUSE_BEFORE.search(text, start, end)
    return None if before is None else CausalPair((start, before.start()), (before.end(), end), 0.7)


def causes(text: str, known: Sequence[Anchor]) -> Iterator[Relation]:
    """Relations ``caused_by`` from the first name of an effect to the first name of its cause."""
    if not known or not (CAUSE_AFTER.search(text) or CAUSE_BEFORE.search(text)):
        return
    for pair in causal_pairs(text):
        cause, effect = _first(known, pair.cause), _first(known, pair.effect)
        if cause is not None and effect is not None and cause.name != effect.name:
            start, end = min(pair.cause[0], pair.effect[0]), max(pair.cause[1], pair.effect[1])
            confidence = round(OF_CLAUSES * cause.doubt * effect.doubt, 3)
            yield Relation(effect.name, cause.name, "caused_by", start, end, confidence)


def _first(known: Sequence[Anchor], clause: tuple[int, int]) -> Anchor | None:
    return next((one for one in known if clause[0] <= one.start and one.end <= clause[1] and not one.pronoun), None)
