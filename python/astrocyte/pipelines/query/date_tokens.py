"""Tokens of a question: words, numbers, and the written forms of dates and times that have digits."""

from __future__ import annotations

import re
from typing import NamedTuple

_YEAR = r"(?:1[5-9]|20)\d\d"
_MERIDIEM = r"(?:[ap]\.m\.|[ap]m\b)"
LEXER = re.compile(
    rf"""
    (?P<iso>(?<![\w./-]){_YEAR}(?P<iso_sign>[-/.])\d\d?(?P=iso_sign)\d\d?
        (?:(?:T|t|[ ])\d\d:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?(?:[ ]?(?:Z|UTC|[+-]\d\d:?\d\d))?)?(?![\w-]|[./]\d))
  | (?P<week>(?<![\w./-]){_YEAR}-?W\d\d(?:-[1-7])?(?![\w-])|\b(?:W|KW|CW|wk)[ ]?\d\d?\b)
  | (?P<quarter>(?<![\w./-])(?:{_YEAR}[-/ ]?)?[QqHh][1-4](?:[ ]?[-/'\u2019][ ]?(?:{_YEAR}|\d\d)|[ ]{_YEAR})?(?![\w-]))
  | (?P<month>(?<![\w./-]){_YEAR}[-/](?:0?[1-9]|1[0-2])(?![\w/-]|\.\d))
  | (?P<numeric>(?<![\w./-])\d\d?(?:(?P<date_sign>[./-])\d\d?(?P=date_sign){_YEAR}|/\d\d?/\d\d)(?![\w/-]|\.\d))
  | (?P<clock>(?<![\w.,:$/-])(?:\d\d?(?::\d\d){{1,2}}(?:[ ]?{_MERIDIEM}|(?!\w|:\d))
        |\d\d?(?:[ ]?{_MERIDIEM}|[ ]o['\u2019]clock\b)))
  | (?P<decade>(?<![\w.,$])(?:(?:1[5-9]|20)\d0|['\u2019]?\d0)['\u2019]?s\b)
  | (?P<ordinal>(?<![\w.,])\d\d?(?:st|nd|rd|th)\b)
  | (?P<short>(?<=[\w ])['\u2019]\d\d(?![\w]))
  | (?P<number>\d+)
  | (?P<possessive>['\u2019]s?(?![^\W\d_]))
  | (?P<word>[^\W\d_]+)
  | (?P<sign>\S)
    """,
    re.VERBOSE,
)
# The year behind one of these is a fiscal one, which counts as the calendar year of its number.
FISCAL = ("fy", "fiscal", "financial")
# Before and after a number that is an amount, a version or a part of a longer number.
AMOUNT_BEFORE = re.compile(r"(?:[$\u20ac\u00a3\u00a5#/+*=]|\d[.,:/-]|[^\W\d_]-?|\.)$")
AMOUNT_AFTER = re.compile(r"[%\u00b0$\u20ac\u00a3]|[.,:/]\d|\w|/")


class Token(NamedTuple):
    """A token of a question.

    Attributes:
        kind: Name of its group in `LEXER`.
        word: Its text in small letters.
        text: Its text.
        start: Place of its first character.
        end: Place behind its last character.
    """

    kind: str
    word: str
    text: str
    start: int
    end: int


NO_TOKEN = Token("", "", "", -1, -1)


def tokens_of(text: str) -> list[Token]:
    """The tokens in order, without possessive endings."""
    found = []
    for match in LEXER.finditer(text):
        kind = match.lastgroup or "sign"
        if kind != "possessive":
            raw = match.group()
            found.append(Token(kind, raw.lower(), raw, match.start(), match.end()))
    return found


class Tokens:
    """Access to the tokens of a text by their places; a place beyond the end has an empty token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        # Two steps beyond the end may be looked at without a check.
        self._padded = [*self.tokens, NO_TOKEN, NO_TOKEN, NO_TOKEN]

    def token(self, place: int) -> Token:
        """The token at a place."""
        return self._padded[place] if 0 <= place < len(self._padded) else NO_TOKEN

    def word(self, place: int) -> str:
        """The word at a place in small letters, or an empty text."""
        token = self.token(place)
        return token.word if token.kind == "word" else ""

    def skip(self, place: int, *words: str) -> int:
        """The place behind any of these words or signs."""
        return place + 1 if self.token(place).word in words and self.token(place).kind else place

    def is_plain(self, place: int) -> bool:
        """True if a number at a place stands alone: no amount, version or part of a longer number."""
        token = self.token(place)
        before = "" if self.word(place - 1) == "fy" else self.text[max(0, token.start - 2) : token.start]
        after = self.text[token.end : token.end + 2]
        return not AMOUNT_BEFORE.search(before) and not AMOUNT_AFTER.match(after)

    def hyphenated(self, place: int) -> bool:
        """True if the word at a place goes on behind a hyphen ("year-end")."""
        after = self.text[self.token(place).end : self.token(place).end + 2]
        return len(after) > 1 and after[0] == "-" and after[1].isalpha()
