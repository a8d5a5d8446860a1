"""The entity arm: memories that name what the question names, the rarer the name the higher.

Every run of up to four words of a question may be a name, so no rule has to find names in it: what no memory of the
bank names is passed over, and so is what so many name that it tells none of them from the others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from astrocyte.model import Bank
from astrocyte.pipelines.index.rows import id_to_bytes
from astrocyte.stores.graph.entities import EntityStore

ARM = "entity"
# Words of a name, and of the head of a question that is looked at: together some two hundred look-ups.
MOST_WORDS = 4
READ_WORDS = 48
# What more memories name than this, or than this share of the bank, is no name that helps.
MOST_MEMORIES = 500
MOST_SHARE = 0.25
# With the marks that names have inside, and mail addresses, hashtags and identifiers.
WORD = re.compile(r"[^\W_][\w@.+%'\u2019/-]*[\w]|[^\W_]")
POSSESSIVE = re.compile(r"['\u2019]s$")

# As the core takes a list from outside: its name, its weight, and memory ids with scores, best first.
External = tuple[str, float, Sequence[tuple[bytes, float]]]


def phrases(question: str) -> list[str]:
    """The runs of words of a question that a name could be, folded as names are kept; without repeats."""
    words = [POSSESSIVE.sub("", found) for found in WORD.findall(question.casefold())[:READ_WORDS]]
    runs = (
        " ".join(words[start : start + length])
        for length in range(MOST_WORDS, 0, -1)
        for start in range(len(words) - length + 1)
    )
    return list(dict.fromkeys(runs))


def entity_list(
    store: EntityStore, bank: Bank, question: str, *, as_of: int | None, rows: int, weight: float
) -> list[External]:
    """The arm's list, if any memory names what the question does.

    Args:
        store: Knows the names.
        bank: Where.
        question: As it was asked.
        as_of: The versions of that time.
        rows: How many the bank has.
        weight: Of a name that one memory alone has; of the list it is less where its rarest name is not so rare.
    """
    most = max(1, min(MOST_MEMORIES, math.ceil(MOST_SHARE * rows)))
    named = store.naming(bank, phrases(question), as_of=as_of, most=most)
    scores: dict[str, float] = {}
    for memory_ids in named.values():
        worth = math.log1p(rows / len(memory_ids)) / math.log1p(rows)
        for memory_id in memory_ids:
            scores[memory_id] = scores.get(memory_id, 0.0) + worth
    if not scores:
        return []
    ranked = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
    best = min(1.0, ranked[0][1])
    hits = [(identity, score) for memory_id, score in ranked if (identity := id_to_bytes(memory_id)) is not None]
    return [(ARM, weight * best, hits)]
