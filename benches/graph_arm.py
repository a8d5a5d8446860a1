"""Measure what the entity graph can add to recalls of question sets, and what the arm does add.

For each set: R@10 by kind of question, without the arm and at each weight, of banks whose graphs are complete; and, of
the evidence that a plain recall leaves beyond the tenth place, how much the graph reaches. An entity that more than a
quarter of a bank's memories mention reaches nothing, as in the arm.

Example:
    python -m benches.graph_arm --data locomo.json --weights 0.3 1.0
    python -m benches.graph_arm --data locomo.json --weights 1.0 --cost
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from astrocyte import Astrocyte
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Bank, Entity
from astrocyte.pipelines.graph.question_entities import anchors_of
from astrocyte.pipelines.search.entity_arm import MOST_SHARE, phrases
from astrocyte.stores.graph.entity_graph import GraphView
from benches.quality.data import Key, QuestionSet, read_set
from benches.quality.report import evaluate, table
from benches.quality.runner import Stored, ask, store

# The place from which evidence counts as missed, and the first hits whose entities could lead on.
HEAD, FIRST = 10, 5
# Seconds for all graphs of a set.
PATIENCE = 3_600.0
SEED = 20_250_101
_MENTIONS = (
    "SELECT DISTINCT b.bank_id, m.memory_id, e.entity_id FROM entity_mentions JOIN memories m USING (row_key)"
    " JOIN graph_entities e USING (entity_key) JOIN banks b ON b.bank_key = e.bank_key"
)


@dataclass(frozen=True, slots=True)
class Graph:
    """The mentions of one bank: by memory its entities, without those that too many memories mention."""

    entities: Mapping[str, frozenset[str]]

    def of(self, memories: Iterable[str]) -> frozenset[str]:
        """The entities of memories."""
        return frozenset().union(*(self.entities.get(memory, frozenset()) for memory in memories))


async def complete(app: App, questions: QuestionSet) -> Stored:
    """Store a set, and wait until the graph of every bank is complete."""
    stored = await store(Astrocyte(app.gate), questions)
    if not await app.pipelines.graph.follower.caught_up(PATIENCE):
        raise TimeoutError(f"the graphs of {questions.name} were not complete after {PATIENCE:g} s")
    return stored


async def answered(app: App, questions: QuestionSet, stored: Stored) -> dict[Key, list[str]]:
    """The ranking of every question."""
    brain = Astrocyte(app.gate)
    ranked = {}
    for number, bank in enumerate(questions.banks):
        for question in bank.questions:
            found = await ask(brain, question.text, number, stored, bank.asked_at(question))
            ranked[bank.name, question.id] = found
    return ranked


def graphs(app: App, questions: QuestionSet, stored: Stored) -> list[Graph]:
    """The graphs of the banks, in their order."""
    mentions: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    with app.storage.store._connections.snapshot() as connection:
        for bank_id, memory_id, entity_id in connection.execute(_MENTIONS):
            mentions[bank_id][memory_id].add(entity_id)
    made = []
    for number, bank in enumerate(questions.banks):
        names, own = stored.names[number], mentions[Stored.bank_id(number)]
        counts = Counter(entity for entities in own.values() for entity in entities)
        most = max(1.0, MOST_SHARE * len(bank.turns))
        kept = {names[memory]: frozenset(one for one in found if counts[one] <= most) for memory, found in own.items()}
        made.append(Graph(kept))
    return made


def reach(questions: QuestionSet, ranked: Mapping[Key, list[str]], graph: Sequence[Graph], kept: Stored) -> list[str]:
    """Of each kind of question: evidence, how much a plain recall misses, and how much of that the graph reaches."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for bank, own in zip(questions.banks, graph, strict=True):
        for question in bank.questions:
            found, count = ranked[bank.name, question.id], counts[question.category]
            slugs = {Entity(phrase).id.partition(":")[2] for phrase in phrases(question.text)}
            first = own.of(found[:FIRST])
            for evidence in {kept.kept.get((bank.name, one), one) for one in question.evidence}:
                entities = own.of([evidence])
                missed = evidence not in found[:HEAD]
                count["evidence"] += 1
                count["missed"] += missed
                count["with an entity"] += missed and bool(entities)
                count["of the question"] += missed and any(one.partition(":")[2] in slugs for one in entities)
                count["of the first hits"] += missed and bool(entities & first)
    columns = ("evidence", "missed", "with an entity", "of the question", "of the first hits")
    lines = [f"{'kind':<14}" + "".join(f"{name:>19}" for name in columns)]
    lines += [f"{kind:<14}" + "".join(f"{count[name]:>19}" for name in columns) for kind, count in counts.items()]
    return lines


