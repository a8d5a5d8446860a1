"""Kinds of things that a question asks a list of ("which instruments ..."), and the things that a text names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

# Things of these kinds have titles: a text names one if it has a title in quotation marks.
TITLED = frozenset({"authors", "books", "films", "movies", "novels", "series", "shows", "songs", "stories"})
# The kinds of the file ``data/kind_members.txt``, here so that the pattern needs no file.
_LISTED = (
    "activities animals beverages careers cars cities clothes colors colours countries cuisines dances desserts "
    "destinations diseases dishes drinks emotions exercises feelings foods fruits games garments hobbies "
    "illnesses ingredients injuries instruments interests jobs languages locations meals occupations outfits "
    "pastimes pets places professions recipes relatives snacks sports states symptoms towns toys treats "
    "vegetables vehicles workouts"
)
LISTED = frozenset(_LISTED.split())
_AUXILIARY = "am|is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|must"
_KIND = "|".join(sorted(TITLED | LISTED))
# The kind is the noun that is asked for, so that a verb, a preposition or the end follows: not "which sports teams".
QUESTION = re.compile(
    rf"(?i:\b(?:(?:what|which)(?: are| were)?|list|name|all)(?: (?!(?:{_AUXILIARY})\b)[\w'\u2019&/+-]+){{0,6}}?"
    rf" ({_KIND})(?= (?:{_AUXILIARY}|of|for|in|at|on|to|with|from|about|and|or|that|who|besides|go|went)\b|[,?.!:/]|$))"
)
_TITLE = re.compile('["\u201c][A-Z][^"\u201c\u201d]{2,60}["\u201d]')
_WORD = re.compile(r"[^\W\d_][\w'\u2019-]*")
# As in the file.
_MOST_WORDS = 3
# Endings of words in a text, and of their form in the file: "violins", "dishes", "hobbies", "painted".
_ENDINGS = (("", ""), ("s", ""), ("es", ""), ("ies", "y"), ("ed", "ing"))


class Members(NamedTuple):
    """Names of the things of a kind, and the last words of them."""

    names: frozenset[str]
    last: frozenset[str]


@cache
def lexicon() -> dict[str, Members]:
    """The members of each kind; none for the kinds whose things have titles."""
    text = files("astrocyte.pipelines.recall").joinpath("data", "kind_members.txt").read_text(encoding="utf-8")
    found = dict.fromkeys(TITLED, Members(frozenset(), frozenset()))
    for line in text.splitlines():
        kinds, _, names = line.partition(": ")
        own = frozenset(names.split("; "))
        found.update(dict.fromkeys(kinds.split(), Members(own, frozenset(name.split()[-1] for name in own))))
    return found


def asked_kinds(question: str) -> frozenset[str]:
    """The kinds of which a question asks a list, in the plural; none for most questions."""
    return frozenset(kind.lower() for kind in QUESTION.findall(question))


def named_things(text: str, kinds: frozenset[str]) -> frozenset[str]:
    """The members of kinds that a text names, and its titles if things of one of the kinds have titles."""
    words = [word.lower().replace("\u2019", "'").removesuffix("'s") for word in _WORD.findall(text)]
    found = {name for kind in kinds for name in _named(words, lexicon()[kind])}
    if not TITLED.isdisjoint(kinds):
        found.update(title[1:-1].lower() for title in _TITLE.findall(text))
    return frozenset(found)


def _named(words: list[str], members: Members) -> Iterator[str]:
    """The members that are runs of words, with the last word in the form of the file."""
    for end, last in enumerate(words):
        for ending, form in _ENDINGS:
            if not last.endswith(ending) or (word := last.removesuffix(ending) + form) not in members.last:
                continue
            names = (" ".join((*words[end - count : end], word)) for count in range(min(_MOST_WORDS, end + 1)))
            yield from members.names.intersection(names)
