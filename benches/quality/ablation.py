"""Contribution of each stage: the same stores, asked again with one stage left out or another way of doing it.

Every set is retained once. Each variant opens the stores with its own settings, so that what differs is recall alone.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benches.quality.data import Key, QuestionSet
from benches.quality.metrics import mean, paired_interval
from benches.quality.product import open_brain
from benches.quality.report import OVERALL, ByCategory, evaluate
from benches.quality.runner import Stored, ask, store

# What the table shows of each set.
SHOWN = ("R@5", "R@10", "nDCG@10")
# The metric whose change is given with its interval.
JUDGED = "R@10"
# Stages left out, by the settings that do it; the first is what all others are compared with.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "no feedback": {"feedback": 0.0},
    "no context windows": {"context_windows": False},
    "no temporal arm": {"weights": {"temporal": 0.0}},
    "no semantic arm": {"weights": {"semantic": 0.0}},
    "no keyword arm": {"weights": {"keyword": 0.0}},
    "rank fusion": {"fusion_method": "rrf"},
}


@dataclass(slots=True)
class Variant:
    """A variant's rankings and what a recall took."""

    ranked: dict[Key, list[str]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    index_bytes: int = 0


async def ablate(questions: QuestionSet, *, seed: int) -> Iterator[str]:
    """Lines of a Markdown table, a row for each variant."""
    with tempfile.TemporaryDirectory(prefix="astrocyte-ablation-") as folder:
        async with open_brain(Path(folder)) as brain:
            stored = await store(brain, questions)
        variants = {name: await _ask(Path(folder), questions, stored, recall) for name, recall in VARIANTS.items()}
    scores = {name: evaluate(questions, variant.ranked, stored.kept) for name, variant in variants.items()}
    return _table(questions.name, variants, scores, seed)


async def _ask(folder: Path, questions: QuestionSet, stored: Stored, recall: Mapping[str, Any]) -> Variant:
    variant = Variant()
    async with open_brain(folder, {"recall": recall}) as brain:
        for number, bank in enumerate(questions.banks):
            # The first recall of a bank loads its index.
            await ask(brain, "load", number, stored)
            for question in bank.questions:
                started = time.perf_counter()
                variant.ranked[bank.name, question.id] = await ask(
                    brain, question.text, number, stored, bank.asked_at(question)
                )
                variant.seconds.append(time.perf_counter() - started)
            variant.index_bytes += (await brain.bank_stats(stored.bank_id(number))).index_bytes
    return variant


def _table(name: str, variants: Mapping[str, Variant], scores: Mapping[str, ByCategory], seed: int) -> Iterator[str]:
    first = next(iter(scores.values()))[OVERALL]
    yield f"| {name} ({len(first)} questions) | {' | '.join(SHOWN)} | change of {JUDGED} | ms | index |"
    yield "|---|" + "---|" * (len(SHOWN) + 3)
    for label, variant in variants.items():
        found = scores[label][OVERALL]
        means = mean(found)
        cells = [f"{means[metric]:.3f}" for metric in SHOWN]
        change, lower, upper = paired_interval([s[JUDGED] for s in found], [s[JUDGED] for s in first], seed=seed)
        cells.append(f"{change:+.3f} [{lower:+.3f}, {upper:+.3f}]" if found is not first else "")
        cells.append(f"{statistics.median(variant.seconds) * 1e3:.2f}")
        cells.append(f"{variant.index_bytes / 2**20:.1f} MiB")
        yield f"| {label} | {' | '.join(cells)} |"
