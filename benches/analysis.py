"""Equal text analysis for both sides of a comparison of keyword search.

Texts are reduced to lower-case ASCII words, so that both sides find the same words in them. Both drop the core's stop
words and stem the others by Snowball's English algorithm. The core also indexes words as written where their stem
differs; tantivy does not.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

# The name under which tantivy knows the analyser.
ANALYZER = "stop_words_and_stems"
_SOURCE = Path(__file__).parent.parent / "rust_core/text/src/analysis/stop_words.rs"
_WORD = re.compile(r"[a-z0-9]+")


def plain(text: str) -> str:
    """The ASCII words of a text in lower case, with spaces between."""
    return " ".join(_WORD.findall(text.lower()))


@cache
def stop_words() -> tuple[str, ...]:
    """The core's list, from its source.

    Raises:
        ValueError: The source has no list.
    """
    found = re.search(r"STOP_WORDS: &\[&str\] = &\[(.*?)\];", _SOURCE.read_text(encoding="utf-8"), re.DOTALL)
    if found is None:
        raise ValueError(f"{_SOURCE.name} has no list of the name STOP_WORDS")
    return tuple(re.findall(r'"([^"]+)"', found[1]))


def tantivy_index(engine: Any, schema: Any) -> Any:  # noqa: ANN401 - types of an optional peer
    """An index of tantivy in memory that knows the analyser."""
    index = engine.Index(schema)
    builder = engine.TextAnalyzerBuilder(engine.Tokenizer.simple())
    # The order of the core: stop words are compared as written.
    for step in (
        engine.Filter.lowercase(),
        engine.Filter.custom_stopword(list(stop_words())),
        engine.Filter.stemmer("english"),
    ):
        builder = builder.filter(step)
    index.register_tokenizer(ANALYZER, builder.build())
    return index
