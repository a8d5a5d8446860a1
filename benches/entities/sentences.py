"""The labelled sentences: every template filled three times, with the places, types and relations of its names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from benches.entities import names, templates

Split = Literal["dev", "test"]
SLOT = re.compile(r"\{(\w\d)\}")
KINDS = {"p": "PERSON", "f": "PERSON", "o": "ORG", "l": "PLACE", "j": "PROJECT", "r": "PRODUCT", "e": "EVENT"}
FILLS = 3
# "The" before a name of a project or an event, and the kind of it after, belong to no name.
AROUND = re.compile(r"^the |(?: project| initiative| migration| rewrite)$")


@dataclass(frozen=True)
class Label:
    """A name in a sentence."""

    name: str
    entity_type: str
    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    """A sentence and what it says."""

    text: str
    domain: str
    labels: tuple[Label, ...]
    relations: frozenset[tuple[str, str, str]]
    speaker: str


def sentences(split: Split) -> list[Sentence]:
    """The sentences of a split, in the order of their templates."""
    table = templates.DEV if split == "dev" else templates.TEST
    return [
        sentence
        for number, (domain, template) in enumerate((domain, one) for domain, listed in table.items() for one in listed)
        for sentence in _filled(split, domain, template, number)
    ]


def _filled(split: Split, domain: str, template: str, number: int) -> Iterator[Sentence]:
    pattern, _, stated = template.partition(" | ")
    for fill in range(FILLS):
        values = _values(split, domain, sorted(set(SLOT.findall(pattern))), FILLS * number + fill)
        text, labels, place = "", [], 0
        for slot in SLOT.finditer(pattern):
            text += pattern[place : slot.start()]
            value = values[slot[1]]
            shown = value[0].upper() + value[1:] if not text else value
            core = AROUND.sub("", AROUND.sub("", value))
            start = len(text) + shown.lower().index(core.lower())
            labels.append(Label(core, KINDS[slot[1][0]], start, start + len(core)))
            text += shown
            place = slot.end()
        text += pattern[place:]
        named = {slot: AROUND.sub("", AROUND.sub("", value)) for slot, value in values.items()}
        named["I"] = names.SPEAKER[split]
        relations = frozenset(
            (named[source], link, named[target])
            for source, link, target in map(str.split, filter(str.strip, stated.split(";")))
        )
        yield Sentence(text, domain, tuple(labels), relations, names.SPEAKER[split])


def _values(split: Split, domain: str, slots: list[str], seed: int) -> dict[str, str]:
    """A name for each slot; two slots of a kind get different ones."""
    pools = names.DEV if split == "dev" else names.TEST
    values: dict[str, str] = {}
    for slot in slots:
        pool = names.WORKS[split] if slot[0] == "r" and domain == "arts" else pools[slot[0]]
        # Steps of different size, so that the same names do not always stand together.
        values[slot] = pool[(seed * 7 + int(slot[1]) * 5) % len(pool)]
    return values
