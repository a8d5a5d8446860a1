"""Asks the product every question of a set, through its Python API."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from benches.quality.data import Bank, Key, QuestionSet, Turn

# The deepest metric looks at 20 places.
DEPTH = 20
# Items per call: a few hundred keep each transaction short and the calls few.
BATCH = 256


class Brain(Protocol):
    """The part of `astrocyte.Astrocyte` that a run needs."""

    async def retain_many(self, items: Sequence[Any], bank_id: str) -> Sequence[Any]:
        """Store items; one result with `memory_id` for each, in order."""

    async def recall(self, query: str, bank_id: str, *, max_results: int, detail_level: str) -> Any:  # noqa: ANN401
        """Rank memories; the answer has `hits` with `memory_id`."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds spent: in all retains, and in each recall."""

    retain: float
    recalls: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """A run, and under which id each memory was found (another's, where the product stored two as one)."""

    ranked: dict[Key, list[str]]
    kept: dict[tuple[str, str], str]
    timings: Timings


async def answer(brain: Brain, questions: QuestionSet) -> Answers:
    """Retain every bank in order, then recall every question of it with nothing but its text."""
    ranked: dict[Key, list[str]] = {}
    kept: dict[tuple[str, str], str] = {}
    recalls: list[float] = []
    retain_seconds = 0.0
    for number, bank in enumerate(questions.banks):
        name = f"{questions.name}-{number}".lower().replace(" ", "-")
        started = time.perf_counter()
        ids = await fill(brain, bank, name)
        retain_seconds += time.perf_counter() - started
        for turn in bank.turns:
            kept[bank.name, turn.id] = ids[turn.id][1]
        first = {stored: own for stored, own in ids.values()}
        for question in bank.questions:
            started = time.perf_counter()
            # Titles: the token budget must not cut the list that is measured.
            result = await brain.recall(question.text, name, max_results=DEPTH, detail_level="titles")
            recalls.append(time.perf_counter() - started)
            ranked[bank.name, question.id] = [first[hit.memory_id] for hit in result.hits if hit.memory_id in first]
        print(f"{questions.name}: bank {number + 1}/{len(questions.banks)}", file=sys.stderr, flush=True)
    return Answers(ranked, kept, Timings(retain_seconds, tuple(recalls)))


async def fill(brain: Brain, bank: Bank, bank_id: str) -> dict[str, tuple[str, str]]:
    """Retain a bank; for each memory's id, the product's id and the first of the set's ids that got it.

    Raises:
        RuntimeError: An item was not stored; the numbers would not mean what they say.
    """
    ids: dict[str, tuple[str, str]] = {}
    first: dict[str, str] = {}
    for begin in range(0, len(bank.turns), BATCH):
        turns = bank.turns[begin : begin + BATCH]
        results = await brain.retain_many([item(turn) for turn in turns], bank_id)
        for turn, result in zip(turns, results, strict=True):
            stored = getattr(result, "memory_id", None)
            if not stored:
                raise RuntimeError(f"bank {bank.name}, memory {turn.id}: expected it to be stored, got {result}")
            ids[turn.id] = stored, first.setdefault(stored, turn.id)
    return ids


def item(turn: Turn) -> dict[str, Any]:
    """The keywords of retain for one memory; what the set does not know is left out."""
    values = {
        "content": turn.text,
        "occurred_at": turn.occurred_at,
        "session_id": turn.session,
        "speaker": turn.speaker,
    }
    return {name: value for name, value in values.items() if value is not None}
