"""Phrases of a query: the parts in double quotation marks, where a recall requires them."""

from __future__ import annotations

import re
from collections.abc import Callable

from astrocyte.core import phrase_word_count
from astrocyte.errors import ValidationError

# Straight marks, and those that word processors make of them.
_MARK = re.compile('["\u201c\u201d\u201e\u201f]')

# A query of more is a search expression; each phrase costs a look through the index and through every candidate.
MOST_PHRASES = 8
# Quotations that somebody remembers word by word are shorter.
MOST_WORDS = 16


def map_unquoted(change: Callable[[str], str], query: str) -> str:
    """The query with its parts outside of quotation marks changed."""
    marks = _MARK.findall(query)
    parts = [part if number % 2 else change(part) for number, part in enumerate(_MARK.split(query))]
    return parts[0] + "".join(mark + part for mark, part in zip(marks, parts[1:], strict=True))


def phrases_of(query: str) -> list[str]:
    """The phrases of a query, without their quotation marks.

    Raises:
        ValidationError: There is none, or too many; a mark lacks its partner; a phrase has no word, or too many.
    """
    parts = _MARK.split(query)
    if len(parts) % 2 == 0:
        raise ValidationError("has a quotation mark without a partner; close the phrase", field="query")
    phrases = parts[1::2]
    if not phrases:
        raise ValidationError(
            "has no phrase; put words in double quotation marks, or leave require_phrases out", field="query"
        )
    if len(phrases) > MOST_PHRASES:
        raise ValidationError(f"has {len(phrases)} phrases; at most {MOST_PHRASES} are allowed", field="query")
    for number, phrase in enumerate(phrases, 1):
        words = phrase_word_count(phrase)
        if not 1 <= words <= MOST_WORDS:
            raise ValidationError(f"has {words} words in phrase {number}; 1 to {MOST_WORDS} are allowed", field="query")
    return phrases
