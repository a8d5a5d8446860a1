"""Calibration of a recall's confidence, and the effect of abstaining by it.

Every question is put to its own bank, and to the next bank of the set as a question that nothing there answers. Right
is an answer of a question that has one, whose first ten hits hold evidence.

Example:
    python -m benches.quality.abstaining --data locomo.json --data beam.json.gz
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from astrocyte import Astrocyte
from benches.quality.data import Question, QuestionSet, read_set
from benches.quality.product import open_brain
from benches.quality.report import APART
from benches.quality.runner import Stored, store

# Hits of an answer.
HITS = 10
PARTS = 5
FLOORS = (0.1, 0.15, 0.2, 0.25, 0.3)
TENTHS = range(1, 11)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question put to a bank: ``kind`` is own, adversarial or other (of another bank)."""

    kind: str
    confidence: float
    right: bool


async def outcomes(questions: QuestionSet) -> list[Outcome]:
    """All questions of a set, each put to its bank and to the next one."""
    with tempfile.TemporaryDirectory(prefix="astrocyte-abstaining-") as folder:
        async with open_brain(Path(folder)) as brain:
            stored = await store(brain, questions)
            count = len(questions.banks)
            found = []
            for number, bank in enumerate(questions.banks):
                for question in bank.questions:
                    evidence = {stored.kept.get((bank.name, one), one) for one in question.evidence}
                    kind = APART if question.category == APART else "own"
                    asked_at = bank.asked_at(question)
                    found.append(await _ask(brain, question, asked_at, number, stored, kind, evidence))
                    if count > 1:
                        other = (number + 1) % count
                        found.append(await _ask(brain, question, asked_at, other, stored, "other", set()))
    return found


async def _ask(  # noqa: PLR0913, PLR0917 - a question, where it is put, and what is right
    brain: Astrocyte,
    question: Question,
    asked_at: datetime | None,
    number: int,
    stored: Stored,
    kind: str,
    evidence: set[str],
) -> Outcome:
    result = await brain.recall(
        question.text,
        Stored.bank_id(number),
        max_results=HITS,
        detail_level="titles",
        query_reference_date=asked_at,
    )
    names = stored.names[number]
    held = {names.get(hit.memory_id or "") for hit in result.hits}
    return Outcome(kind, result.confidence or 0.0, kind == "own" and bool(evidence & held))


def lines(name: str, found: Sequence[Outcome]) -> Iterator[str]:
    """The printed figures of a set."""
    yield f"{name}: {len(found)} questions"
    for kind in ("own", APART, "other"):
        some = sorted([one for one in found if one.kind == kind], key=lambda one: one.confidence)
        if not some:
            continue
        parts = [some[len(some) * part // PARTS : len(some) * (part + 1) // PARTS] for part in range(PARTS)]
        cells = [
            f"{_mean([one.confidence for one in part]):.2f} / {_mean([one.right for one in part]):.2f}"
            for part in parts
        ]
        yield f"  {kind:12} confidence / right, in fifths: {'  '.join(cells)}"
        below = [f"{floor:g}: {_mean([one.confidence < floor for one in some]):.3f}" for floor in FLOORS]
        yield f"  {'':12} abstains below {'  '.join(below)}"
    ranked = sorted(found, key=lambda one: -one.confidence)
    risks = [_mean([not one.right for one in ranked[: len(ranked) * tenth // 10]]) for tenth in TENTHS]
    yield "  wrong, if only the most confident tenths are answered: " + "  ".join(f"{risk:.3f}" for risk in risks)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def main(arguments: list[str] | None = None) -> int:
    """Ask the sets, and print a block for each and one for all together."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.quality.abstaining",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, action="append", required=True, help="a question set; may be repeated")
    options = parser.parse_args(arguments)
    everything: list[Outcome] = []
    for path in options.data:
        questions = read_set(path)
        found = asyncio.run(outcomes(questions))
        everything += found
        print(*lines(questions.name, found), sep="\n")
    print(*lines("all together", everything), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
