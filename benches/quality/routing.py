"""Choice of a side by the form of a query: the pipeline, an engine beside it, both, or one of them.

Both sides are this product, with other settings or other memories, so that the one is good at what the other is not.
Every question is asked of each side once; what the routes make of the two lists is computed from them, by the functions
that answer a hybrid recall.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from astrocyte.model import FusionMethod, MemoryHit
from astrocyte.pipelines.multi_bank.engine_fusion import SideList, fuse_sides
from astrocyte.pipelines.query.engine_routing import Route, route
from astrocyte.providers.engines import EngineCapabilities
from benches.quality.data import Key, QuestionSet
from benches.quality.metrics import mean, paired_interval
from benches.quality.product import open_brain
from benches.quality.report import OVERALL, Kept, evaluate
from benches.quality.runner import Stored, ask, store

# What the table shows of each way.
SHOWN = ("R@5", "R@10", "nDCG@10")
# The metric whose change is given with its interval.
JUDGED = "R@10"
# k of rank fusion, as a recall has it.
RANK_CONSTANT = 60.0
NO_ROUTE = Route(1.0, 1.0, ())

Rankings = dict[Key, list[str]]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two sides: how each recalls, what the engine says that it is good at, and whether each has half of it all."""

    name: str
    pipeline: Mapping[str, Any] = field(default_factory=dict)
    engine: Mapping[str, Any] = field(default_factory=dict)
    able: EngineCapabilities = field(default_factory=lambda: EngineCapabilities(temporal_search=True, reflect=True))
    halves: bool = False


@dataclass(frozen=True, slots=True)
class _Side:
    """A store, and what its memories are called."""

    folder: Path
    stored: Stored


PAIRS = (
    Pair("a server like this one, with the same memories"),
    Pair("a server like this one, with the other half of the sessions", halves=True),
    Pair(
        "an index of vectors alone",
        engine={"weights": {"keyword": 0.0, "temporal": 0.0}, "feedback": 0.0, "context_windows": False},
        able=EngineCapabilities(),
    ),
    Pair("a server like this one; the pipeline knows no dates", pipeline={"weights": {"temporal": 0.0}}),
)


async def routes(questions: QuestionSet, *, seed: int) -> Iterator[str]:
    """Lines of Markdown tables, one for each pair, a row for each way to use the two."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="astrocyte-routing-") as folder:
        sets = (questions, *_halves(questions))
        whole, first, second = [await _store(Path(folder) / str(place), one) for place, one in enumerate(sets)]
        for pair in PAIRS:
            own, theirs = (first, second) if pair.halves else (whole, whole)
            pipeline = await _ask(own, questions, pair.pipeline)
            engine = await _ask(theirs, questions, pair.engine)
            lines += _table(questions, pair, pipeline, engine, {**theirs.stored.kept, **own.stored.kept}, seed)
    return iter(lines)


def _halves(questions: QuestionSet) -> tuple[QuestionSet, QuestionSet]:
    """Every other session to each."""

    def half(parity: int) -> QuestionSet:
        banks = []
        for bank in questions.banks:
            places = {
                session: place for place, session in enumerate(dict.fromkeys(turn.session for turn in bank.turns))
            }
            turns = tuple(turn for turn in bank.turns if places[turn.session] % 2 == parity)
            banks.append(replace(bank, turns=turns))
        return replace(questions, banks=tuple(banks))

    return half(0), half(1)


async def _store(folder: Path, questions: QuestionSet) -> _Side:
    async with open_brain(folder) as brain:
        return _Side(folder, await store(brain, questions))


async def _ask(side: _Side, questions: QuestionSet, recall: Mapping[str, Any]) -> Rankings:
    ranked: Rankings = {}
    async with open_brain(side.folder, {"recall": recall}) as brain:
        for number, bank in enumerate(questions.banks):
            for question in bank.questions:
                ranked[bank.name, question.id] = await ask(
                    brain, question.text, number, side.stored, bank.asked_at(question)
                )
    return ranked


def _table(
    questions: QuestionSet, pair: Pair, pipeline: Rankings, engine: Rankings, kept: Kept, seed: int
) -> Iterator[str]:
    texts = {(bank.name, question.id): question.text for bank in questions.banks for question in bank.questions}
    chosen = {key: route(text, pair.able) for key, text in texts.items()}
    ways = {
        "both, equal weights": {key: _fused(pipeline[key], engine[key], NO_ROUTE) for key in texts},
        "both, weights by the route": {key: _fused(pipeline[key], engine[key], chosen[key]) for key in texts},
        "one of them, by the route": {key: _one(pipeline[key], engine[key], chosen[key]) for key in texts},
        "the pipeline alone": pipeline,
        "the engine alone": engine,
    }
    spared = sum(one.pipeline > one.engine for one in chosen.values()) / len(chosen)
    moved = sum(one.pipeline != one.engine for one in chosen.values()) / len(chosen)
    scores = {name: evaluate(questions, ranked, kept)[OVERALL] for name, ranked in ways.items()}
    first = scores["both, equal weights"]
    yield f"\n{questions.name}, {pair.name}: the route moves the weights of {moved:.0%} of the questions\n"
    yield f"| way | {' | '.join(SHOWN)} | change of {JUDGED} | calls of the engine spared |"
    yield "|---|" + "---|" * (len(SHOWN) + 2)
    for name, found in scores.items():
        means = mean(found)
        cells = [f"{means[metric]:.3f}" for metric in SHOWN]
        change, lower, upper = paired_interval([s[JUDGED] for s in found], [s[JUDGED] for s in first], seed=seed)
        cells.append("" if found is first else f"{change:+.3f} [{lower:+.3f}, {upper:+.3f}]")
        cells.append(f"{spared:.0%}" if name.startswith("one") else "all" if name == "the pipeline alone" else "none")
        yield f"| {name} | {' | '.join(cells)} |"


def _fused(pipeline: list[str], engine: list[str], chosen: Route) -> list[str]:
    """The result of a hybrid recall of two lists."""
    sides = [
        SideList(name, [MemoryHit(one, 0.0, memory_id=one, bank_id="b") for one in ranked], {"b": weight})
        for name, ranked, weight in (("", pipeline, chosen.pipeline), ("engine", engine, chosen.engine))
    ]
    return [str(hit.memory_id) for hit in fuse_sides(sides, FusionMethod.RRF, RANK_CONSTANT)]


def _one(pipeline: list[str], engine: list[str], chosen: Route) -> list[str]:
    """The side that the route is for; both where it is for neither."""
    if chosen.pipeline == chosen.engine:
        return _fused(pipeline, engine, NO_ROUTE)
    return pipeline if chosen.pipeline > chosen.engine else engine
