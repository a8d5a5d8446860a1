"""The part of a text that a reader of few words should see: where the words of a question are."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import accumulate

from astrocyte.core import split_words

WORD = re.compile(r"\w+")
# Shorter words are in every text.
LEAST_CHARS = 3


def passage(question: str, text: str, most_chars: int) -> str:
    """The text, or the stretch of it with the most different words of the question, cut at white space.

    Of equal stretches the first is taken; without any of the words it is the beginning.
    """
    if len(text) <= most_chars:
        return text
    wanted = {word.casefold() for word in WORD.findall(question) if len(word) >= LEAST_CHARS}
    places = [(match.start(), word) for match in WORD.finditer(text) if (word := match[0].casefold()) in wanted]
    if not places:
        return _cut(text, 0, most_chars)
    starts = [start for start, _ in places]
    best, last, held = 0, 0, 0
    for first, (start, _) in enumerate(places):
        # Room behind the last word, so that it is not cut.
        end = bisect_right(starts, start + most_chars * 3 // 4)
        different = len({word for _, word in places[first:end]})
        if different > held:
            best, last, held = first, end - 1, different
    middle = (starts[best] + starts[last]) // 2
    return _cut(text, min(max(middle - most_chars // 2, 0), len(text) - most_chars), most_chars)


def _cut(text: str, start: int, most_chars: int) -> str:
    """So many characters from a place on, without the parts of words at both ends."""
    # A word longer than what is wanted is cut itself, between two characters as a reader sees them.
    words = split_words(text, most_chars)
    ends = [0, *accumulate(map(len, words))]
    first = bisect_left(ends, start)
    last = bisect_right(ends, start + most_chars) - 1
    return "".join(words[first : max(last, first + 1)])[:most_chars].strip()
