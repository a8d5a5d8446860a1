"""Measure what links between memories can add to recalls: near vectors, near times, and names that two memories share.

A recall ranks 100 memories. Its first hits pass activation on over links, one or two steps; what arrives is added to
the scores of the recall, with a weight. R@10 by kind of question is printed without links and for each way and weight.
A name that more than a quarter of a bank's memories have links nothing.

Example:
    python -m benches.graph_links --data locomo.json --weights 0.1 0.3
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from astrocyte import Astrocyte
from astrocyte.app import App
from astrocyte.config import Settings
from benches.graph_arm import PATIENCE, graphs
from benches.quality.data import Bank, Key, QuestionSet, read_set
from benches.quality.metrics import mean
from benches.quality.report import evaluate
from benches.quality.runner import Stored, store

METRIC = "R@10"
# Memories that a recall ranks, and that are compared.
RANKED = 100
# First hits of a recall, and what each link passes on.
SEEDS, DECAY = 10, 0.6
# Nearest vectors of a memory, and the least similarity.
NEAREST, SIMILAR = 5, 0.7
# Turns of the same session before and after.
BESIDE = 2
# Days in which the nearness of two times halves.
HALF_DAYS = 7.0

# Links of memories by their number: to a number, with a weight of 0 to 1.
Links = Mapping[int, Mapping[int, float]]
Ranking = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Measured:
    """A bank with its links by kind, and the ranking of each of its questions."""

    bank: Bank
    links: Mapping[str, Links]
    ranked: Mapping[str, Ranking]


def near_vectors(vectors: np.ndarray) -> Links:
    """The nearest memories of each by the cosine of their vectors."""
    similar = vectors @ vectors.T
    np.fill_diagonal(similar, 0.0)
    found: dict[int, dict[int, float]] = {}
    for place, row in enumerate(similar):
        nearest = np.argpartition(row, -NEAREST)[-NEAREST:]
        found[place] = {int(one): float(row[one]) for one in nearest if row[one] >= SIMILAR}
    return found


def near_turns(bank: Bank) -> Links:
    """The memories before and after each in the same session."""
    found: dict[int, dict[int, float]] = {}
    for place, turn in enumerate(bank.turns):
        found[place] = {
            other: 1.0 / abs(other - place)
            for other in range(max(0, place - BESIDE), min(len(bank.turns), place + BESIDE + 1))
            if other != place and bank.turns[other].session == turn.session
        }
    return found


def shared_names(bank: Bank, entities: Mapping[str, frozenset[str]]) -> Links:
    """The memories that share names with each, a fifth for each name."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for place, turn in enumerate(bank.turns):
        for name in entities.get(turn.id, ()):
            by_name[name].append(place)
    found: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for places in by_name.values():
        for one in places:
            for other in places:
                if one != other:
                    found[one][other] = min(1.0, found[one][other] + 0.2)
    return found


def near_times(bank: Bank, links: Links) -> Links:
    """Links weighted up by the nearness of their times, as spreading activation with temporal proximity does."""

    def nearness(one: int, other: int) -> float:
        first, second = bank.turns[one].occurred_at, bank.turns[other].occurred_at
        if first is None or second is None:
            return 0.0
        return float(0.5 ** (abs((first - second).total_seconds()) / 86_400 / HALF_DAYS))

    return {
        one: {other: min(1.0, weight + 0.3 * nearness(one, other)) for other, weight in own.items()}
        for one, own in links.items()
    }


def spread(first: Ranking, kinds: Sequence[Links], steps: int) -> dict[int, float]:
    """The activation of the memories that are reached, the best path of each; seeds are left out."""
    top = first[0][1] if first else 1.0
    reached = {memory: score / top for memory, score in first[:SEEDS]}
    seeds, frontier = set(reached), dict(reached)
    arrived: dict[int, float] = {}
    for _ in range(steps):
        following: dict[int, float] = {}
        for memory, activation in frontier.items():
            for links in kinds:
                for other, weight in links.get(memory, {}).items():
                    passed = activation * DECAY * weight
                    if passed > max(following.get(other, 0.0), arrived.get(other, 0.0)):
                        following[other] = passed
        arrived |= following
        frontier = following
    return {memory: activation for memory, activation in arrived.items() if memory not in seeds}


