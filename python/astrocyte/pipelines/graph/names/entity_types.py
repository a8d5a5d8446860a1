"""Types of names, decided by weighted evidence: lists of names, words inside the name, and words beside it.

The weights were set on the development split of benches/entities.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from astrocyte.model.derived.entity import NAME
from astrocyte.pipelines.graph.names.candidates import Candidate
from astrocyte.pipelines.graph.names.gazetteers import Gazetteers, gazetteers
from astrocyte.pipelines.graph.names.runs import LINKS
from astrocyte.pipelines.graph.names.type_words import (
    AFTER,
    BEFORE,
    EVENT,
    FIRST_HEADS,
    HEADS,
    NOUNS,
    ORG,
    PERSON,
    PLACE,
    PRODUCT,
    PROJECT,
)

# Characters before and after a name that are looked at.
REACH = 40
# Between a name and what precedes it.
PASSED = frozenset({
    "the", "a", "an", "my", "our", "your", "his", "her", "their", "its", "this", "old", "new", "big", "little",
    "dear", "elder", "older", "younger", "oldest", "youngest", "late", "best", "own", "former", "famous",
})  # fmt: skip
WORDS = re.compile(r"[^\W_][\w'\u2019-]*")
# A noun that says what the name is: ", a German startup", " is a city", " (a bakery)".
IS_A = re.compile(
    r"(?:,|\s\(|,? (?:is|was|are|became|,))? ?(?:also |now |still )?(?:a|an|the|my|our|his|her|their"
    r"|one of the) ((?:[\w'\u2019-]+ ){0,4}?[\w'\u2019-]+)"
    r"(?= ?(?:,|\.|\)|;|$| (?:in|at|of|from|for|near|that|who|which|with|called|based|by|on|and|to|where|since)\b))"
)
# An office after a name: ", CEO of".
OFFICE = re.compile(
    r",? (?:(?:co-)?founder|CEO|CTO|CFO|COO|president|director|head|owner|author|editor|captain|chair)\b"
)
# Right after a name: "Apollo project", "PyCon conference".
FOLLOWING = re.compile(r"[ -]([a-z][\w-]*)")
SHAPES = re.compile(r"[a-z][A-Z]|[A-Za-z]-?\d|^[a-z]|\+\+|#$|\.(?:js|io|ai|py)$")
ACRONYM = re.compile(r"[A-Z][A-Z&]{1,5}s?")
ROMAN = re.compile(r"I{2,3}|IV|VI{0,3}|IX|X{1,2}I{0,3}")
YEAR = re.compile(r"(?:19|20)\d\d|'\d\d|\d{2}")
FAMILY_MARKS = re.compile(r"^(?:O['\u2019]|(?:Mc|Mac|Le|La|De|Di|Du|Van|Von|Fitz)[A-Z]|[Dd]['\u2019])")
# Ends of family names of many languages.
FAMILY_ENDS = re.compile(
    r"(?:ski|ska|sky|skaya|wicz|ov|ova|ev|eva|enko|chuk|son|sen|sson|dottir|ez|es|escu|poulos|idis|akis|ian|yan"
    r"|shvili|dze|oglu|zadeh|pour|nen|mann|stein|berg|elli|etti|ini|wala|moto|mura|kawa|yama|guchi|saki|nathan|swamy|murthy)$"
)
# Confidence of a type by its evidence: saturates.
HALF = 1.5
# Weaker evidence names no type.
LEAST_WEIGHT = 0.7
# Confidence in a name without a type.
OF_UNTYPED = 0.4
# Four digits are a year, two may be a version.
YEAR_DIGITS = 4
# A given name and a family name.
PAIR = 2


class Typed(NamedTuple):
    """Evidence for types: the sum of the weights by type."""

    weights: dict[str, float]

    def best(self) -> tuple[str, float]:
        """The type with most evidence, and a confidence; `NAME` without evidence."""
        if not self.weights:
            return NAME, OF_UNTYPED
        kind = max(sorted(self.weights), key=lambda one: self.weights[one])
        total, most = sum(self.weights.values()), self.weights[kind]
        if most < LEAST_WEIGHT:
            return NAME, OF_UNTYPED
        return kind, round(0.5 + 0.5 * (most / (most + HALF)) * (most / total), 3)


def evidence(text: str, found: Candidate) -> Typed:
    """The evidence for the types of a candidate."""
    lists = gazetteers()
    typed = Typed({})
    words = found.folded
    if found.title:
        _add(typed, PERSON, 6.0)
    _inside(typed, found, words, lists)
    _listed(typed, words, lists)
    _before(typed, text, found.start)
    _after(typed, text, found.end)
    return typed


def _add(typed: Typed, kind: str, weight: float) -> None:
    """Add to the weight of a type."""
    typed.weights[kind] = typed.weights.get(kind, 0.0) + weight


def _inside(typed: Typed, found: Candidate, words: tuple[str, ...], lists: Gazetteers) -> None:
    """Evidence of the words of the name themselves."""
    last, first = words[-1].rstrip("."), words[0]
    if len(words) > 1:
        year = YEAR.fullmatch(words[-1])
        if year is not None:
            _add(typed, EVENT if len(words[-1]) == YEAR_DIGITS else PRODUCT, 2.0)
            last = words[-2]
        if ROMAN.fullmatch(found.words[-1]):
            _add(typed, PRODUCT, 2.0)
        if last in HEADS:
            person = (is_given(first, lists) or "-" in first) and last in lists.family and len(words) == PAIR
            _add(typed, HEADS[last], 1.0 if person else 4.5)
        elif first in HEADS and words[1] in {"of", "for"}:
            _add(typed, HEADS[first], 4.5)
        elif first.rstrip(".") in FIRST_HEADS:
            _add(typed, FIRST_HEADS[first.rstrip(".")], 3.0)
        if "&" in words:
            _add(typed, ORG, 3.0)
    name = found.words[-1] if len(words) == 1 else " ".join(found.words)
    if ACRONYM.fullmatch(name):
        _add(typed, ORG, 1.0)
    elif SHAPES.search(name) and not FAMILY_MARKS.match(name):
        _add(typed, PRODUCT, 1.5)


def _listed(typed: Typed, words: tuple[str, ...], lists: Gazetteers) -> None:
    """Evidence of the lists."""
    whole = " ".join(words)
    single = len(words) == 1
    if whole in lists.organisations:
        _add(typed, ORG, 3.0)
    if whole in lists.products or (not single and " ".join(words[:-1]) in lists.products and words[-1].isdigit()):
        _add(typed, PRODUCT, 2.6)
    if whole in lists.events or (not single and " ".join(words[:-1]) in lists.events):
        _add(typed, EVENT, 3.0)
    if whole in lists.places:
        _add(typed, PLACE, 2.4 if not (single and whole in lists.given) else 1.3)
    if single:
        _one_word(typed, whole, lists)
    elif not ((words[-1] in HEADS and not is_given(words[0], lists)) or "of" in words or "the" in words):
        _full_name(typed, words, lists)


def _one_word(typed: Typed, word: str, lists: Gazetteers) -> None:
    """Evidence of the lists of people for a name of one word."""
    if word in lists.given:
        alone = word not in lists.words and word not in lists.places
        _add(typed, PERSON, 2.8 if alone else 1.6 if word not in lists.words else 0.8)
    elif word in lists.family:
        _add(typed, PERSON, 0.8)
    elif FAMILY_ENDS.search(word):
        _add(typed, PERSON, 0.5)


def _full_name(typed: Typed, words: tuple[str, ...], lists: Gazetteers) -> None:
    """Evidence of the lists of people for a name of several words."""
    family = words[-1] in lists.family
    names = [word for word in words if word not in LINKS]
    if is_given(words[0], lists) or words[0].endswith("."):
        _add(typed, PERSON, 2.2 + 0.8 * family if len(names) > 1 else 1.0)
    elif family or FAMILY_ENDS.search(words[-1]) or words[0] in lists.family:
        _add(typed, PERSON, 1.4)
    elif len(names) in {2, 3} and not any(word in lists.words or word in HEADS or word[-1].isdigit() for word in names):
        _add(typed, PERSON, 0.6)


def is_given(word: str, lists: Gazetteers) -> bool:
    """True for a given name, also of two joined by a hyphen."""
    if word in lists.given:
        return True
    parts = word.split("-")
    return len(parts) > 1 and (any(part in lists.given for part in parts) or "".join(parts) in lists.given)


def _before(typed: Typed, text: str, start: int) -> None:
    """Evidence of the words before the name."""
    words = WORDS.findall(_same_sentence_before(text[max(0, start - REACH) : start]).lower())
    passed = 0
    while words and words[-1] in PASSED:
        words.pop()
        passed += 1
    if not words:
        return
    last = words[-1]
    if last in {"called", "named", "codenamed", "titled"} and len(words) > 1:
        last = words[-2] if words[-2] not in {"is", "was", "team"} else last
        if last in NOUNS:
            _add(typed, NOUNS[last], 4.0)
    elif last in NOUNS and not text[start - 1 : start].isalnum() and text[start - 2 : start - 1].isalpha():
        _add(typed, NOUNS[last], 3.5)
    pair = BEFORE.get(f"{words[-2]} {last}") if len(words) > 1 else None
    one = pair or BEFORE.get(last)
    if one is not None:
        # An article speaks against a person or a place: "at the Tate".
        _add(typed, one[0], one[1] * (0.4 if passed and one[0] in {PERSON, PLACE} else 1.0))


def _same_sentence_before(text: str) -> str:
    """The end of a text, from the last border of sentences on."""
    for mark in (". ", "! ", "? ", "\n", "; ", ": "):
        place = text.rfind(mark)
        if place >= 0 and not (mark == ". " and place > 1 and text[place - 2 : place].strip().istitle()):
            text = text[place + len(mark) :]
    return text


def _after(typed: Typed, text: str, end: int) -> None:
    """Evidence of the words after the name."""
    after = text[end : end + 2 * REACH]
    is_a = IS_A.match(after)
    if is_a is not None and after[0] in ", ":
        nouns = [word for word in is_a[1].lower().split() if word in NOUNS]
        if nouns:
            _add(typed, NOUNS[nouns[-1]], 3.5)
            return
    if OFFICE.match(after):
        _add(typed, PERSON, 3.0)
        return
    following = FOLLOWING.match(after)
    if following is None:
        return
    word = following[1]
    if word in NOUNS and NOUNS[word] != PERSON:
        _add(typed, NOUNS[word], 3.5 if NOUNS[word] in {PROJECT, EVENT} else 2.5)
    elif word in AFTER:
        kind, weight = AFTER[word]
        _add(typed, kind, weight)
