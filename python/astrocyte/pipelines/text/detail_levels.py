"""Detail levels of a hit's text: a title, the chunk, or all of it; and text cut to a token budget."""

from __future__ import annotations

from itertools import accumulate

from astrocyte.core import count_tokens, count_tokens_many, split_sentences, split_words
from astrocyte.pipelines.index.rows import date_words
from astrocyte.pipelines.text.chunking import WORD_CHARS
from astrocyte.stores.records import HydratedRow

# A title is a line in a list.
TITLE_CHARS = 80
# Sentence ends beyond this many are beyond every budget that a chunk is cut to.
CUT_UNITS = 4_096


def title(memory: HydratedRow) -> str:
    """A line that tells memories apart: the day it happened, who said it, and how it begins.

    A metadata key ``title`` that holds text stands for the beginning.
    """
    given = memory.metadata.get("title")
    begin = given if isinstance(given, str) and given.strip() else memory.content
    line = begin.strip().partition("\n")[0].strip()
    if len(line) > TITLE_CHARS:
        words = split_words(line, TITLE_CHARS)
        ends = accumulate(map(len, words))
        line = f"{''.join(word for word, end in zip(words, ends, strict=True) if end <= TITLE_CHARS)}\u2026"
    parts = []
    if memory.occurred_at is not None:
        parts.append(date_words(memory.occurred_at))
    if memory.speaker:
        parts.append(memory.speaker)
    parts.append(line)
    return " \u00b7 ".join(parts)


def cut(text: str, budget: int) -> str:
    """The longest beginning of whole sentences within ``budget`` tokens; of words where the first sentence is longer.

    Empty when not even the first word fits.
    """
    kept = (
        _fitting(split_sentences(text), budget)
        or _fitting(split_sentences(text, every_stop=True), budget)
        or _fitting(split_words(text, WORD_CHARS), budget)
    )
    return kept.rstrip()


def _fitting(units: list[str], budget: int) -> str:
    """Units from the start while they fit; counted together at the end, since tokens may span two units."""
    units = units[:CUT_UNITS]
    kept, total = 0, 0
    for tokens in count_tokens_many(units):
        if total + tokens > budget:
            break
        total += tokens
        kept += 1
    text = "".join(units[:kept])
    while kept and count_tokens(text.rstrip()) > budget:
        kept -= 1
        text = "".join(units[:kept])
    return text
