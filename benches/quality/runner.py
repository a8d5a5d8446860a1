"""Asks the product every question of a set, through its Python API."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from astrocyte import Astrocyte, MultiBankStrategy
from benches.quality.data import Bank, Key, QuestionSet, Turn

# The deepest metric looks at 20 places.
DEPTH = 20
# Items per call: a few hundred keep each transaction short and the calls few.
BATCH = 256
# A refusal may quote what it refuses.
LINE = 300


class Brain(Protocol):
    """The part of `astrocyte.Astrocyte` that a run needs."""

    async def retain_many(self, items: Sequence[Any], bank_id: str) -> Sequence[Any]:
        """Store items; one result with `memory_id` for each, in order."""

    async def recall(
        self,
        query: str,
        bank_id: str,
        *,
        max_results: int,
        detail_level: str,
        query_reference_date: datetime | None,
    ) -> Any:  # noqa: ANN401
        """Rank memories; the answer has `hits` with `memory_id`."""


class MeasuredBrain(Brain, Protocol):
    """A brain that says what its indexes hold."""

    async def bank_stats(self, bank_id: str) -> Any:  # noqa: ANN401
        """Counts; the answer has `index_bytes`."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds spent: in all retains, and in each recall; and of processor time, in all threads, in all of either."""

    retain: float
    recalls: tuple[float, ...]
    retain_processor: float
    recalls_processor: float


@dataclass(frozen=True, slots=True)
class Answers:
    """A run, and under which id each memory was found (another's, where the product stored two as one).

    `refused` memories were not stored (too long, for one); as evidence they count as not found.
    """

    ranked: dict[Key, list[str]]
    kept: dict[tuple[str, str], str]
    refused: int
    timings: Timings


@dataclass(frozen=True, slots=True)
class Stored:
    """A set in a store: by bank, the set's id of each of the product's ids; and which memories were taken as one."""

    names: tuple[dict[str, str], ...]
    kept: dict[tuple[str, str], str]

    @staticmethod
    def bank_id(number: int) -> str:
        """The product's id of a bank; it may hold less than a set's name."""
        return f"bank-{number}"

    def ranked(self, number: int, result: Any) -> list[str]:  # noqa: ANN401
        """The set's ids of the hits of a recall of bank `number`, best first."""
        names = self.names[number]
        return [names[hit.memory_id] for hit in result.hits if hit.memory_id in names]


async def store(brain: Brain, questions: QuestionSet) -> Stored:
    """Retain every bank in order."""
    names: list[dict[str, str]] = []
    kept: dict[tuple[str, str], str] = {}
    for number, bank in enumerate(questions.banks):
        ids = await fill(brain, bank, Stored.bank_id(number))
        kept.update({(bank.name, own): first for own, (_, first) in ids.items()})
        names.append(dict(ids.values()))
    return Stored(tuple(names), kept)


async def ask(brain: Brain, text: str, number: int, stored: Stored, asked_at: datetime | None = None) -> list[str]:
    """The set's ids of what a recall ranks, best first."""
    return stored.ranked(number, await recall(brain, text, number, asked_at))


async def recall(brain: Brain, text: str, number: int, asked_at: datetime | None = None) -> Any:  # noqa: ANN401
    """The product's answer to a question put to a stored bank."""
    # Titles: the token budget must not cut the list that is measured.
    return await brain.recall(
        text, Stored.bank_id(number), max_results=DEPTH, detail_level="titles", query_reference_date=asked_at
    )