async def cost(questions: QuestionSet, weight: float) -> None:
    """Print p50 of the time and processor time of recalls with and without the arm, which are asked in turns."""
    with tempfile.TemporaryDirectory(prefix="astrocyte-graph-arm-") as folder:
        apps = [
            App(
                Settings.from_mapping(
                    {"data_dir": f"{folder}/{one:g}", "entity_graph": {"recall_weight": one, "recall_seconds": 60}}
                )
            )
            for one in (0.0, weight)
        ]
        kept = [await complete(app, questions) for app in apps]
        spent: dict[bool, list[list[tuple[float, float]]]] = {True: [[], []], False: [[], []]}
        for number, bank in enumerate(questions.banks):
            for question in bank.questions:
                taken = []
                for app, stored in zip(apps, kept, strict=True):
                    start, used = time.perf_counter(), time.process_time()
                    await ask(Astrocyte(app.gate), question.text, number, stored, bank.asked_at(question))
                    taken.append(((time.perf_counter() - start) * 1e3, (time.process_time() - used) * 1e3))
                view = GraphView(bank_of(apps[1], number))
                with apps[1].storage.store.graph.reader(view) as reader:
                    found = bool(anchors_of(reader, question.text).groups)
                for one, own in zip(spent[found], taken, strict=True):
                    one.append(own)
        for found, (plain, armed) in spent.items():
            if plain:
                lines = [[statistics.median(column) for column in zip(*one, strict=True)] for one in (plain, armed)]
                kind = "that name an entity" if found else "that name none"
                print(f"{questions.name}, {len(plain)} questions {kind}: without {lines[0][0]:.2f} ms")
                print(f"({lines[0][1]:.2f} of processor time), with {lines[1][0]:.2f} ({lines[1][1]:.2f})")
        for app in apps:
            await app.close()


def bank_of(app: App, number: int) -> Bank:
    """A bank of the set."""
    bank = app.storage.store.get_bank("default", Stored.bank_id(number))
    if bank is None:
        raise LookupError(Stored.bank_id(number))
    return bank


async def measure(questions: QuestionSet, weights: Sequence[float]) -> None:
    """Print the tables of a set, which is stored once."""
    plain = stored = None
    with tempfile.TemporaryDirectory(prefix="astrocyte-graph-arm-") as folder:
        for weight in (0.0, *weights):
            arm = {"recall_weight": weight, "recall_seconds": 60}
            app = App(Settings.from_mapping({"data_dir": folder, "entity_graph": arm}))
            stored = stored or await complete(app, questions)
            ranked = await answered(app, questions, stored)
            own = evaluate(questions, ranked, stored.kept)
            print(f"\n{questions.name}, weight {weight:g}", *table("", own, plain, seed=SEED), sep="\n", flush=True)
            if plain is None:
                plain = own
                print("", *reach(questions, ranked, graphs(app, questions, stored), stored), sep="\n")
            await app.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="question sets")
    parser.add_argument("--weights", type=float, nargs="*", default=[0.3, 1.0], help="weights of the arm")
    parser.add_argument("--cost", action="store_true", help="print times instead, with the last weight")
    options = parser.parse_args(arguments)
    for path in options.data:
        questions = read_set(path)
        asyncio.run(cost(questions, options.weights[-1]) if options.cost else measure(questions, options.weights))
    return 0


if __name__ == "__main__":
    sys.exit(main())
