"""Differences between statements that are alike in wording: numbers, names, negations, and other claims."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

# Words that turn a statement round, or take its certainty. Contractions with n't are found by their ending.
_NEGATIONS = """
    no not never neither nor without cannot none nobody nothing nowhere hardly scarcely barely lacks lacking unable
    refuses refused denies denied stopped quit except unless false almost nearly if maybe perhaps might former formerly
    anymore
"""
# Words that carry as much as digits do: how many, how often, when, and on which side of a number.
_FIGURES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion half
    quarter dozen twice once first second third fourth fifth sixth last next all every both
    monday tuesday wednesday thursday friday saturday sunday today tomorrow yesterday tonight
    january february march april may june july august september october november december
    morning afternoon evening night noon midnight spring summer autumn winter weekday weekend
    daily weekly monthly yearly annually
    plus minus negative above below over under beneath beyond exceeding least most more less fewer
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
# The only words that never count. Pronouns, prepositions and auxiliaries say who, where and when.
ARTICLES = frozenset({"a", "an", "the"})
# "A few" is some, and "few" is hardly any.
WITH_ARTICLE = frozenset({"few", "little"})
# What is left of a contraction before n't, where it is not the verb itself.
SHORTENED = {"ca": "can", "wo": "will", "sha": "shall", "ai": "is"}
# What other endings of contractions stand for; "'s" and "'d" stand for several things, or for none.
CONTRACTED = {"m": ("is",), "re": ("is",), "ll": ("will",), "ve": ("have",), "s": (), "d": ()}
# Forms that differ in person only; tense and mood stay.
PERSONS = {"am": "is", "are": "is", "were": "was", "has": "have", "does": "do", "goes": "go"}
# Words with the marks that hold their parts together: don't, 8:30, 2023-05-08, 3.5.
WORD = re.compile(r"[^\W_]+(?:['.,:/-][^\W_]+)*")
PARTS = re.compile(r"[.,:/-]")
# What may stand between an article and its noun.
QUOTES = " \t\n\"'(*\u2018\u201c"
# Marks that part words and sentences, wherever they stand. A question mark is none: it makes a statement a question.
PUNCTUATION = frozenset(
    ",;:`\u2014\u2015\u2022\u00b7\u00a1\u00bf\u3001\u3002\u060c\u061b\u0964\u0965\u30fb\u1361\u1362"
)
# Brackets and quotation marks.
PUNCTUATION_CATEGORIES = frozenset({"Ps", "Pe", "Pi", "Pf", "Cf"})
# Selectors of the form in which a character is shown.
INVISIBLE = frozenset(map(chr, range(0xFE00, 0xFE10)))
# Hyphens that may be a minus.
SIGNS = frozenset("-\u2010\u2011\u2012\u2013\u2212")
# Of these, the one that is nothing else.
MINUS = "\u2212"
# Marks around a word for emphasis; between words, or between spaces, they are operators.
EMPHASIS = frozenset("*_")
# Grades and names of one or two letters ("A+", "Bb").
LONGEST_GRADE = 2
# Characters beside a mark that are looked at: a grade or the nearest digits.
BESIDE = 4
# A text with more than twice the words of another says something else as well, however near their vectors are.
LEAST_SHARE = 0.5
# Digits above the line are powers, which compatibility forms would make digits of the number before them.
POWERS = {
    ord(power): f"^{digit}"
    for digit, power in enumerate("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079")
} | {0x207F: "^n"}
# Marks whose repetition at the end of a sentence only says the same more loudly.
LOUD = frozenset("?!")
# Punctuation whose repetition is an operator.
REPEATED = frozenset(",;:")
# Behind a number or a variable they show that "!" is a factorial.
OPERATORS = frozenset(")]=*/+^-<>,")
# Behind a full stop they show that it is part of a path or a pattern.
PATHS = frozenset("/\\*")
# A mark and its repetitions, which count: three stars are not two, and "++" is not "+".
MARK = re.compile(r"([^\w\s]|_)\1*")
# A number in parentheses is a negative one in accounts.
NEGATIVE_AMOUNT = re.compile(r"\([$\u20ac\u00a3\u00a5]?\d[\d.,]*\)")
# The word that ends right before a mark, and the one that begins right after it.
BEFORE = re.compile(r"[^\W_]+$")
AFTER = re.compile(r"^[^\W_]+")
SENTENCE_MARKS = frozenset(".!?\n\u2026\u3002\uff01\uff1f")
# Shorter words have no ending to lose: "as" is no plural.
SHORTEST_BASE = 3
# One closed syllable: its last letter doubles before -ing, so that "filing" is from "file" and "filling" from "fill".
CLOSED_SYLLABLE = re.compile(r"[^aeiouy]*[aeiouy][^aeiouwxy]")
# Letters after which a plural takes -es.
SIBILANTS = ("s", "x", "z", "ch", "sh", "o")


class _Word(NamedTuple):
    """A word as it stands, whether it opens a sentence, and what stands between it and the word before."""

    text: str
    opens: bool
    before: str


class Claims(NamedTuple):
    """The negations, numbers, dates and names of a text, and all of its words; in lower case."""

    facts: frozenset[str]
    words: frozenset[str]


def differs(old: str, new: str) -> bool:
    """True if two texts may state different facts, however alike they are.

    They do not where one is the other with few words added: all words of the shorter text are in the longer one, in
    their order, and are at least half of its words, and both agree in negations, numbers, dates, names and marks. In
    particular:

    - Words are equal up to number and person ("prefer", "prefers"), -ing, a possessive, a contraction and a hyphen
      ("e-mail", "email", "dark-mode", "dark mode"); only articles never count. A past tense is another word.
    - Where each side has a word that the other lacks ("left hook", "right hook"), or the same words in another order
      ("tea over coffee", "coffee over tea"), the texts differ.
    - Numbers, dates and names are compared as sequences, negation words by how often each occurs; one of these on one
      side only makes a difference. A capitalised word is a name unless it opens a sentence and is a common word, or
      stands in lower case in the other text instead.
    - Words beyond ASCII have to be the same: the rules above know only English, and an embedder may not know them.
      So do all marks that are not punctuation where they stand: "-12" and "12", "B-" and "B", "7%" and "7", "F#" and
      "F", a question and a statement. Texts without words are never alike.
    """
    if old == new:
        return False
    first, second = _words(old), _words(new)
    if not first or not second or _marks(old) != _marks(new):
        return True
    if _negations(first) != _negations(second) or _figures(first) != _figures(second):
        return True
    if _names(first, second) != _names(second, first):
        return True
    closed = _closed(first, second)
    shorter, longer = sorted((_content(first, closed), _content(second, closed)), key=len)
    return len(shorter) < LEAST_SHARE * len(longer) or not _extends(shorter, longer)


def same_words(old: str, new: str) -> bool:
    """True if two texts have the same words in the same order, as `differs` compares them, and none besides."""
    if differs(old, new):
        return False
    first, second = _words(old), _words(new)
    closed = _closed(first, second)
    return len(_content(first, closed)) == len(_content(second, closed))


def claims(text: str) -> Claims:
    """The claims that another text must contain to state the same; for code that merges two texts."""
    words = _words(text)
    facts = frozenset((*_negations(words), *_figures(words), *_names(words, ())))
    return Claims(facts, facts | {word.text.lower().removesuffix("'s") for word in words})


def _words(text: str) -> list[_Word]:
    folded = _folded(text).replace("\u2019", "'")
    words: list[_Word] = []
    end = 0
    for match in WORD.finditer(folded):
        before = folded[end : match.start()]
        words.append(_Word(match.group(), not words or not SENTENCE_MARKS.isdisjoint(before), before))
        end = match.end()
    return words


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text.translate(POWERS))


def _negations(words: list[_Word]) -> Counter[str]:
    found: Counter[str] = Counter()
    for word in words:
        lower = word.text.lower()
        if lower == "cannot" or lower.endswith("n't"):
            # "isn't" and "is not" deny alike.
            found["not"] += 1
        elif lower in NEGATIONS:
            found[lower] += 1
    return found


def _figures(words: list[_Word]) -> list[str]:
    """Numbers, dates, single letters that name something, and what is beyond ASCII."""
    found = []
    for place, word in enumerate(words):
        lower = word.text.lower()
        named = len(lower) == 1 and lower != "i" and not _article(words, place)
        if named or lower in FIGURES or not word.text.isascii() or any(map(str.isdigit, lower)):
            found.append(lower)
    return found


def _marks(text: str) -> list[str]:
    """The characters that are neither letters, digits nor spaces and may carry meaning, in order.

    Every such character counts that is not known to be punctuation where it stands. A mark beside a number or a grade
    is returned with it ("-12", "B+", "7%").
    """
    folded = _folded(text)
    found = [match.group() for match in NEGATIVE_AMOUNT.finditer(folded)]
    for match in MARK.finditer(folded):
        start, end = match.span()
        mark = match.group()[0]
        left, right = folded[max(0, start - BESIDE) : start], folded[end : end + BESIDE]
        if _counts(mark, left, right) or (mark in REPEATED and end - start > 1):
            closes = mark in LOUD and not right.lstrip()[:1].islower()
            marks = mark if closes else match.group()
            found.append(f"{_short(BEFORE, left)}{marks}{_short(AFTER, right)}")
    return found


def _counts(mark: str, left: str, right: str) -> bool:
    """True if a mark may carry meaning between the texts to its left and right."""
    before, after, following = left[-1:], right[:1], right.lstrip()[:1]
    if mark in SIGNS:
        # A sign stands before its number or amount, a grade after its letter; within a word it is a hyphen.
        amount = unicodedata.category(after or " ") == "Sc" and not before.isalnum()
        between = left.rstrip()[-1:].isdigit() and following.isdigit()
        return mark == MINUS or amount or before.isalnum() != after.isalnum() or (between and not before.isdigit())
    if mark in EMPHASIS:
        return before.isalnum() == after.isalnum() or _is_named(mark, left)
    only_where = {
        ".": (after.isalnum() or after in PATHS) and after != "" and not before.isalnum(),
        "!": after == "=" or _is_operator(left, following),
        "'": before.isdigit() or (_is_named(mark, left) and not after.isalnum()),
        '"': before.isdigit(),
    }
    plain = mark in PUNCTUATION or mark in INVISIBLE or unicodedata.category(mark) in PUNCTUATION_CATEGORIES
    return only_where.get(mark, not plain)


def _is_operator(left: str, following: str) -> bool:
    """True if "!" stands in the middle of a sentence by itself, or behind a number or a variable as its factorial."""
    match = BEFORE.search(left)
    word = "" if match is None else match.group()
    if not word:
        return not left[-1:].strip() and following.islower()
    return (word[-1].isdigit() or len(word) == 1) and (following.islower() or following in OPERATORS)


def _is_named(mark: str, left: str) -> bool:
    """True if a mark belongs to the number or the variable before it, "5*" and "f'", and closes nothing."""
    match = BEFORE.search(left)
    word = "" if match is None else match.group()
    single = len(word) == 1 or word[-1:].isdigit()
    return single and left[: len(left) - len(word)][-1:] not in {mark, "\u2018"}


def _short(side: re.Pattern[str], text: str) -> str:
    """The number or the short word beside a mark; longer words may be inflected, and do not belong to it."""
    match = side.search(text)
    word = "" if match is None else match.group().lower()
    return word if len(word) <= LONGEST_GRADE or any(map(str.isdigit, word)) else ""


def _names(words: list[_Word], others: Sequence[_Word]) -> list[str]:
    """Names in lower case, in order."""
    plain = {word.text for word in others if word.text.islower()}
    own, other = (Counter(word.text.lower() for word in side) for side in (words, others))
    found = []
    for word in words:
        lower = word.text.lower()
        if not word.text[0].isupper() or lower.partition("'")[0] == "i":
            continue
        acronym = len(lower) > 1 and word.text.isupper()
        # A capital that the place explains; "US" in that place is still not "us".
        explained = lower in OPENERS or (lower in plain and own[lower] == other[lower])
        if not (word.opens and explained and not acronym):
            found.append(lower.removesuffix("'s"))
    return found


def _article(words: list[_Word], place: int) -> bool:
    """True if the word is an article; the "a" of "plan a" and of "a > b" is a name."""
    lower = words[place].text.lower()
    if lower != "a":
        return lower in ARTICLES
    following = words[place + 1] if place + 1 < len(words) else None
    if following is None or following.before.strip(QUOTES) or following.text.lower() in WITH_ARTICLE:
        return False
    return len(following.text) > 1 or following.text.isdigit()


def _closed(first: list[_Word], second: list[_Word]) -> frozenset[str]:
    """Words that one of the texts writes in one, and so may be written with a hyphen in the other."""
    return frozenset(word.text.lower() for word in (*first, *second) if word.text.isalpha())


def _content(words: list[_Word], closed: frozenset[str]) -> list[str]:
    """The words of the text: hyphens and contractions resolved, articles left out."""
    return [part for place, word in enumerate(words) if not _article(words, place) for part in _split(word, closed)]


def _split(word: _Word, closed: frozenset[str]) -> Iterator[str]:
    lower = word.text.lower()
    if any(map(str.isdigit, lower)):
        yield lower
        return
    joined = lower.replace("-", "")
    # To re-sign is not to resign.
    if joined != lower and joined in closed and not lower.startswith("re-"):
        yield joined
        return
    for part in PARTS.split(lower):
        yield from _plain(part)


def _plain(word: str) -> Iterator[str]:
    """A word without apostrophes; a contraction as what it stands for."""
    if word == "cannot":
        yield from ("can", "not")
        return
    stem, _, ending = word.partition("'")
    if ending == "t" and stem.endswith("n"):
        verb = SHORTENED.get(stem[:-1], stem[:-1])
        yield from (PERSONS.get(verb, verb), "not")
        return
    yield PERSONS.get(stem, stem)
    if ending:
        yield from CONTRACTED.get(ending, (ending,))


def _extends(shorter: Sequence[str], longer: Sequence[str]) -> bool:
    """True if the longer sequence has all words of the shorter one, in their order."""
    words = iter(longer)
    # Taking each word at its first place leaves the most for those that follow.
    return all(any(_equal(wanted, word) for word in words) for wanted in shorter)


def _equal(left: str, right: str) -> bool:
    return left == right or not _bases(left).isdisjoint(_bases(right))


@lru_cache(maxsize=4096)
def _bases(word: str) -> frozenset[str]:
    """The words of which this may be a plural, a third person or an -ing form, itself included."""
    found = {word}
    if word.endswith("ies"):
        found.add(f"{word[:-3]}y")
    elif word.endswith("es") and word[:-2].endswith(SIBILANTS):
        found |= {word[:-2], word[:-1]}
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        found.add(word[:-1])
    elif word.endswith("ing"):
        stem = word[:-3]
        found.add(f"{stem}e")
        if not CLOSED_SYLLABLE.fullmatch(stem):
            found.add(stem)
        if stem[-1:] == stem[-2:-1] and CLOSED_SYLLABLE.search(stem[:-1]):
            found.add(stem[:-1])
    return frozenset(base for base in found if base == word or len(base) >= SHORTEST_BASE)
