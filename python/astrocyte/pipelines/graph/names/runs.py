"""Runs of capitalised words in a text, divided where two names meet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from astrocyte.pipelines.extraction.rule_entities import CAPITALS
from astrocyte.pipelines.graph.names.gazetteers import Gazetteers, fold
from astrocyte.pipelines.graph.names.type_words import HEADS, ORG, PLACE

_ABBREVIATION = (
    r"(?:Dr|Prof|Mr|Mrs|Ms|Mx|St|Ste|Mt|Ft|Sr|Jr|Rev|Capt|Lt|Col|Gen|Sgt|Hon|Gov|Sen|Rep|Sra|Srta|Dra|Inc|Ltd|Co|Corp"
    r"|Bros|Mme|Mlle|Fr)\.(?!\w)"
)
_UNIT = (
    rf"(?:(?:[{CAPITALS}]\.){{1,4}}(?![^\W\d_][^\W\d_])"  # initials
    rf"|{_ABBREVIATION}|(?:[dDlLO]['\u2019]"
    rf"|[a-z](?=[{CAPITALS}][{CAPITALS}a-z]))?[{CAPITALS}][\w+]*(?:['\u2019./-](?:[^\W_]+))*(?:\+\+|\#)?)"
)
_LINK = (
    r"(?:of the|of|de la|de los|de las|de|del|della|di|da|do|dos|das|du|la|le|van der|van den|van de|van|von der|von"
    r"|der|den|ter|ten|al|el|bin|ibn|bint|ben|af|av|zu|y|&|for)"
)
_NEXT = rf"(?:[ \u00a0](?:{_LINK} )?{_UNIT}|[ -]\d{{1,4}}(?![\w%:/.,-]*\w)|(?<=\.){_UNIT})"
RUN = re.compile(rf"(?<![\w@#/\\.])(?:{_UNIT})(?:{_NEXT}){{0,9}}")
POSSESSIVE = re.compile(r"['\u2019]s?$")
# Words whose possessive is part of a name.
KEPT_POSSESSIVES = frozenset(
    {"mcdonald's", "levi's", "macy's", "sotheby's", "lloyd's", "moody's", "domino's", "l'oreal"}
)
LINKS = frozenset(_LINK[3:-1].replace("|", " ").split())
# Words before "of" in names, beside those of organisations, places and events.
_OF = frozenset(
    [
        "lord",
        "game",
        "lady",
        "bank",
        "tower",
        "city",
        "isle",
        "order",
        "house",
        "duke",
        "museum",
        "gulf",
        "church",
        "feast",
        "statue",
        "wall",
        "art",
    ]
)
# Words before "for" in names.
_FOR = frozenset({"center", "centre", "institute", "society", "foundation", "school", "agency", "association"})


class Word(NamedTuple):
    """A word of a run, its place in the text, and its form without case and accents."""

    text: str
    start: int
    folded: str


def parts(run: re.Match[str], lists: Gazetteers) -> Iterator[list[Word]]:
    """The words of a run, divided after possessives and at links that join two names."""
    part: list[Word] = []
    words: list[Word] = []
    offset = run.start()
    for written in run.group().replace("\u00a0", " ").split(" "):
        words.append(Word(written, offset, fold(written)))
        offset += len(written) + 1
    for place, word in enumerate(words):
        if part and word.folded in LINKS and _divides(word.folded, part, words, place, lists):
            yield part
            part = []
            continue
        part.append(word)
        if word.folded.endswith(("'s", "s'")) and word.folded not in KEPT_POSSESSIVES and not _headed(words, place):
            yield part
            part = []
    if part:
        yield part


def _headed(words: list[Word], place: int) -> bool:
    """True if the kind of an institution follows: "St. Mary's Hospital"."""
    return place + 1 < len(words) and HEADS.get(words[place + 1].folded) in {ORG, PLACE}


def _divides(link: str, part: list[Word], words: list[Word], place: int, lists: Gazetteers) -> bool:
    first, last = part[0].folded, part[-1].folded
    if link == "for":
        return last not in _FOR
    if link == "of":
        after = " ".join(POSSESSIVE.sub("", word.folded) for word in words[place + 1 :])
        kept = any(word.folded in HEADS or word.folded in _OF for word in part)
        person = (first in lists.given or last in lists.family) and last not in lists.words
        return not kept and (person or lists.holds(after))
    if link == "&":
        after = words[min(place + 1, len(words) - 1)].folded
        return first in lists.given and after in lists.given and f"{last} & {after}" not in lists.organisations
    return False
