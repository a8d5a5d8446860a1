"""Measure what reflect answers without a language model, in process and with the default configuration.

For every question of a set that has a written answer, one recall and one reflect. *contained* is the share of
questions whose answer holds every content word of the written one (words without stop words, plurals and endings of
verbs), *opens* the same for the first sentence of the answer, and *words* the mean share of those words that the answer
holds; an abstention holds none. *abstained* is the share of questions that were not answered. Adversarial questions
have no answer in memory: there, abstaining is right, and *contained* is how often the trap was taken.

The risk-coverage curve asks: of the single-hop and the adversarial questions together, if only the most confident part
is answered, how much of it is wrong? It needs no threshold, so that confidence itself is judged; *area* is the chance
that a single-hop question is more confident than an adversarial one.

Example:
    python -m benches.quality.reflecting --data set-a.json
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from astrocyte import Astrocyte
from astrocyte.core import count_tokens, split_sentences
from astrocyte.model import ReflectResult
from astrocyte.pipelines.text.content_words import content_words
from benches.quality import metrics
from benches.quality.data import Bank, QuestionSet, read_set
from benches.quality.runner import fill

COVERAGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ANSWERABLE, TRAP = "single-hop", "adversarial"


@dataclass(frozen=True, slots=True)
class Answered:
    """One question and how its answer did.

    Attributes:
        category: Of the question.
        words: Share of the written answer's content words.
        opens: True if the first sentence has all of them.
        abstained: True if there was no answer.
        confidence: Of the answer, 0 to 1.
        tokens: Of the answer.
        recall_seconds: Time of a recall.
        reflect_seconds: Time of the reflect.
        cites_evidence: True if a memory that the answer cites is evidence of the question.
    """

    category: str
    words: float
    opens: bool
    abstained: bool
    confidence: float
    tokens: int
    recall_seconds: float
    reflect_seconds: float
    cites_evidence: bool = False

    @property
    def contained(self) -> bool:
        """True if the answer holds all content words of the written one."""
        return self.words == 1.0


def share_of_words(written: str, answer: str) -> float | None:
    """Share of the content words of `written` that `answer` holds; None when it has none."""
    wanted = set(content_words(written))
    return len(wanted & set(content_words(answer))) / len(wanted) if wanted else None


def opening(answer: str) -> str:
    """The first sentence of an answer, with the speaker and the date before it."""
    return next((text for piece in split_sentences(answer, every_stop=True) if (text := piece.strip())), "")


def risks(answers: Sequence[Answered]) -> list[float]:
    """Share of wrong answers among the most confident part of all, for each of `COVERAGES`."""
    ranked = sorted(answers, key=lambda one: -one.confidence)
    wrong = [one.category == TRAP or not one.contained for one in ranked]
    return [mean(wrong[: max(1, round(coverage * len(wrong)))]) for coverage in COVERAGES]


def area(answers: Sequence[Answered]) -> float:
    """Chance that an answerable question is more confident than a trap; equal ones count half."""
    known = [one.confidence for one in answers if one.category == ANSWERABLE]
    return metrics.area(known, [one.confidence for one in answers if one.category == TRAP])


async def measure(questions: QuestionSet, folder: Path, *, floor: bool) -> list[Answered]:
    """Ask every question that has a written answer; without the floor nothing is abstained from for its confidence."""
    brain = Astrocyte.from_config_dict({"data_dir": str(folder), "adversarial_defense": {"abstention_enabled": floor}})
    answers = []
    for number, bank in enumerate(questions.banks):
        ids = await fill(brain, bank, f"bank-{number}")
        answers += await ask(brain, bank, f"bank-{number}", ids)
    await brain.close()
    return answers


async def ask(brain: Astrocyte, bank: Bank, bank_id: str, ids: Mapping[str, tuple[str, str]]) -> list[Answered]:
    """Ask the questions of a stored bank that have a written answer. ``ids`` is what `fill` returned."""
    answers = []
    for question in bank.questions:
        if question.answer is None or share_of_words(question.answer, "") is None:
            continue
        begun = time.perf_counter()
        asked_at = bank.asked_at(question)
        await brain.recall(question.text, bank_id, query_reference_date=asked_at)
        recalled = time.perf_counter()
        result = await brain.reflect(question.text, bank_id, query_reference_date=asked_at)
        done = time.perf_counter()
        words = 0.0 if result.abstained else share_of_words(question.answer, result.answer) or 0.0
        answers.append(
            Answered(
                question.category,
                words,
                not result.abstained and share_of_words(question.answer, opening(result.answer)) == 1.0,
                result.abstained,
                result.confidence or 0.0,
                count_tokens(result.answer),
                recalled - begun,
                done - recalled,
                bool({ids[one][0] for one in question.evidence if one in ids}.intersection(cited(result))),
            )
        )
    return answers


def cited(result: ReflectResult) -> set[str]:
    """Ids of the memories that an answer cites."""
    return {hit.memory_id for hit in result.sources or () if hit.memory_id}


def table(answers: Sequence[Answered]) -> list[str]:
    """One line a category, in the order of their size."""
    groups: dict[str, list[Answered]] = defaultdict(list)
    for one in answers:
        groups[one.category].append(one)
    lines = [
        "| category | questions | contained | opens | words | abstained | tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    for category, group in sorted(groups.items(), key=lambda entry: -len(entry[1])):
        lines.append(
            f"| {category} | {len(group)} | {mean(one.contained for one in group):.3f} "
            f"| {mean(one.opens for one in group):.3f} | {mean(one.words for one in group):.3f} "
            f"| {mean(one.abstained for one in group):.3f} "
            f"| {mean(one.tokens for one in group):.0f} |"
        )
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Measure every set and print its table and curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True, help="a question set; may be repeated")
    for path in parser.parse_args(arguments).data:
        questions = read_set(path)
        answers: list[Answered] = []
        for floor in (True, False):
            with tempfile.TemporaryDirectory(prefix="astrocyte-reflect-") as folder:
                answers = asyncio.run(measure(questions, Path(folder), floor=floor))
            print(f"\n{questions.name}, {'as configured' if floor else 'without abstention'}")
            print("\n".join(table(answers)))
        judged = [one for one in answers if one.category in {ANSWERABLE, TRAP}]
        if {one.category for one in judged} == {ANSWERABLE, TRAP}:
            curve = ", ".join(f"{cover:.0%} {risk:.3f}" for cover, risk in zip(COVERAGES, risks(judged), strict=True))
            print(f"\nrisk at coverage: {curve}; area {area(judged):.3f}")
        recall, reflect = (
            median([getattr(one, name) for one in answers]) for name in ("recall_seconds", "reflect_seconds")
        )
        print(f"p50: recall {recall * 1e3:.2f} ms, reflect {reflect * 1e3:.2f} ms, {reflect / recall:.1f} times")
    return 0


if __name__ == "__main__":
    sys.exit(main())
