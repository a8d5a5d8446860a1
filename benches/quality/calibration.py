"""Fits and checks the relevance of hits and the confidence of recalls on banks of 1 to 100,000 memories.

Banks are parts of question sets; larger banks have the memories of other banks beside their own. Half of the questions
of a bank have evidence in it, and half are questions of other banks, of which it holds nothing. A recall is right if
its first ten hits hold evidence; a hit is relevant if it is evidence. Coefficients are fitted on every second bank and
checked on the others.

Example:
    python -m benches.quality.calibration --data locomo.json --data beam.json.gz --data timeqa.json.gz
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from astrocyte import Astrocyte
from astrocyte.core import Answer, split_sentences
from astrocyte.model import RecallResult
from astrocyte.pipelines.index.rows import bytes_to_id
from astrocyte.pipelines.recall.result_assembly import ResultAssembly
from astrocyte.pipelines.search.plan import Plan
from benches.quality.data import Bank, Question, QuestionSet, Turn, read_set
from benches.quality.product import open_brain
from benches.quality.runner import fill

# Memories of a bank, and banks of that size.
SIZES = {1: 240, 3: 120, 10: 80, 30: 50, 100: 40, 300: 30, 1_000: 20, 3_000: 12, 10_000: 12, 30_000: 4, 100_000: 2}
# Questions of either kind put to a bank.
ASKED = 60
# Banks of the same set, and of others, that the foreign questions are of.
AWAY = 2
HITS = 10
SEED = 20_251_125
TENTHS = 10
# Banks are taken from this many sets in turn, so that both halves have all of them.
SETS_IN_TURN = 6
# Keeps coefficients finite where the terms tell right from wrong without an error.
RIDGE = 1e-3
FLOORS = (0.1, 0.15, 0.2, 0.3)

# Cosine, share of the stems in the chunk, and memories that pass the filter.
Features = tuple[float | None, float | None, int]


@dataclass(frozen=True, slots=True)
class Observation:
    """A question put to a bank: its evidence in the core, whether its hits are relevant, and what was answered."""

    size: int
    bank: int
    source: str
    own: bool
    lead: Features | None
    hits: list[tuple[Features, bool]]
    confidence: float
    scores: list[float]

    @property
    def right(self) -> bool:
        """True if a hit is evidence."""
        return any(relevant for _, relevant in self.hits)


@dataclass(frozen=True, slots=True)
class Trial:
    """A bank with the questions that it can answer, and others that it cannot."""

    size: int
    source: str
    bank: Bank
    own: Sequence[tuple[Question, Bank]]
    foreign: Sequence[tuple[Question, Bank]]


def trials(sets: Sequence[QuestionSet], sizes: dict[int, int], seed: int = SEED) -> Iterator[Trial]:
    """Banks of all sizes, in turn from all sets."""
    draw = random.Random(seed)
    for size, count in sizes.items():
        for number in range(count):
            source = sets[number % len(sets)]
            home = draw.choice(source.banks)
            # Of the same kind where the set has other banks, and of other sets.
            near = [bank for bank in source.banks if bank is not home]
            far = [bank for one in sets if one is not source and len(one.banks) > 1 for bank in one.banks]
            away = draw.sample(near, min(AWAY, len(near))) + draw.sample(far, AWAY)
            yield _trial(draw, size, source.name, home, away, sets)


def _trial(
    draw: random.Random, size: int, name: str, home: Bank, away: Sequence[Bank], sets: Sequence[QuestionSet]
) -> Trial:
    places = {turn.id: place for place, turn in enumerate(home.turns)}
    at = places[draw.choice(draw.choice(home.questions).evidence)]
    first = max(0, min(at - draw.randrange(size), len(home.turns) - size))
    turns = list(home.turns[first : first + size])
    held = {turn.id for turn in turns}
    own = [(one, home) for one in home.questions if held.intersection(one.evidence)]
    if size > len(turns):
        others = [bank for one in sets for bank in one.banks if bank is not home and bank not in away]
        turns += _filler(draw, size - len(turns), others)
        draw.shuffle(turns)
        turns.sort(key=lambda turn: turn.session or "")
    own = draw.sample(own, min(ASKED, len(own)))
    foreign = [(one, bank) for bank in away for one in bank.questions]
    return Trial(size, name, Bank(home.name, tuple(turns), ()), own, draw.sample(foreign, min(len(own), len(foreign))))


def _filler(draw: random.Random, count: int, banks: Sequence[Bank]) -> list[Turn]:
    """Memories of other banks; where these are too few, their sentences too."""
    turns = [_moved(turn, bank.name, "") for bank in banks for turn in bank.turns]
    if len(turns) < count:
        turns += [
            _moved(replace(turn, text=text), "", f"/{place}")
            for turn in list(turns)
            for place, text in enumerate(split_sentences(turn.text, every_stop=True))
            if text.strip() and text != turn.text
        ]
    return draw.sample(turns, min(count, len(turns)))


def _moved(turn: Turn, bank: str, mark: str) -> Turn:
    """The memory under an id and a session that no other bank has."""
    session = f"{bank}/{turn.session}" if turn.session and not mark else None
    return replace(turn, id=f"{bank}/{turn.id}{mark}", session=session)


class Observer:
    """Keeps the core's response to each recall."""

    def __init__(self) -> None:
        self.seen: list[Answer] = []
        finish: Callable[[ResultAssembly, Plan, Answer], RecallResult] = ResultAssembly.finish

        def noted(assembly: ResultAssembly, plan: Plan, response: Answer) -> RecallResult:
            self.seen.append(response)
            return finish(assembly, plan, response)

        ResultAssembly.finish = noted  # type: ignore[method-assign, assignment]


