"""A cache of the words of each bank's newest memories, for questions about recent statements.

Words and ids only, and what leaves a bank leaves here with the commit. A word of a question counts as one of a memory
where their stems are equal, or where one letter differs and both words have four or more: "recieve" finds "receive".
What is found are ids, and how the memories spell it; the answer comes from the core and the database, as any other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple

from astrocyte.pipelines.text.content_words import analysed, content_words
from astrocyte.stores.records import IndexBatch, VersionRecord

# Words of one memory that are kept: a document is not what was said a moment ago.
MOST_WORDS = 200
# Shorter words that differ in a letter are different words.
SHORTEST = 4


class Match(NamedTuple):
    """The newest memories that hold enough of a question's words, and words that they spell otherwise."""

    memory_ids: tuple[str, ...]
    further: tuple[str, ...]


class RecentWords:
    """Words of the newest memories. Safe to use from any thread.

    Args:
        memories: Newest memories of a bank.
        banks: Banks, those written to last.
    """

    def __init__(self, memories: int, banks: int) -> None:
        self._memories = memories
        self._most_banks = banks
        self._lock = threading.Lock()
        self._banks: OrderedDict[int, OrderedDict[int, tuple[str, frozenset[str], frozenset[str]]]] = OrderedDict()

    def on_commit(self, batch: IndexBatch) -> None:
        """Take what was stored, and drop what is gone; the store calls it after each commit."""
        with self._lock:
            held = self._banks.get(batch.bank.key)
            if held is None:
                held = self._banks[batch.bank.key] = OrderedDict()
            self._banks.move_to_end(batch.bank.key)
            for row_key in (*batch.removed, *(row_key for row_key, _ in batch.ended)):
                held.pop(row_key, None)
            for version in batch.upserts:
                if version.known_until is None:
                    held[version.row_key] = version.memory.memory_id, *_words(version)
            while len(held) > self._memories:
                held.popitem(last=False)
            while len(self._banks) > self._most_banks:
                self._banks.popitem(last=False)

    def drop(self, bank_key: int) -> None:
        """Forget a bank."""
        with self._lock:
            self._banks.pop(bank_key, None)

    def match(self, bank_key: int, query: str, share: float) -> Match:
        """The memories that hold at least that share of the query's content words, in the order of their storing."""
        with self._lock:
            held = list(self._banks.get(bank_key, {}).values())
        spellings = frozenset[str]().union(*(words for _, words, _ in held))
        known = frozenset[str]().union(*(stems for _, _, stems in held))
        wanted, further = set(), []
        for word in dict.fromkeys(analysed(query)[0]):
            stems = content_words(word)
            if stems and stems[0] not in known:
                other = _nearest(word, spellings)
                if other != word:
                    further.append(other)
                    stems = content_words(other)
            wanted.update(stems)
        ids = [memory_id for memory_id, _, stems in held if wanted and len(wanted & stems) >= share * len(wanted)]
        return Match(tuple(ids), tuple(further))


def _words(version: VersionRecord) -> tuple[frozenset[str], frozenset[str]]:
    """The first words of a memory, and the stems of those that carry content."""
    memory = version.memory
    words, stems = analysed(f"{memory.speaker or ''} {memory.content}", MOST_WORDS)
    return frozenset(words), frozenset(stems)


def _nearest(word: str, known: Iterable[str]) -> str:
    """The first known word, by the alphabet, that differs in one letter; the word itself where there is none."""
    return min((other for other in known if alike(word, other)), default=word)


def alike(one: str, other: str) -> bool:
    """True if two words of four or more letters differ in one: another, a missing or further one, or two swapped."""
    if min(len(one), len(other)) < SHORTEST or abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    first, second = one[start:], other[start:]
    end = 0
    while end < min(len(first), len(second)) and first[-1 - end] == second[-1 - end]:
        end += 1
    left, right = first[: len(first) - end], second[: len(second) - end]
    return max(len(left), len(right)) == 1 or (len(left) == len(right) == 2 and left == right[::-1])  # noqa: PLR2004 - two swapped
