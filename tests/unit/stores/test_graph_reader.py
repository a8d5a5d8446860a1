"""A graph is read for the bank that exists and is the caller's, many entities to a statement, each by its index."""

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from astrocyte.api.requests import CreateEntityLink
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import BankNotFound
from astrocyte.model import Bank, NewEntityLink
from astrocyte.providers.stages import ArmQuery
from astrocyte.providers.storage import CURRENT, StoreFilters
from astrocyte.stores.graph.entity_graph import GraphView
from astrocyte.stores.memory_filter import MemoryFilter
from samples.entity_graphs import BANK, ME, drop, say, settled, visible

ALICE, BOB, ACME = "person:alice-smith", "person:bob-miller", "org:acme-corp"
OPEN = MemoryFilter(tags=("open",))


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    yield app
    await app.close()


def bank_of(app: App) -> Bank:
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    return bank


@contextmanager
def traced(app: App) -> Iterator[list[tuple[str, Any]]]:
    """The statements of graph readers of this thread, with the values of each."""
    seen: list[tuple[str, Any]] = []

    def trace(_: object, sql: str, bindings: Any) -> bool:
        seen.append((sql, bindings))
        return True

    with app.storage.store.graph.reader(GraphView(bank_of(app))) as reader:
        connection: apsw.Connection = reader._connection
    connection.exec_trace = trace
    yield seen
    connection.exec_trace = None


def ask(app: App, question: str, filters: StoreFilters = CURRENT) -> int:
    """The number of memories that the arm proposes."""
    query = ArmQuery("default", BANK, question, None, filters, 100)
    return len(app.stages._graph_arm._search(bank_of(app), query, math.inf))


@pytest.mark.parametrize("change", [{"key": 99}, {"tenant": "other"}, {"bank_id": "other"}])
async def test_a_bank_that_is_not_what_it_says_has_no_graph(tmp_path: Path, change: dict[str, object]) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    await say(app, "Alice Smith sat beside Bob Miller.")
    await settled(app)
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    assert visible(app, GraphView(bank)) == ["person:alice-smith", "person:bob-miller"]
    with pytest.raises(BankNotFound):
        visible(app, GraphView(replace(bank, **change)))  # type: ignore[arg-type]
    await app.close()


async def test_links_and_mentions_are_found_by_their_entities(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.", tags=("open",))
    await settled(app)
    found: dict[str, Any] = {}
    for filters in (CURRENT, StoreFilters(tags=("open",)), StoreFilters(as_of=2**50)):
        with traced(app) as seen:
            assert ask(app, "Where does Alice Smith work?", filters) == 1
        found.update(seen)
    about = {sql: given for sql, given in found.items() if "entity_links l" in sql or "entity_mentions" in sql}
    plans = {
        sql: [row[-1] for row in app.storage.store._connections.query(f"EXPLAIN QUERY PLAN {sql}", given or ())]
        for sql, given in about.items()
    }
    steps = [step for plan in plans.values() for step in plan]
    assert any("l USING INDEX entity_links_from (source_key=?)" in step for step in steps)
    assert any("l USING INDEX entity_links_to (target_key=?)" in step for step in steps)
    assert any("entity_mentions_of (entity_key=?)" in step for step in steps)
    # The links of a bank are many more than those of an entity.
    assert [step for step in steps if "entity_links_of_bank" in step] == []
    assert [step for step in steps if step.startswith(("SCAN l", "SCAN m", "SCAN e", "SCAN o"))] == []


async def test_the_statements_of_a_question_do_not_grow_with_the_entities_around_it(app: App) -> None:
    await say(app, "Alice Smith met Bob Miller.")
    await settled(app)
    counts = []
    for number in range(3):
        with traced(app) as seen:
            assert ask(app, "Where does Alice Smith work?") == 1 + 2 * number
        counts.append(len(seen))
        for first in ("Carla", "Dan"):
            await say(app, f"Alice Smith met {first} Jones{'on' * number} and Eve Brown{'er' * number} in Paris.")
        await settled(app)
    assert counts[2] <= counts[1] <= counts[0] + 2


async def test_many_entities_are_read_as_each_is_by_itself(app: App) -> None:
    texts = ("Alice Smith works at Acme Corp.", "Bob Miller sat beside Alice Smith.", "Acme Corp hired Bob Miller.")
    said = [await say(app, text, tags=("open",) * (place % 2)) for place, text in enumerate(texts * 3)]
    await drop(app, said[0])
    await settled(app)
    bank = bank_of(app)
    for view in (GraphView(bank), GraphView(bank, only=OPEN), GraphView(bank, as_of=2**50)):
        for limit in (1, 2, 64):
            with app.storage.store.graph.reader(view) as reader:
                keys = list(reader.keys([ALICE, BOB, ACME]).values())
                together = reader.mentioning(keys, limit)
                # What was read for a smaller number is read again for a larger one.
                longer = reader.mentioning(keys, 64)
            single: dict[int, tuple[tuple[int, ...], bool]] = {}
            for key in keys:
                with app.storage.store.graph.reader(view) as reader:
                    single |= reader.mentioning([key], limit)
            assert len(keys) == len(together) == 3
            assert together == single
            assert all(longer[key][0][:limit] == rows for key, (rows, _) in together.items())
            assert all(more == (len(longer[key][0]) > limit) for key, (_, more) in together.items())
            assert all(list(rows) == sorted(rows, reverse=True) for rows, _ in longer.values())


async def test_of_equal_links_that_of_a_caller_comes_first_and_each_kind_is_cut(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Bob Miller likes tea.")
    await settled(app)
    with app.storage.store.graph.reader(GraphView(bank_of(app))) as reader:
        keys = reader.keys([ALICE, ACME])
        (stated,) = [one for one in reader.edges([keys[ALICE]], ["works_at"], 8, 8)[0] if one.forward]
    links = [NewEntityLink(ALICE, ACME, "works_at", confidence=stated.weight), NewEntityLink(BOB, ALICE, "trusts")]
    made = await app.gate.call(ME, CreateEntityLink(BANK, links))
    with app.storage.store.graph.reader(GraphView(bank_of(app))) as reader:
        edges, cut = reader.edges([keys[ALICE]], ["works_at"], 8, 8)
        assert [f"link-{one.link_key:x}" for one in edges] == [made[0].link_id, f"link-{stated.link_key:x}"]
        assert not cut
        both, cut = reader.edges([keys[ALICE]], [], 8, 1)
        # One along links, one against them, one of common memories.
        assert sorted((one.link_type, one.forward) for one in both) == [
            ("co_occurs_with", True),
            ("trusts", False),
            ("works_at", True),
        ]
        assert cut
