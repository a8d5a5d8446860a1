"""Anchors of relations: the names of a text, and the pronouns that stand for one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from astrocyte.model.derived.graph import Mention
from astrocyte.pipelines.graph.names.type_words import PERSON

FIRST = frozenset({"i", "i'm", "i've", "i'd", "we", "we've", "we're", "my", "our"})
# With its possessive forms.
POSSESSIVE = frozenset({"my", "our", "his", "her", "their"})
PRONOUN = re.compile(
    r"\b(?:I['\u2019](?:m|ve|d)|I|[Ww]e(?:['\u2019](?:ve|re))?|[Mm]y|[Oo]ur|[Hh]is|[Hh]er|[Hh]e|[Ss]he"
    r"|[Tt]heir)\b(?!['\u2019])"
)
SENTENCE_END = re.compile(r"[.!?\u2026](?=[\s\"\u201d]|$)|\n")
# Of a relation whose side is a pronoun: the person meant may be another.
DOUBT, SURE = 0.75, 0.99
# Names and pronouns that are read; a page of prose has fewer.
MOST_ANCHORS = 512
TITLE = re.compile(r"\b(?:Dr|Mr|Mrs|Ms|Prof|St|Mt|e\.g|i\.e|vs|[A-Z])$")


class Anchor(NamedTuple):
    """A side of a relation.

    Attributes:
        name: The name that it stands for.
        entity_type: Type of that name.
        start: First character in the text.
        end: The character after the last.
        sentence: Number of its sentence.
        possessive: True for "my" and "her".
        doubt: Factor of the confidence.
    """

    name: str
    entity_type: str
    start: int
    end: int
    sentence: int
    possessive: bool
    doubt: float

    @property
    def pronoun(self) -> bool:
        """True if the text has a pronoun here instead of the name."""
        return self.doubt < 1


class _People:
    """The people of the sentence that is being read, and of the last one that named any."""

    def __init__(self) -> None:
        self._sentence = -1
        self._own: dict[str, None] = {}

    def name(self, name: str, sentence: int) -> None:
        """Add a person that the sentence names."""
        if sentence != self._sentence:
            self._sentence, self._own = sentence, {}
        self._own[name] = None

    def antecedent(self, sentence: int, *, possessive: bool) -> str | None:
        """The person that "she" or "her" stands for; None if no one, or if one of several may be meant.

        "Her" may stand for the first person of its own sentence. Other pronouns stand for the only person of their own
        sentence, or the first of the last sentence that names one.
        """
        if not self._own or (sentence == self._sentence and not possessive and len(self._own) > 1):
            return None
        return next(iter(self._own))


def anchors(text: str, mentions: Sequence[Mention], speaker: str | None) -> list[Anchor]:
    """The anchors of a text, in order; pronouns that stand for nobody known are left out."""
    placed: list[tuple[int, int, Mention | None]] = [(one.start, one.end, one) for one in mentions if one.start >= 0]
    inner = {place for start, end, _ in placed for place in range(start, end)}
    ends = [found.end() for found in SENTENCE_END.finditer(text) if not _abbreviated(text, found.start(), inner)]
    placed += [(*found.span(), None) for found in PRONOUN.finditer(text) if found.start() not in inner]
    placed.sort(key=lambda one: one[:2])
    known: list[Anchor] = []
    people = _People()
    sentence = reached = 0
    for start, end, mention in placed:
        while sentence < len(ends) and ends[sentence] <= start:
            sentence += 1
        if start < reached or len(known) == MOST_ANCHORS:
            continue
        if mention is not None:
            known.append(Anchor(mention.name, mention.entity_type, start, end, sentence, possessive=False, doubt=1.0))
            reached = end
            if mention.entity_type == PERSON:
                people.name(mention.name, sentence)
            continue
        word = text[start:end].lower().replace("\u2019", "'")
        possessive = word in POSSESSIVE
        name = speaker if word in FIRST else people.antecedent(sentence, possessive=possessive)
        if name is not None:
            doubt = SURE if word in FIRST else DOUBT
            known.append(Anchor(name, PERSON, start, end, sentence, possessive=possessive, doubt=doubt))
    return known


def _abbreviated(text: str, place: int, inner: set[int]) -> bool:
    """True for a full stop inside a name, or after a title or an initial."""
    if text[place] != ".":
        return False
    if place in inner and not text[place + 1 : place + 3].strip()[:1].isupper():
        return True
    return TITLE.search(text, max(0, place - 5), place) is not None
