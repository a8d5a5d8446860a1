"""Finding a passage that a language model quotes in the text that it was shown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astrocyte.pipelines.text.prompt_fence import BREAKS

# The signs that `quoted` rewrites, in the text and in the answer alike.
REWRITTEN = str.maketrans({"<": "\u2039", ">": "\u203a", "[": "(", "]": ")"})


def places(words: str, text: str, *, words_only: bool) -> Iterator[tuple[int, int]]:
    """First and last characters of words in a text, with any blanks between them; exact case before other case.

    Args:
        words: The passage.
        text: The text that `quoted` showed, with `REWRITTEN` applied.
        words_only: True if the passage must not begin or end inside of a word.
    """
    parts = [re.escape(part) for part in BREAKS.split(words.translate(REWRITTEN)) if part]
    if not parts:
        return
    pattern = BREAKS.pattern.join(parts)
    if words_only:
        # Scripts without case often have no blanks between words either.
        first, last = ("" if _caseless(one) else r"\w" for one in (words.strip()[:1], words.strip()[-1:]))
        pattern = (rf"(?<!{first})" if first else "") + pattern + (rf"(?!{last})" if last else "")
    exact = [found.span() for found in re.finditer(pattern, text)]
    yield from exact or [found.span() for found in re.finditer(pattern, text, re.IGNORECASE)]


def _caseless(character: str) -> bool:
    return character.isalpha() and character.lower() == character.upper()