async def observe(brain: Astrocyte, observer: Observer, trial: Trial, number: int) -> list[Observation]:
    """The questions of a bank, put to it."""
    bank_id = f"bank-{number}"
    ids = await fill(brain, trial.bank, bank_id)
    names = dict(ids.values())
    kept = {own: first for own, (_, first) in ids.items()}
    found = []
    for own, asked in ((True, trial.own), (False, trial.foreign)):
        for question, bank in asked:
            observer.seen.clear()
            result = await brain.recall(
                question.text,
                bank_id,
                max_results=HITS,
                query_reference_date=bank.asked_at(question),
            )
            evidence = {kept.get(one, one) for one in question.evidence} if own else set()
            response = observer.seen[-1]
            features = {bytes_to_id(hit.memory_id): hit.evidence for hit in response.hits}
            hits = [(features[hit.memory_id or ""], names.get(hit.memory_id or "") in evidence) for hit in result.hits]
            found.append(
                Observation(
                    trial.size,
                    number,
                    trial.source,
                    own,
                    response.lead,
                    hits,
                    result.confidence or 0.0,
                    [hit.score for hit in result.hits],
                )
            )
    await brain.delete_bank(bank_id)
    return found


async def observations(sets: Sequence[QuestionSet], sizes: dict[int, int], out: Path | None) -> list[Observation]:
    """All banks, one after the other; written to a file as they come, where there is one."""
    observer = Observer()
    found: list[Observation] = []
    with tempfile.TemporaryDirectory(prefix="astrocyte-calibration-") as folder:
        async with open_brain(Path(folder), {"barriers": {"pii": {"mode": "disabled"}}}) as brain:
            for number, trial in enumerate(trials(sets, sizes)):
                new = await observe(brain, observer, trial, number)
                found += new
                if out is not None:
                    with out.open("a", encoding="utf-8") as file:
                        file.writelines(json.dumps(asdict(one)) + "\n" for one in new)
                print(f"bank {number}: {trial.size} memories of {trial.source}", file=sys.stderr)
    return found


def evidence_row(features: Features) -> list[float]:
    """The terms of the logistic functions, as in the core."""
    meaning, covered, memories = features
    missing = 1.0 - (covered or 0.0)
    return [meaning or 0.0, 1.0 - missing * missing, math.log10(memories)]


# The terms that are used with both kinds of evidence, with words alone, and with vectors alone.
TERMS = {"both": (0, 1, 2), "words": (1, 2), "meaning": (0, 2)}


def fitted(rows: np.ndarray, right: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Coefficients of a logistic regression, the constant first, by Newton's method."""
    terms = np.hstack([np.ones((len(rows), 1)), rows])
    found = np.zeros(terms.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-terms @ found))
        slope = terms.T @ (weights * (right - chance)) - RIDGE * found
        curve = (terms * (weights * chance * (1 - chance))[:, None]).T @ terms + RIDGE * np.eye(len(found))
        found += np.linalg.solve(curve, slope)
    return found


