"""Words that tell the type of the name beside them, or that are no part of a name."""

from __future__ import annotations

from collections.abc import Iterator

from astrocyte.pipelines.extraction.rule_entities import NO_NAMES
from astrocyte.pipelines.graph.names.gazetteers import fold, lines

PERSON, ORG, PLACE, PROJECT, PRODUCT, EVENT = "PERSON", "ORG", "PLACE", "PROJECT", "PRODUCT", "EVENT"


def _words(name: str) -> frozenset[str]:
    """The words of a file, with and without accents."""
    words = [word for line in lines(name) for word in line.split()]
    return frozenset((*words, *map(fold, words)))


def _groups(name: str, between: str | None = None) -> Iterator[tuple[str, str]]:
    """The words of a file of lines ``KIND: words``, each after its kind, with and without accents."""
    for line in lines(name):
        kind, _, listed = line.partition(": ")
        for word in listed.split(between):
            yield word.strip(), kind
            yield fold(word.strip()), kind


def _weights(name: str) -> dict[str, tuple[str, float]]:
    """The type and the weight of each word, or pair of words, of a file of lines ``KIND weight: words``."""
    return {word: (kind.split()[0], float(kind.split()[1])) for word, kind in _groups(name, ";")}


HONORIFICS = _words("honorifics.txt")
# The last word of a company's name.
LEGAL_FORMS = _words("legal_forms.txt")
# The first word of a name, in languages that put the kind first.
FIRST_HEADS = dict(_groups("first_heads.txt"))
_KINDS = dict(_groups("heads.txt"))
# The last word of a name, or the first before "of".
HEADS = dict.fromkeys(LEGAL_FORMS, ORG) | _KINDS
# Before or after a name: what it is.
NOUNS = _KINDS | dict(_groups("nouns.txt"))
# The last word before a name, or the last two, with the weight.
BEFORE = _weights("words_before.txt")
# The word after a name, with the weight.
AFTER = _weights("words_after.txt")
# Inside a sentence a capital makes other words part of a name: "the New Museum".
NEVER = _words("no_names.txt")
OPENERS = NO_NAMES | NEVER | _words("openers.txt")
# Function words that are given names too; a family name after them decides.
NAMES_TOO = frozenset({"will", "may", "april", "june", "august", "an", "so", "do", "in", "mark", "summer", "christian"})
