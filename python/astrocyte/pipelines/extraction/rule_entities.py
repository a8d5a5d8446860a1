"""Entities by rules, for text in English and languages that write names alike: no model, some microseconds a turn.

Names are capitalised words that stand together, save those that only open a sentence; dates are whole ones, kept as
ISO dates; code identifiers are those that no prose has: snake_case, camelCase, calls, and what stands in back quotes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date

from astrocyte.model import Entity
from astrocyte.pipelines.query.calendar import MONTHS

EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}\b")
HASHTAG = re.compile(r"(?<![\w&#/])#([^\W\d_][\w-]{1,63})")
ISO_DATE = re.compile(r"\b((?:19|20)\d\d)-(\d\d)-(\d\d)\b")
MONTH = "January February March April May June July August September October November December".replace(" ", "|")
DAY_MONTH = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({MONTH}),? ((?:19|20)\d\d)\b")
MONTH_DAY = re.compile(rf"\b({MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?,? ((?:19|20)\d\d)\b")
CODE = re.compile(
    r"`([^`\s]{2,80})`"  # in back quotes
    r"|\b([A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+)\b"  # snake_case
    r"|\b([a-z]+(?:[A-Z][a-z0-9]+)+)\b"  # camelCase
    r"|\b([A-Za-z_][\w.]{1,80})\(\)"  # a call
)
# The capitals of the scripts that have them, such as Latin with accents, Greek, Cyrillic and Armenian, as the inside of
# a character class. They end below the symbols of U+2000.
CAPITALS = "A-Z" + "".join(
    letter for letter in map(chr, range(0xC0, 0x2000)) if unicodedata.category(letter) in {"Lu", "Lt"}
)
# A capitalised word, or an acronym.
CAPITAL = rf"[{CAPITALS}][\w\u2019'-]*"
LINK = r"(?:of|de|del|da|di|du|la|le|van|von|der|den|the|&)"
RUN = re.compile(rf"\b{CAPITAL}(?:(?: {LINK}){{0,2}} {CAPITAL}|(?:(?<=\b[A-Z])\.)? {CAPITAL})*")
# Before a word that opens a sentence, or a turn, or a quotation.
OPENS = re.compile(r"(?:^|[.!?:;\u2026\n\"\u201c(\[*-])\s*$")
# After one that opens a sentence and is a name: somebody does or has something.
ACTS = re.compile(
    r"(?:'s|\u2019s)?[ ,](?:is|was|has|had|will|would|can|could|does|did|said|says|told|tells|asked|and [A-Z])\b"
)
POSSESSIVE = re.compile(r"['\u2019]s?$")
# Capitalised words that are no names, wherever they stand.
_NO_NAMES = """
    i i'm i'd i've i'll ok okay am pm lol omg tv dm fyi asap btw monday tuesday wednesday thursday friday saturday
    sunday january february march april may june july august september october november december mr mrs ms dr prof
    yes no hi hello hey thanks thank sorry please wow oh ah well so and but or if when while because then also what who
    where why how which the a an this that these those he she it they we you my your his her its our their there here
    is are was were do does did have has had can could will would should may might must let let's not never just only
    even still maybe perhaps in on at to from for of with by as after before since until during about into over under
    it's that's there's what's he's she's they're we're you're don't doesn't didn't can't won't isn't aren't
"""
NO_NAMES = frozenset(_NO_NAMES.split())
SHORTEST, LONGEST = 2, 64
# The beginning tells; a text of a hundred kilobytes would name thousands.
READ_CHARS = 20_000

DATE, PLACE_MAIL, TAG, IDENTIFIER, NAME = "DATE", "EMAIL", "HASHTAG", "CODE", "NAME"


def entities(text: str) -> Iterator[Entity]:
    """Entities of a text, kind by kind, with repeats."""
    text = text[:READ_CHARS]
    if "@" in text:
        yield from (Entity(found.group().lower(), PLACE_MAIL) for found in EMAIL.finditer(text))
        text = EMAIL.sub(" ", text)
    if "#" in text:
        yield from (Entity(found[1], TAG) for found in HASHTAG.finditer(text))
    yield from _dates(text)
    for found in CODE.finditer(text):
        name = next(group for group in found.groups() if group)
        if SHORTEST <= len(name) <= LONGEST:
            yield Entity(name, IDENTIFIER)
    yield from _names(text)


def _dates(text: str) -> Iterator[Entity]:
    days = [(year, month, day) for year, month, day in ISO_DATE.findall(text)]
    days += [(year, MONTHS[month.lower()], day) for day, month, year in DAY_MONTH.findall(text)]
    days += [(year, MONTHS[month.lower()], day) for month, day, year in MONTH_DAY.findall(text)]
    for year, month, day in days:
        try:
            yield Entity(date(int(year), int(month), int(day)).isoformat(), DATE)
        except ValueError:
            # No calendar has it.
            continue


def _names(text: str) -> Iterator[Entity]:
    """Names, those that stand within a sentence first: they tell which of the openers are names too."""
    opening: list[tuple[str, bool]] = []
    within: set[str] = set()
    for run in RUN.finditer(text):
        words = [word for word in run.group().split(" ") if word]
        opens = OPENS.search(text, max(0, run.start() - 4), run.start()) is not None
        while words and words[0].lower().rstrip(".") in NO_NAMES:
            words.pop(0)
            opens = False
        while words and (words[-1].lower() in NO_NAMES or words[-1].islower()):
            words.pop()
        name = POSSESSIVE.sub("", " ".join(words))
        if not SHORTEST <= len(name) <= LONGEST or not name[-1].isalnum():
            continue
        if opens and len(words) == 1 and not name.isupper():
            # "Running is fun" is about no Running.
            opening.append((name, not name.endswith("ing") and ACTS.match(text, run.end()) is not None))
            continue
        within.add(name)
        yield Entity(name, NAME)
    for name, acts in opening:
        if acts or name in within:
            yield Entity(name, NAME)