def calibration_error(chance: np.ndarray, right: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Expected calibration error over ten bins of equal width."""
    weights = np.ones(len(chance)) if weights is None else weights
    bins = np.minimum((chance * TENTHS).astype(int), TENTHS - 1)
    error = 0.0
    for one in range(TENTHS):
        inside = bins == one
        if inside.any():
            share = weights[inside].sum() / weights.sum()
            own, true = (np.average(values[inside], weights=weights[inside]) for values in (chance, right))
            error += share * abs(own - true)
    return float(error)


def area(chance: np.ndarray, right: np.ndarray) -> float:
    """Probability that something right has a larger value than something wrong."""
    _, places, counts = np.unique(chance, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    good = right > 0
    least = good.sum() * (good.sum() + 1) / 2
    return float((ranks[good].sum() - least) / (good.sum() * (~good).sum()))


def even_weights(found: Sequence[Observation]) -> np.ndarray:
    """Weights with which all sizes count the same."""
    counts = Counter(one.size for one in found)
    weights = np.array([1 / counts[one.size] for one in found])
    even: np.ndarray = weights / weights.mean()
    return even


def is_fitted(one: Observation) -> bool:
    """True for a bank on which coefficients are fitted; the others check them."""
    return one.bank // SETS_IN_TURN % 2 == 0


def coefficient_lines(found: Sequence[Observation]) -> Iterator[str]:
    """The coefficients, fitted on half of the banks."""
    some = [one for one in found if is_fitted(one) and one.lead]
    weights = even_weights(some)
    rows = np.array([evidence_row(one.lead) for one in some if one.lead])
    right = np.array([float(one.right) for one in some])
    hits = [
        ([*evidence_row(features), math.log(rank)], float(relevant), weight)
        for one, weight in zip(some, weights, strict=True)
        for rank, (features, relevant) in enumerate(one.hits, 1)
    ]
    of_hits, relevant, hit_weights = (np.array(values) for values in zip(*hits, strict=True))
    for name, terms in TERMS.items():
        numbers = fitted(rows[:, terms], right, weights)
        yield f"confidence, {name}: {', '.join(f'{number:.2f}' for number in numbers)}"
    for name, terms in TERMS.items():
        numbers = fitted(of_hits[:, (*terms, 3)], relevant, hit_weights)
        yield f"relevance, {name}: {', '.join(f'{number:.2f}' for number in numbers)}"


def check_lines(found: Sequence[Observation]) -> Iterator[str]:
    """Markdown tables of what was answered on the other half of the banks."""
    some = [one for one in found if not is_fitted(one)]
    head = " | ".join(f"own < {floor:g} | other < {floor:g}" for floor in FLOORS)
    yield f"| memories | questions | ECE | area | {head} | ECE of hits |"
    yield "|---" * (5 + 2 * len(FLOORS)) + "|"
    for size in [*sorted({one.size for one in some}), 0]:
        part = [one for one in some if size in {0, one.size}]
        weights = even_weights(part)
        chance, right = (np.array([value(one) for one in part]) for value in (confidence_of, right_of))
        own = np.array([one.own for one in part])
        below = " | ".join(
            f"{np.mean(chance[own] < floor):.3f} | {np.mean(chance[~own] < floor):.3f}" for floor in FLOORS
        )
        scores = np.array([score for one in part for score in one.scores])
        relevant = np.array([float(good) for one in part for _, good in one.hits])
        per_hit = np.array([weight for one, weight in zip(part, weights, strict=True) for _ in one.hits])
        yield (
            f"| {size or 'all'} | {len(part)} | {calibration_error(chance, right, weights):.3f} "
            f"| {area(chance, right):.3f} | {below} | {calibration_error(scores, relevant, per_hit):.3f} |"
        )


def confidence_of(one: Observation) -> float:
    """The confidence of the answer."""
    return one.confidence


def right_of(one: Observation) -> float:
    """1 where a hit is evidence."""
    return float(one.right)


def main(arguments: list[str] | None = None) -> int:
    """Observe, or read what was observed; print coefficients and checks."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.quality.calibration",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, action="append", default=[], help="a question set; may be repeated")
    parser.add_argument("--most", type=int, default=max(SIZES), help="memories of the largest bank")
    parser.add_argument("--out", type=Path, help="a file that receives a line of JSON for each question")
    parser.add_argument("--read", type=Path, help="a file of an earlier --out, to fit and check without --data")
    options = parser.parse_args(arguments)
    if bool(options.data) == bool(options.read):
        parser.error("expected either --data or --read")
    if options.read:
        found = [_observation(json.loads(line)) for line in options.read.read_text(encoding="utf-8").splitlines()]
    else:
        sizes = {size: count for size, count in SIZES.items() if size <= options.most}
        found = asyncio.run(observations([read_set(path) for path in options.data], sizes, options.out))
    print(*coefficient_lines(found), *check_lines(found), sep="\n")
    return 0


def _observation(raw: dict[str, Any]) -> Observation:
    """An observation of a file."""
    hits = [(tuple(features), relevant) for features, relevant in raw.pop("hits")]
    return Observation(hits=hits, **raw)


if __name__ == "__main__":
    sys.exit(main())
