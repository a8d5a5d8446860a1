"""The table that a run prints."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

from benches.quality.data import QuestionSet, Run
from benches.quality.metrics import METRICS, Scores, mean, paired_interval, score
from benches.quality.runner import Timings

# Questions about what was never said; their evidence misleads on purpose, so they stay out of the overall line.
APART = "adversarial"
OVERALL = "overall"
LABEL_WIDTH = 34

Kept = Mapping[tuple[str, str], str]
ByCategory = dict[str, list[Scores]]


def evaluate(questions: QuestionSet, run: Run, kept: Kept | None = None) -> ByCategory:
    """Scores by category in the set's order, `overall` last; a question that the run lacks scores 0.

    Args:
        questions: The set.
        run: Ranked ids by bank and question.
        kept: The id under which each memory is ranked, where it is not its own.
    """
    names = kept or {}
    found: ByCategory = {}
    overall: list[Scores] = []
    for bank in questions.banks:
        for question in bank.questions:
            evidence = {names.get((bank.name, identifier), identifier) for identifier in question.evidence}
            scores = score(run.get((bank.name, question.id), []), evidence)
            found.setdefault(question.category, []).append(scores)
            if question.category != APART:
                overall.append(scores)
    return {**found, OVERALL: overall}


def table(name: str, new: ByCategory, old: ByCategory | None, *, seed: int) -> Iterator[str]:
    """Lines of the table; with a saved run, the difference and its 95 % interval under each line."""
    yield f"{name[: LABEL_WIDTH - 1]:{LABEL_WIDTH}}{'n':>5}" + "".join(f"{metric:>9}" for metric in METRICS)
    for category, scores in new.items():
        label = f"{category} (apart)" if category == APART else category
        means = mean(scores)
        if means:
            yield f"{label:{LABEL_WIDTH}}{len(scores):>5}" + "".join(f"{means[metric]:9.3f}" for metric in METRICS)
        if old and scores:
            yield from _differences(scores, old[category], seed)


def timing_lines(timings: Timings, count: int) -> Iterator[str]:
    """Duration of retaining and recalling, and mean processor time of one of each."""
    recalls = sorted(timings.recalls)
    median = statistics.median(recalls) * 1000 if recalls else 0.0
    slow = recalls[int(0.99 * (len(recalls) - 1))] * 1000 if recalls else 0.0
    yield f"retain {count} in {timings.retain:.1f} s; recall median {median:.1f} ms, p99 {slow:.1f} ms"
    retain = timings.retain_processor * 1000 / max(count, 1)
    recall = timings.recalls_processor * 1000 / max(len(recalls), 1)
    yield f"processor time: {retain:.2f} ms a memory, {recall:.2f} ms a recall"


def _differences(new: Sequence[Scores], old: Sequence[Scores], seed: int) -> Iterator[str]:
    cells = []
    for metric in METRICS:
        change, lower, upper = paired_interval([s[metric] for s in new], [s[metric] for s in old], seed=seed)
        cells.append(f"{metric} {change:+.3f} [{lower:+.3f}, {upper:+.3f}]")
    yield "    change: " + ", ".join(cells)
