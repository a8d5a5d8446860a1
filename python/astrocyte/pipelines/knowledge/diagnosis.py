"""Problems that the texts of memories show: copies of one another, and statements that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from astrocyte.core import split_sentences
from astrocyte.model import Memory
from astrocyte.pipelines.knowledge.statements import Statement, statements
from astrocyte.pipelines.text.content_words import content_words

_WORDS = re.compile(r"\w+")
# Words of a query that must find a memory, and sentences from which it is chosen.
QUERY_WORDS, MOST_SENTENCES = 16, 16
# Later statements of a topic with which one is compared: more would cost the square of their number.
MOST_COMPARED = 64


def copies(memories: Sequence[Memory]) -> list[list[str]]:
    """Groups of memories with the same words in the same order, whatever case and punctuation."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for memory in memories:
        words = tuple(_WORDS.findall(memory.content.casefold()))
        if words:
            groups.setdefault(words, []).append(memory.memory_id)
    return [ids for ids in groups.values() if len(ids) > 1]


def contradictions(memories: Sequence[Memory]) -> list[tuple[str, str]]:
    """Pairs of memories, older first, of which the later one contradicts a statement of the earlier one.

    A statement is compared with those after it, from the last one back, until one contradicts or repeats it.
    """
    topics: dict[bytes, list[tuple[Memory, Statement]]] = {}
    for memory in memories:
        if memory.valid_until is not None:
            # It says itself when it stopped to hold.
            continue
        for one in statements(memory.content, memory.speaker):
            topics.setdefault(one.topic, []).append((memory, one))
    found: dict[tuple[str, str], None] = {}
    for told in topics.values():
        told.sort(key=lambda entry: entry[0].occurred_at or entry[0].retained_at)
        for place, (memory, one) in enumerate(told):
            last = _contradicting(one, told[place + 1 :])
            if last is not None and last.memory_id != memory.memory_id:
                found.setdefault((memory.memory_id, last.memory_id))
    return list(found)


def _contradicting(one: Statement, later: Sequence[tuple[Memory, Statement]]) -> Memory | None:
    """The memory of the latest statement that contradicts one; None where a later one repeats it."""
    for memory, other in reversed(later[-MOST_COMPARED:]):
        if other.contradicts(one):
            return memory
        if other.agrees(one):
            return None
    return None


def query_of(memory: Memory) -> str:
    """A query that should find a memory: its sentence with most content words, cut to some words."""
    sentences = split_sentences(memory.content, every_stop=True)[:MOST_SENTENCES]
    best = max(sentences, key=lambda one: len(content_words(one)), default="")
    return " ".join(best.split()[:QUERY_WORDS])
