"""Questions and traps of a stored set, put to the product, and the figures of what it answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from astrocyte import Astrocyte
from benches.quality import metrics
from benches.quality.data import Key, QuestionSet, read_set
from benches.quality.reflecting import opening, share_of_words
from benches.quality.report import OVERALL, ByCategory, Kept, evaluate
from benches.quality.runner import Stored, recall

SET = Path(__file__).with_name("banks.json")
# Of all questions, and beside them of each kind.
RANKING = ("R@1", "R@10", "MRR")
OF_KIND = "MRR"
AREA, ABSTAINS, OPENS = "AUC", "traps abstained", "opens with the answer"


@dataclass(frozen=True, slots=True)
class Answer:
    """Answers of recall and reflect to a question. `opening` is the first sentence of the answer."""

    confidence: float
    abstained: bool
    opening: str


@dataclass(slots=True)
class Measured:
    """Answers to all questions and traps of a set."""

    questions: QuestionSet
    kept: Kept
    ranked: dict[Key, list[str]] = field(default_factory=dict)
    answers: dict[Key, Answer] = field(default_factory=dict)
    traps: dict[Key, Answer] = field(default_factory=dict)

    def opens_right(self) -> dict[Key, bool]:
        """By question, True if the opening has every content word of the expected answer."""
        expected = {(bank.name, one.id): one.answer for bank in self.questions.banks for one in bank.questions}
        return {
            key: not answer.abstained and share_of_words(expected[key] or "", answer.opening) == 1.0
            for key, answer in self.answers.items()
        }

    def scores(self) -> ByCategory:
        """Ranking metrics of each question, by kind and overall."""
        return evaluate(self.questions, self.ranked, self.kept)


def gate_set() -> QuestionSet:
    """The set of the gate."""
    return read_set(SET)


async def measure(brain: Astrocyte, questions: QuestionSet, stored: Stored) -> Measured:
    """Put every question and trap to its bank: one recall and one reflect each.

    Args:
        brain: The product, with the set in its store.
        questions: The set.
        stored: How the set is named in the store.
    """
    found = Measured(questions, stored.kept)
    for number, bank in enumerate(questions.banks):
        for question in (*bank.questions, *bank.traps):
            key, asked_at = (bank.name, question.id), bank.asked_at(question)
            result = await recall(brain, question.text, number, asked_at)
            said = await brain.reflect(question.text, Stored.bank_id(number), query_reference_date=asked_at)
            answer = Answer(result.confidence or 0.0, said.abstained, opening(said.answer))
            if question.evidence:
                found.ranked[key] = stored.ranked(number, result)
                found.answers[key] = answer
            else:
                found.traps[key] = answer
    return found


def figures(found: Measured) -> Mapping[str, float]:
    """The figures that the gate compares with its floors, each from 0 to 1."""
    by_kind = found.scores()
    overall = metrics.mean(by_kind[OVERALL])
    values = {name: overall[name] for name in RANKING}
    values[AREA] = metrics.area(
        [one.confidence for one in found.answers.values()], [one.confidence for one in found.traps.values()]
    )
    values[ABSTAINS] = mean(one.abstained for one in found.traps.values())
    values[OPENS] = mean(found.opens_right().values())
    values.update(
        {f"{OF_KIND}, {kind}": metrics.mean(one)[OF_KIND] for kind, one in by_kind.items() if kind != OVERALL}
    )
    return values


def openings_by_kind(found: Measured) -> dict[str, list[bool]]:
    """By kind, for each question, True if its answer opens with what is expected."""
    right = found.opens_right()
    kinds: dict[str, list[bool]] = defaultdict(list)
    for bank in found.questions.banks:
        for question in bank.questions:
            kinds[question.category].append(right[bank.name, question.id])
    return dict(kinds)


def misses(found: Measured) -> Iterator[str]:
    """A line for each question that is not fully among ten hits, each answer that opens wrong, each answered trap."""
    right = found.opens_right()
    for bank in found.questions.banks:
        for question in bank.questions:
            key = bank.name, question.id
            evidence = {found.kept.get((bank.name, one), one) for one in question.evidence}
            ranks = [rank for rank, one in enumerate(found.ranked[key], 1) if one in evidence]
            if metrics.score(found.ranked[key], evidence)["R@10"] < 1 or ranks[0] > 1:
                yield f"ranks {ranks or 'none'} of {len(evidence)}: {question.id} {question.text}"
            if not right[key]:
                answer = found.answers[key]
                said = "abstains" if answer.abstained else f"opens with {answer.opening!r}"
                yield f"{said}, not {question.answer!r}: {question.id} {question.text}"
        for trap in bank.traps:
            answer = found.traps[bank.name, trap.id]
            if not answer.abstained:
                yield f"trap answered at {answer.confidence:.2f}, {answer.opening!r}: {trap.id} {trap.text}"