def reranked(first: Ranking, added: Mapping[int, float], weight: float) -> list[int]:
    """The ranking with weighted activations added to the scores, of which the best is 1."""
    top = first[0][1] if first else 1.0
    scores = {memory: score / top for memory, score in first}
    for memory, activation in added.items():
        scores[memory] = scores.get(memory, 0.0) + weight * activation
    return sorted(scores, key=lambda memory: (-scores[memory], memory))


WAYS: Mapping[str, tuple[Callable[[Measured], list[Links]], int]] = {
    "near vectors": (lambda one: [one.links["vectors"]], 1),
    "near turns": (lambda one: [one.links["turns"]], 1),
    "shared names": (lambda one: [one.links["names"]], 1),
    "all three": (lambda one: list(one.links.values()), 1),
    "all three, nearer times weigh more": (
        lambda one: [near_times(one.bank, links) for links in one.links.values()],
        1,
    ),
    "all three, two steps": (lambda one: list(one.links.values()), 2),
}


async def measured(app: App, questions: QuestionSet) -> tuple[list[Measured], Stored]:
    """Every bank with its links and rankings."""
    brain = Astrocyte(app.gate)
    stored = await store(brain, questions)
    if not await app.pipelines.graph.follower.caught_up(PATIENCE):
        raise TimeoutError(f"the graphs of {questions.name} were not complete after {PATIENCE:g} s")
    found = []
    for number, (bank, graph) in enumerate(zip(questions.banks, graphs(app, questions, stored), strict=True)):
        places = {turn.id: place for place, turn in enumerate(bank.turns)}
        texts = [f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text for turn in bank.turns]
        made = await app.providers.spaces.default.embed(texts)
        vectors = np.array([array("f", vector) for vector in made], dtype=np.float32)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        links = {
            "vectors": near_vectors(vectors),
            "turns": near_turns(bank),
            "names": shared_names(bank, graph.entities),
        }
        ranked: dict[str, Ranking] = {}
        for question in bank.questions:
            result = await brain.recall(
                question.text,
                Stored.bank_id(number),
                max_results=RANKED,
                detail_level="titles",
                query_reference_date=bank.asked_at(question),
            )
            names = stored.names[number]
            ranked[question.id] = [
                (places[names[hit.memory_id]], hit.fused_score or 0.0) for hit in result.hits if hit.memory_id in names
            ]
        found.append(Measured(bank, links, ranked))
    return found, stored


def lines(questions: QuestionSet, banks: Sequence[Measured], stored: Stored, weights: Sequence[float]) -> Iterator[str]:
    """R@10 by kind of question without links, and its changes with each way and weight."""

    def scored(way: str | None, weight: float) -> dict[str, float]:
        run: dict[Key, list[str]] = {}
        for one in banks:
            kinds, steps = ([], 0) if way is None else (WAYS[way][0](one), WAYS[way][1])
            for question, first in one.ranked.items():
                order = reranked(first, spread(first, kinds, steps), weight)
                run[one.bank.name, question] = [one.bank.turns[place].id for place in order[:RANKED]]
        return {kind: mean(scores)[METRIC] for kind, scores in evaluate(questions, run, stored.kept).items() if scores}

    plain = scored(None, 0.0)
    yield f"{questions.name:<44}" + "".join(f"{kind:>14}" for kind in plain)
    yield f"{'no links':<44}" + "".join(f"{value:>14.3f}" for value in plain.values())
    for way in WAYS:
        for weight in weights:
            own = scored(way, weight)
            yield f"{way + f', weight {weight:g}':<44}" + "".join(
                f"{own[kind] - plain[kind]:>+14.3f}" for kind in plain
            )


async def measure(questions: QuestionSet, weights: Sequence[float]) -> None:
    """Print the table of a set."""
    with tempfile.TemporaryDirectory(prefix="astrocyte-graph-links-") as folder:
        app = App(Settings.from_mapping({"data_dir": folder, "limits": {"max_results": RANKED}}))
        banks, stored = await measured(app, questions)
        print(*lines(questions, banks, stored, weights), sep="\n")
        await app.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="question sets")
    parser.add_argument("--weights", type=float, nargs="*", default=[0.1, 0.3, 1.0], help="weights of the links")
    options = parser.parse_args(arguments)
    for path in options.data:
        asyncio.run(measure(read_set(path), options.weights))
    return 0


if __name__ == "__main__":
    sys.exit(main())
