"""Words that carry content, in one form whatever their ending. English endings; other languages keep theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_STOP = """
a about above after again against all also am an and any are aren as at be because been before being below between
both but by can cannot could couldn d did didn do does doesn doing don down during each else ever few for from
further had hadn has hasn have haven having he her here hers herself him himself his how i if in into is isn it its
itself just kind ll m many may me might more most much must my myself no nor not now of off often on once only or
other our ours ourselves out over own re s same shall she should shouldn so some such t than that the their theirs
them themselves then there these they this those through to too type under until up upon us ve very was wasn we were
weren what when where whether which while who whom whose why will with won would wouldn yes yet you your yours
yourself yourselves
"""
# Words that say nothing of what a text is about.
STOP = frozenset(_STOP.split())
# The shortest word that may lose an ending; a shorter one is another word without it.
SHORTEST = 4
# How many words are remembered with their stems, and the longest of them: those of a language, not what somebody keeps
# secret.
REMEMBERED = 32_768
LONGEST_REMEMBERED = 16


def words_of(text: str) -> list[str]:
    """All words in lower case, in order, with repetitions."""
    return WORD.findall(text.lower())


def content_of(words: Iterable[str]) -> list[str]:
    """Stems of those words, in lower case, that carry content."""
    return [stem for word in words if (stem := _known(word) if len(word) <= LONGEST_REMEMBERED else _content(word))]


def content_words(text: str) -> list[str]:
    """Stems of the words that carry content, in order, with repetitions."""
    return content_of(words_of(text))


def _content(word: str) -> str:
    """The stem of a word in lower case; empty for one without content."""
    base = word.partition("'")[0].partition("\u2019")[0]
    return "" if base in STOP else _stem(base)


_known = lru_cache(maxsize=REMEMBERED)(_content)


def _stem(word: str) -> str:
    """The word without a plural or an ending of a verb; only equality of stems has a meaning."""
    if len(word) < SHORTEST or not word.isascii() or word.isdigit():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "es", "s"):
        kept = word[: -len(ending)]
        if word.endswith(ending) and len(kept) >= SHORTEST - 1 and not (ending == "s" and kept.endswith(("s", "u"))):
            word = kept
            # "planning", "planned": the doubled letter belongs to the ending.
            if ending in {"ing", "ed"} and kept[-1] == kept[-2] and kept[-1] not in "lsz":
                word = kept[:-1]
            break
    return word.rstrip("e") if len(word) >= SHORTEST else word
