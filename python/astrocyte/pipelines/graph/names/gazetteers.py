"""Lists of names that ship with the package: people, places, organisations, products and events.

``data/NOTICE`` states the source and the licence of each list.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files
from typing import NamedTuple

# Letters that Unicode does not decompose, and the apostrophe.
LETTERS = str.maketrans({
    "ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ß": "ss", "æ": "ae", "œ": "oe", "\u0131": "i", "\u2019": "'"
})  # fmt: skip


class Gazetteers(NamedTuple):
    """Sets of folded names.

    Attributes:
        given: Given names of one word.
        family: Family names of one word.
        places: Countries, states, regions and large cities.
        organisations: Companies and institutions.
        products: Products, programs and devices.
        events: Events and holidays.
        words: Names that are also common English words.
    """

    given: frozenset[str]
    family: frozenset[str]
    places: frozenset[str]
    organisations: frozenset[str]
    products: frozenset[str]
    events: frozenset[str]
    words: frozenset[str]

    def holds(self, name: str) -> bool:
        """True for a place, an organisation, a product or an event."""
        return name in self.places or name in self.organisations or name in self.products or name in self.events


def fold(name: str) -> str:
    """A name without case and accents."""
    if name.isascii():
        return name.lower()
    marks = unicodedata.normalize("NFKD", name.casefold().translate(LETTERS))
    return "".join(letter for letter in marks if not unicodedata.combining(letter))


@cache
def gazetteers() -> Gazetteers:
    """All lists, read once."""
    places = lines("places.txt") | lines("regions.txt")
    return Gazetteers(
        lines("given_names.txt"),
        lines("family_names.txt"),
        places,
        lines("organisations.txt"),
        lines("products.txt"),
        lines("events.txt"),
        lines("word_names.txt"),
    )


@cache
def nickname_table() -> dict[str, frozenset[str]]:
    """The given names that each nickname stands for; a given name stands for itself too."""
    found: dict[str, set[str]] = {}
    for line in lines("nicknames.txt") | lines("nicknames_of_other_languages.txt"):
        name, _, known = line.partition(": ")
        found.setdefault(name, set()).add(name)
        for nickname in known.split():
            found.setdefault(nickname, set()).add(name)
    return {nickname: frozenset(names) for nickname, names in found.items()}


@cache
def spelling_table() -> dict[str, str]:
    """The first spelling of the group of each given name that has several."""
    return {name: line.split()[0] for line in lines("spelling_groups.txt") for name in line.split()}


@cache
def place_table() -> dict[str, str]:
    """The first name of each place that has several."""
    groups = [line.split("; ") for line in lines("place_groups.txt")]
    return {name: group[0] for group in groups for name in group}


@cache
def area_levels() -> dict[str, str]:
    """The level of each area in which other places lie: continent, union, country or region."""
    levels = (line.partition(": ") for line in sorted(lines("areas.txt")))
    return {name: level for level, _, names in levels for name in names.split("; ")}


def lines(name: str) -> frozenset[str]:
    """The lines of a file of the folder ``data``, without comments."""
    text = files("astrocyte.pipelines.graph.names").joinpath("data", name).read_text(encoding="utf-8")
    return frozenset(line for line in text.splitlines() if line and not line.startswith("#"))
