"""Words of a query that may be the name of a speaker."""

from __future__ import annotations

import re

# A letter, then letters, and signs inside a name: Jean-Luc, O'Neil.
WORD = re.compile(r"[^\W\d_](?:[\w'\u2019-]*\w)?")
POSSESSIVE = ("'s", "\u2019s")
# Words of questions that are also names. With a capital they are taken for names, except at the start of a sentence.
VERBS = frozenset({"will", "may"})
# A question names few people; each word costs the core a look.
MOST_NAMES = 12


def speaker_names(query: str) -> list[str]:
    """The words with a capital, or all words of a query without any, in lower case and without the possessive."""
    words = WORD.findall(query)
    capitals = [word for word in words if word[0].isupper()]
    if capitals and words[0].lower() in VERBS and words[0] == capitals[0]:
        del capitals[0]
    elif not capitals:
        capitals = [word for word in words if word not in VERBS]
    return list(dict.fromkeys(_bare(word.lower()) for word in capitals))[:MOST_NAMES]


def _bare(word: str) -> str:
    for ending in POSSESSIVE:
        word = word.removesuffix(ending)
    return word
