"""The guard of near duplicates: two statements that are alike in wording may still say different things."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

# Words that turn a statement round. Contractions with n't are found by their ending.
_NEGATIONS = """
    no not never neither nor without cannot none nobody nothing nowhere hardly scarcely barely lacks lacking unable
    refuses refused denies denied stopped quit except unless false
"""
# Words that carry as much as digits do: how many, how often, when.
_FIGURES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half
    quarter dozen twice once first second third fourth fifth sixth last next all every both
    monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday tonight
    january february march april may june july august september october november december
    morning afternoon evening night noon midnight spring summer autumn winter weekday weekend
    daily weekly monthly yearly annually
"""
# Words that open sentences without being names; what is missing here only makes the guard more careful.
_OPENERS = """
    a an the this that these those he she it they we you i my your his her its our their there here and but or so if
    when while because although however then also yes no ok okay oh wow hey hi hello thanks thank please sure well
    great is are was were do does did has have had can could will would should may might must let what who where why how
    which in on at to from for of with by as after before since until during about not never just only even still maybe
    perhaps customer customers user users
"""
NEGATIONS = frozenset(_NEGATIONS.split())
FIGURES = frozenset(_FIGURES.split())
OPENERS = frozenset(_OPENERS.split())
# Words with the marks that hold their parts together: don't, 8:30, 2023-05-08, 3.5.
WORD = re.compile(r"[^\W_]+(?:['.,:/-][^\W_]+)*")
SYMBOL_CATEGORIES = frozenset({"Sc", "Sm", "So"})
ASCII_SYMBOLS = frozenset("$+<=>|~")
SENTENCE_MARKS = frozenset(".!?\n\u2026\u3002\uff01\uff1f")


def differs(old: str, new: str) -> bool:
    """Whether two texts differ in a negation word, a number, a date or a capitalised name.

    Numbers, dates and names are compared as sequences, so that "Ann paid Bob" is not "Bob paid Ann"; negation words by
    how often each occurs. A capitalised word is a name unless either text also has it in lower case, or it is a common
    word that opens a sentence. Symbols and words beyond ASCII have to be the same too: the rules above know only
    English, and an embedder may know neither. Texts without words are never alike.
    """
    if old == new:
        return False
    first, second = _words(old), _words(new)
    if not first or not second or _symbols(old) != _symbols(new):
        return True
    if _negations(first) != _negations(second) or _figures(first) != _figures(second):
        return True
    plain = {word for word, _ in (*first, *second) if word.islower()}
    return _names(first, plain) != _names(second, plain)


def _words(text: str) -> list[tuple[str, bool]]:
    """Words, each with whether it opens a sentence."""
    folded = unicodedata.normalize("NFKC", text).replace("\u2019", "'")
    words: list[tuple[str, bool]] = []
    end = 0
    for match in WORD.finditer(folded):
        opens = not words or not SENTENCE_MARKS.isdisjoint(folded[end : match.start()])
        words.append((match.group(), opens))
        end = match.end()
    return words


def _negations(words: list[tuple[str, bool]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, _ in words:
        lower = word.lower()
        if lower == "cannot" or lower.endswith("n't"):
            # "isn't" and "is not" deny alike.
            found["not"] += 1
        elif lower in NEGATIONS:
            found[lower] += 1
    return found


def _figures(words: list[tuple[str, bool]]) -> list[str]:
    lowered = [word.lower() for word, _ in words]
    return [word for word in lowered if word in FIGURES or not word.isascii() or any(map(str.isdigit, word))]


def _symbols(text: str) -> list[str]:
    """Currency signs, operators, emoji."""
    if text.isascii():
        return [mark for mark in text if mark in ASCII_SYMBOLS]
    return [mark for mark in text if unicodedata.category(mark) in SYMBOL_CATEGORIES]


def _names(words: list[tuple[str, bool]], plain: set[str]) -> list[str]:
    return [
        lower
        for word, opens in words
        if word[0].isupper() and (lower := word.lower()) not in plain and not (opens and lower in OPENERS)
    ]
