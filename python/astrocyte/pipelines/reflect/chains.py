"""Questions about a relative of somebody, whose name a first recall finds: "What does Mara's sister do?"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from astrocyte.core import split_sentences
from astrocyte.model import MemoryHit
from astrocyte.pipelines.query.calendar import MONTH_NAMES, WEEKDAYS
from astrocyte.pipelines.text.content_words import content_words

# People by their relation to somebody, each with its other words.
_RELATIONS = (
    "mother|mom|mum", "father|dad", "wife|husband|spouse|partner", "boss|manager|supervisor",
    "sister", "brother", "son", "daughter", "grandmother|grandma", "grandfather|grandpa", "aunt", "uncle", "cousin",
    "niece", "nephew", "girlfriend", "boyfriend", "fiance|fianc\u00e9|fiancee|fianc\u00e9e", "roommate|flatmate",
    "neighbou?r", "colleague|coworker", "teacher", "coach", "mentor", "doctor", "dentist", "landlord", "landlady",
    "best friend", "dog", "cat", "horse", "parrot",
)  # fmt: skip
_NAME = r"[A-Z][\w-]+"
_WHOSE = r"(?:'s|\u2019s|'|\u2019)"
# Words with a capital that are no name of somebody.
NO_NAMES = frozenset({"I", "He", "She", "They", "We", "It", "The", "And", "But", "So", *MONTH_NAMES[1:]}) | frozenset(
    word.capitalize() for word in WEEKDAYS
)
QUESTION = re.compile(
    rf"\b(?P<owner>{_NAME}){_WHOSE} (?:older |younger |big |little |elder |twin |new |old )?"
    rf"(?P<relation>{'|'.join(_RELATIONS)})\b(?P<rest>{_WHOSE} name)?",
)


class Chain(NamedTuple):
    """A question about a relative.

    ``owner`` is whose relative it is, ``relation`` a pattern of the words for it, ``start`` and ``end`` the place of
    both in the question.
    """

    owner: str
    relation: str
    start: int
    end: int


class Link(NamedTuple):
    """The sentence that names a relative: its memory's number, its text, and the name."""

    hit: int
    text: str
    name: str


def chain_of(question: str) -> Chain | None:
    """The chain that a question makes; None if it names no relative of somebody, several, or asks for the name."""
    found = list(QUESTION.finditer(question))
    if len(found) != 1 or found[0]["rest"]:
        return None
    (match,) = found
    # "Who is Mara's sister?" asks for the name, which the first recall finds.
    if not content_words(question[: match.start()] + " " + question[match.end() :]) and question.lower().startswith(
        "who"
    ):
        return None
    words = next(words for words in _RELATIONS if re.fullmatch(words, match["relation"]))
    return Chain(match["owner"], words, match.start(), match.end())


def link_of(chain: Chain, question: str, hits: Sequence[MemoryHit]) -> Link | None:
    """The first sentence of the memories that names the relative; None if none does, or the question has the name.

    "My sister" is a relative of the speaker alone, and "Mara's sister" of Mara, whoever says so.
    """
    for number, hit in enumerate(hits):
        owners = rf"\b{re.escape(chain.owner)}{_WHOSE}"
        if hit.speaker is not None and hit.speaker.split()[:1] == [chain.owner]:
            owners = rf"(?:{owners}|\b[Mm]y|\b[Oo]ur)"
        patterns = _patterns(owners, chain.relation)
        if not any(pattern.search(hit.text) for pattern in patterns):
            continue
        for piece in split_sentences(hit.text, every_stop=True):
            name = _named(patterns, piece)
            if name and re.search(rf"\b{re.escape(name)}\b", question) is None:
                return Link(number, piece.strip(), name)
    return None


def asked_of(chain: Chain, question: str, name: str) -> str:
    """The question with the name in the place of the relative."""
    return f"{question[: chain.start]}{name}{question[chain.end :]}"


def _patterns(owners: str, relation: str) -> tuple[re.Pattern[str], ...]:
    one = rf"{owners} (?:[a-z]+ )?(?:{relation})"
    return (
        re.compile(
            rf"{one}(?:,? |,? who is |,? whose name is | is (?:called |named )?| named | called )(?P<name>{_NAME})"
        ),
        re.compile(rf"{one}{_WHOSE} name is (?P<name>{_NAME})"),
        re.compile(rf"\b(?P<name>{_NAME}),? (?:(?:is|was) )?{one}\b"),
    )


def _named(patterns: Sequence[re.Pattern[str]], sentence: str) -> str:
    for pattern in patterns:
        match = pattern.search(sentence)
        if match is not None and match["name"] not in NO_NAMES:
            return match["name"]
    return ""