async def answer_together(brain: Astrocyte, questions: QuestionSet, fusion_method: str) -> Answers:
    """Retain every bank, then recall every question over all banks, as if nobody knew where to look."""
    kept: dict[tuple[str, str], str] = {}
    names: dict[str, tuple[str, str]] = {}
    refused = 0
    started, began = time.perf_counter(), time.process_time()
    for number, bank in enumerate(questions.banks):
        ids = await fill(brain, bank, f"bank-{number}")
        refused += len(bank.turns) - len(ids)
        kept.update({(bank.name, own): first for own, (_, first) in ids.items()})
        names.update({stored: (bank.name, first) for stored, first in ids.values()})
    retain_seconds, retain_processor = time.perf_counter() - started, time.process_time() - began
    banks = [f"bank-{number}" for number in range(len(questions.banks))]
    strategy = MultiBankStrategy("parallel", fusion_method=fusion_method)
    ranked: dict[Key, list[str]] = {}
    recalls: list[float] = []
    began = time.process_time()
    for bank in questions.banks:
        for question in bank.questions:
            started = time.perf_counter()
            result = await brain.recall(
                question.text,
                banks=banks,
                strategy=strategy,
                max_results=DEPTH,
                detail_level="titles",
                query_reference_date=bank.asked_at(question),
            )
            recalls.append(time.perf_counter() - started)
            found = (names.get(hit.memory_id or "", ("", "")) for hit in result.hits)
            # A memory of another bank takes its place, and is nobody's evidence.
            ranked[bank.name, question.id] = [own if name == bank.name else f"{name}/{own}" for name, own in found]
    timings = Timings(retain_seconds, tuple(recalls), retain_processor, time.process_time() - began)
    return Answers(ranked, kept, refused, timings)


async def answer(brain: Brain, questions: QuestionSet) -> Answers:
    """Retain every bank in order, then recall every question of it with nothing but its text."""
    ranked: dict[Key, list[str]] = {}
    kept: dict[tuple[str, str], str] = {}
    recalls: list[float] = []
    retain_seconds, retain_processor, recalls_processor = 0.0, 0.0, 0.0
    refused = 0
    for number, bank in enumerate(questions.banks):
        # A bank's id may hold less than a set's name.
        name = f"bank-{number}"
        started, began = time.perf_counter(), time.process_time()
        ids = await fill(brain, bank, name)
        retain_seconds += time.perf_counter() - started
        retain_processor += time.process_time() - began
        refused += len(bank.turns) - len(ids)
        kept.update({(bank.name, own): first for own, (_, first) in ids.items()})
        names = dict(ids.values())
        began = time.process_time()
        for question in bank.questions:
            started = time.perf_counter()
            # Titles: the token budget must not cut the list that is measured.
            result = await brain.recall(
                question.text,
                name,
                max_results=DEPTH,
                detail_level="titles",
                query_reference_date=bank.asked_at(question),
            )
            recalls.append(time.perf_counter() - started)
            ranked[bank.name, question.id] = [names[hit.memory_id] for hit in result.hits if hit.memory_id in names]
        recalls_processor += time.process_time() - began
        print(f"{questions.name}: bank {number + 1}/{len(questions.banks)}", file=sys.stderr, flush=True)
    timings = Timings(retain_seconds, tuple(recalls), retain_processor, recalls_processor)
    return Answers(ranked, kept, refused, timings)


async def fill(brain: Brain, bank: Bank, bank_id: str) -> dict[str, tuple[str, str]]:
    """Retain a bank; for each stored memory's id, the product's id and the first of the set's ids that got it.

    Raises:
        RuntimeError: Nothing was stored.
    """
    ids: dict[str, tuple[str, str]] = {}
    first: dict[str, str] = {}
    for begin in range(0, len(bank.turns), BATCH):
        turns = bank.turns[begin : begin + BATCH]
        results = await brain.retain_many([item(turn) for turn in turns], bank_id)
        for turn, result in zip(turns, results, strict=True):
            stored = getattr(result, "memory_id", None)
            if stored:
                ids[turn.id] = stored, first.setdefault(stored, turn.id)
            else:
                print(f"bank {bank.name}, memory {turn.id}: not stored: {result}"[:LINE], file=sys.stderr)
    if bank.turns and not ids:
        raise RuntimeError(f"bank {bank.name}: expected {len(bank.turns)} memories to be stored, got none")
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
