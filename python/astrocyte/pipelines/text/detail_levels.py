"""Detail levels of a hit's text: a title, the chunk, or all of it; and text cut to a token budget."""

from __future__ import annotations

from astrocyte.core import count_tokens, count_tokens_many
from astrocyte.pipelines.index.rows import date_words
from astrocyte.pipelines.text.chunking import SENTENCE_END, WORD, cut_at
from astrocyte.stores.protocols import HydratedRow

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
        line = f"{line[:TITLE_CHARS].rsplit(' ', 1)[0].rstrip()}\u2026"
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
    kept = _fitting(cut_at(text, SENTENCE_END), budget) or _fitting(WORD.findall(text), budget)
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
