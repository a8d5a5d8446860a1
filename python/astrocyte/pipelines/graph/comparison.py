"""The two sides of a question that compares: "A vs B", "compare A and B", "difference between A and B", "A or B"."""

from __future__ import annotations

import re
from typing import NamedTuple

from astrocyte.pipelines.search.entity_arm import MOST_WORDS

# A question says what it is about within its first sentences.
MOST_CHARS = 400
# Between the sides, where words before them say that they are compared.
_BETWEEN = r"(?:and|with|to|against|from)"
_SIDE = r"[^,;.?!]{1,120}?"
_COMPARED = r"\b(?:compar(?:e[ds]?|ing|isons? (?:of|between))|differences? (?:between|of))"
_SHAPES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<left>.+?)\s*\b(?:vs\.?|versus)(?=\s)(?P<right>.+)",
        rf"{_COMPARED}\s+(?P<left>{_SIDE})\s+{_BETWEEN}\s+(?P<right>.+)",
        r"(?P<left>.+?)\s+(?:differ(?:s|ed)? from|(?:more|less|\w+er) than|(?:is|are) similar to)\s+(?P<right>.+)",
        rf"\b(?:do|does|did|have|has)\s+(?P<left>{_SIDE})\s+and\s+(?P<right>{_SIDE})\s+(?:differ|have in common)\b",
        r"(?P<left>.+?)\s+or\s+(?P<right>.+)",
    )
)
_WORD = re.compile(r"\S+")


class Sides(NamedTuple):
    """The words next to each other on both sides of a comparison: a name of at most four words is among them."""

    left: str
    right: str


def sides(question: str) -> Sides | None:
    """The sides of a comparison; None for a question of another shape."""
    head = question[:MOST_CHARS]
    for shape in _SHAPES:
        found = shape.search(head)
        if found is not None:
            left, right = _WORD.findall(found["left"]), _WORD.findall(found["right"])
            return Sides(" ".join(left[-MOST_WORDS:]), " ".join(right[:MOST_WORDS]))
    return None
