"""Types of answers that questions ask for, and their signs in a sentence: "when" wants a date, "who" a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

from astrocyte.pipelines.query.calendar import MONTH_NAMES, NUMBERS, WEEKDAYS


class AnswerType(StrEnum):
    """The type of answer that a question asks for."""

    PERSON = "person"
    PLACE = "place"
    NAME = "name"
    DATE = "date"
    DURATION = "duration"
    FREQUENCY = "frequency"
    NUMBER = "number"
    REASON = "reason"
    OTHER = "other"


# The first of these words says what is asked: "In May, which city did ...".
QUESTION_WORD = re.compile(r"\b(?:who|where|when|why|how|what|which)", re.IGNORECASE)
# How a question of each type goes on from that word; the first that matches counts. A word may stand before the noun:
# "which large city".
_WHICH = r"(?:what|which)(?:'s)? (?:(?:is|was|are|were) the |the )?(?:[\w'-]+ )?"
_QUESTIONS: tuple[tuple[AnswerType, str], ...] = (
    (
        AnswerType.REASON,
        r"why\b|what (?:made|motivate|inspire)|" + _WHICH + r"(?:reason|motivation|inspiration|purpose)",
    ),
    (AnswerType.DURATION, r"how long\b|how many (?:minute|hour|day|week|month|year)s\b"),
    (AnswerType.FREQUENCY, r"how (?:often|frequently|regularly)\b"),
    (
        AnswerType.NUMBER,
        r"how (?:many|much|old|tall|far|high|big|large|heavy|fast)\b|"
        + _WHICH
        + r"(?:number|percentage|price|cost|fee|rent|fare|age|amount|size|salary|weight)\b",
    ),
    (AnswerType.DATE, r"when\b|" + _WHICH + r"(?:day|date|time|week|month|year|season)s?\b"),
    (
        AnswerType.PLACE,
        r"where\b|"
        + _WHICH
        + r"(?:city|town|village|country|state|region|area|place|location|street|island|building|room)\b",
    ),
    (AnswerType.PERSON, r"who(?:m|se|'s)?\b|" + _WHICH + r"(?:person|friend|colleague|artist|author|singer|actor)\b"),
    (
        AnswerType.NAME,
        _WHICH
        + r"(?:name|title|book|novel|movie|film|song|album|game|show|series|band|team|club|party|company|brand|school"
        r"|college|university|institution|organi[sz]ation|restaurant|breed)\b",
    ),
)
QUESTIONS = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _QUESTIONS)

# These words count nothing exactly, or stand where nothing is counted.
_NUMBER = "|".join(word for word in NUMBERS if word not in {"a", "an", "one", "few", "several", "couple"})
_DATE_WORDS = "|".join([*(name for name in MONTH_NAMES if name and name != "May"), *WEEKDAYS])
_SIGNS: Mapping[AnswerType, str] = {
    AnswerType.DATE: rf"\b\d{{4}}\b|\b\d{{1,2}}:\d\d\b|\b(?:{_DATE_WORDS})\b"
    r"|\b(?:yesterday|today|tonight|tomorrow|ago|last|next)\b"
    r"|\bthis (?:morning|afternoon|evening|week|weekend|month|year|spring|summer|autumn|fall|winter)\b",
    AnswerType.DURATION: rf"\b(?:\d[\d.,]*|{_NUMBER}|a|an|one|few|several|couple of)(?: \w+)?"
    r" (?:second|minute|hour|day|night|week|month|year|decade)s?\b|\b(?:since|until)\b",
    AnswerType.FREQUENCY: r"\b(?:once|twice|times|every|each|daily|weekly|monthly|yearly|always|usually|often|never)\b",
    AnswerType.NUMBER: rf"\d|\b(?:{_NUMBER}|once|twice|half|both|double|hundreds|thousands?|millions?|none|pair)\b",
    AnswerType.REASON: r"\b(?:because|since|so that|so (?:i|we|he|she|they)|due to|thanks to|in order to|that's why)\b"
    r"|\b(?:reason|inspir|motivat|want|help|remind)",
}
SIGNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _SIGNS.items()}
# Capitals at the start of a sentence say nothing.
NAME = re.compile(r"(?<![.!?:\"\u201c] )(?<!^)\b(?!I\b|I['\u2019])[A-Z][\w'\u2019-]+")
QUOTED = re.compile(r"[\"\u201c][^\"\u201d]+[\"\u201d]")
RELATIVE = re.compile(
    r"\b(?:mother|father|mom|mum|dad|parents?|sister|brother|son|daughter|wife|husband|partner|friends?|boss|manager"
    r"|teacher|coach|neighbou?rs?|colleagues?|team|aunt|uncle|cousin|girlfriend|boyfriend|kids|family|mentor)\b",
    re.IGNORECASE,
)
IN_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|into|around|behind|above|under|outside|along|across|by|on|through)"
    r" (?:(?:the|an?|my|our|his|her|their|this) )?(?:[a-z]+ )?(?P<name>[A-Z])?"
)
# Signs that stand for the type in some sentences and for something else in many: "my sister", "at the end".
UNSURE = 0.6


def answer_type(question: str) -> AnswerType:
    """The type of answer that a question asks for; `OTHER` if its first question word leaves it open."""
    word = QUESTION_WORD.search(question)
    if word is None:
        return AnswerType.OTHER
    return next((kind for kind, pattern in QUESTIONS if pattern.match(question, word.start())), AnswerType.OTHER)


def signs_of(kind: AnswerType, question: str) -> Callable[[str], float]:
    """A function that says how clearly a sentence has an answer of a type, from 0 to 1.

    Args:
        kind: The type.
        question: The question, of which names are no answer.
    """
    asked = question.lower()

    def named(text: str) -> bool:
        return any(name.lower().removesuffix("'s") not in asked for name in NAME.findall(text))

    def person(text: str) -> float:
        return 1.0 if named(text) else UNSURE * (RELATIVE.search(text) is not None)

    def place(text: str) -> float:
        found = [match["name"] is not None for match in IN_PLACE.finditer(text)]
        return 1.0 if any(found) else UNSURE * bool(found)

    def name(text: str) -> float:
        return float(named(text) or QUOTED.search(text) is not None)

    special = {AnswerType.PERSON: person, AnswerType.PLACE: place, AnswerType.NAME: name}
    if kind in special:
        return special[kind]
    pattern = SIGNS.get(kind)
    return lambda text: float(pattern is not None and pattern.search(text) is not None)
