"""How much a content is worth, by rules that need no model.

The score is the product of three parts, each from 0 to 1: how much is said, in words that say something; how many
different words there are among them; how much of it is letters and digits at all. One word is a fifth of a statement,
and "ha ha ha" is one word.
"""

from __future__ import annotations

import re

# The beginning tells; more costs time on long documents and, the longer a text, the more often its words come again.
SCORED_CHARS = 1_000
# A statement: who does what to what, and when or where.
FULL_WORDS = 5
# Below this share of different words, in a text of a thousand characters, it repeats itself.
FULL_VARIETY = 0.5
# Letters, digits and blanks in ordinary prose are above nine tenths, in code and tables about this.
FULL_LANGUAGE = 0.6
# A word of a script without blanks between its words has about two characters.
CHARS_PER_UNSPACED_WORD = 2

WORD = re.compile(r"\w+")
# Chinese, Japanese and Thai are written without blanks.
UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
# What people say to keep a conversation going; to remember it helps nobody.
FILLERS = frozenset({
    "ah", "alright", "bye", "cool", "haha", "hello", "hey", "hi", "hmm", "huh", "k", "lol", "ok", "okay", "oh",
    "please", "right", "sure", "test", "testing", "thank", "thanks", "uh", "um", "wow", "yeah", "yep", "yes", "you",
})  # fmt: skip


def score(content: str) -> float:
    """The worth of a content, from 0 to 1."""
    text = content[:SCORED_CHARS]
    words = [word for word in WORD.findall(text.lower()) if word not in FILLERS]
    unspaced = UNSPACED.findall(text)
    count = len(words) + len(unspaced) / CHARS_PER_UNSPACED_WORD
    if not count:
        return 0.0
    different = len(set(words)) + len(set(unspaced)) / CHARS_PER_UNSPACED_WORD
    said = min(1.0, different / FULL_WORDS)
    variety = min(1.0, different / count / FULL_VARIETY)
    language = sum(char.isalnum() or char.isspace() for char in text) / len(text)
    return said * variety * min(1.0, language / FULL_LANGUAGE)
