"""Names in mail addresses and handles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astrocyte.model.derived.graph import Mention
from astrocyte.pipelines.extraction.rule_entities import EMAIL
from astrocyte.pipelines.graph.names.gazetteers import gazetteers
from astrocyte.pipelines.graph.names.type_words import PERSON

HANDLE = re.compile(r"(?<![\w@./])@([A-Za-z][\w-]{1,38})(?![\w@]|\.[a-z])")
PARTS = re.compile(r"[._-]")
DIGITS = re.compile(r"\d+$")
# A name in an address may be spelled otherwise than its owner does.
OF_ADDRESS, OF_HANDLE = 0.8, 0.6
# A given name, a middle name and a family name.
MOST_PARTS = 3
# Handles that address everybody.
EVERYBODY = frozenset({"here", "channel", "everyone", "all", "team", "admin", "support"})


def contact_names(text: str) -> Iterator[Mention]:
    """People named by their address (``ana.lopes@example.org``) or by a handle (``@ana_l``)."""
    if "@" not in text:
        return
    for found in EMAIL.finditer(text):
        name = _person(found.group().partition("@")[0])
        if name:
            yield Mention(name, PERSON, found.start(), found.end(), OF_ADDRESS)
    for found in HANDLE.finditer(text):
        if found[1].lower() not in EVERYBODY:
            name = _person(found[1]) or found.group()
            yield Mention(name, PERSON, found.start(), found.end(), OF_HANDLE)


def _person(address: str) -> str:
    """The name that the local part of an address spells; "" for none."""
    parts = [part for part in PARTS.split(DIGITS.sub("", address).lower()) if part]
    lists = gazetteers()
    if not parts or not all(part.isalpha() for part in parts):
        return ""
    first, last = parts[0] in lists.given, parts[-1] in lists.family or parts[-1] in lists.given
    if len(parts) == 1:
        return parts[0].capitalize() if first and parts[0] not in lists.words else ""
    # Two or three words, one of them a known name.
    if len(parts) > MOST_PARTS or not (first or last) or len(parts[-1]) == 1:
        return ""
    return " ".join(part.capitalize() for part in parts)
