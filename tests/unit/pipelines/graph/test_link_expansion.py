"""Links between memories lead on from what the graph arm found; every hop passes the filter of the recall."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from astrocyte.api.requests import CreateEntityLink, Recall, StartReindex, WaitOperation
from astrocyte.app import App
from astrocyte.cli.output import path_text
from astrocyte.config import Settings
from astrocyte.errors import BankNotFound
from astrocyte.model import MemoryPath, NewEntityLink, RecallQuery, TagMatch, TimeRange
from astrocyte.pipelines.graph import link_expansion, neighbors
from astrocyte.pipelines.graph.budget import Budget
from astrocyte.pipelines.graph.near_memories import NearMemories
from astrocyte.pipelines.graph.neighbors import spread
from astrocyte.pipelines.search.arm_paths import paths_of
from astrocyte.providers.stages import ArmQuery
from astrocyte.providers.storage import CURRENT, StoreFilters
from astrocyte.stores.graph.entity_graph import GraphView
from samples.entity_graphs import BANK, ME, say, settled
from samples.moving import OWN, SMALL
from samples.moving import settings as moving_settings

ALICE, BOB, ACME = "person:alice-smith", "person:bob-miller", "org:acme-corp"
QUESTION = "where does Alice Smith keep the key?"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    arm = {"recall_weight": 1.0, "recall_seconds": 60}
    app = App(Settings.from_mapping({"data_dir": str(tmp_path), "entity_graph": arm}))
    yield app
    await app.close()


async def proposed(
    app: App, text: str = QUESTION, filters: StoreFilters = CURRENT, *, limit: int = 100, bank: str = BANK
) -> tuple[list[tuple[str, float]], dict[str, MemoryPath]]:
    """The proposals of the arm, and the paths to them."""
    await settled(app)
    query = ArmQuery("default", bank, text, None, filters, limit)
    found = await app.stages._graph_arm.search(query, deadline=math.inf)
    return list(found), dict(paths_of(found))


def ids(found: Sequence[tuple[str, float]]) -> list[str]:
    return [memory_id for memory_id, _ in found]


async def test_turns_beside_a_memory_of_the_entity_are_reached_through_it(app: App) -> None:
    far = await say(app, "Morning all.", session_id="one", occurred_at=NOON)
    before = await say(app, "Nice weather.", session_id="one", occurred_at=NOON + timedelta(minutes=1))
    named = await say(app, "Alice Smith is here.", session_id="one", occurred_at=NOON + timedelta(minutes=2))
    after = await say(app, "It is under the mat.", session_id="one", occurred_at=NOON + timedelta(minutes=3))
    late = await say(app, "And a week later?", session_id="one", occurred_at=NOON + timedelta(days=7))
    await say(app, "Another session.", session_id="two", occurred_at=NOON + timedelta(minutes=3))
    await say(app, "No session at all.")
    found, paths = await proposed(app)
    # Nearer turns first, of equals the newer; a week halves what a link passes on.
    assert ids(found) == [named, after, before, far, late]
    scores = dict(found)
    assert scores[after] == pytest.approx(0.5 * 0.6, abs=1e-4)
    assert scores[late] == pytest.approx(0.5 * 0.6 / 2 / 2, abs=1e-4)
    assert paths[after] == MemoryPath(after, (ALICE,), ("next_to",), BANK, named)
    assert paths[named] == MemoryPath(named, (ALICE,), (), BANK)
    assert path_text(paths[after]) == f"{ALICE} -mentioned in- {named} -next_to-"
    assert path_text(paths[named]) == ALICE


async def test_memories_with_near_vectors_are_reached_by_their_cosine(app: App) -> None:
    named = await say(app, "Alice Smith keeps the spare key of the house under the blue mat.")
    near = await say(app, "The spare key of the house is kept under the blue mat.")
    await say(app, "Quarterly revenue of the bakery rose by nine percent.")
    found, paths = await proposed(app)
    assert ids(found) == [named, near]
    assert paths[near] == MemoryPath(near, (ALICE,), ("similar_to",), BANK, named)
    # 0.5 of the seed, 0.6 of a link, and the cosine.
    assert 0.7 * 0.3 <= dict(found)[near] <= 0.3


async def test_near_vectors_are_found_during_and_after_a_move_to_another_model() -> None:
    app = App(moving_settings(entity_graph={"recall_weight": 1.0, "recall_seconds": 60}))
    named = await say(app, "Alice Smith keeps the spare key of the house under the blue mat.")
    near = await say(app, "The spare key of the house is kept under the blue mat.")
    started = await app.gate.call(ME, StartReindex(BANK, embedding_model=SMALL))
    assert (await app.gate.call(ME, WaitOperation(BANK, started.operation_id, timeout=30))).done
    found, paths = await proposed(app)
    assert ids(found) == [named, near]
    assert paths[near].link_types == ("similar_to",)
    # A reader with the handle of the call before the cut-over finds vectors of either model.
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    keys = [row_key for row_key, _, _ in app.storage.store.wiki.unnamed(bank, (), 10)]
    with app.storage.store.graph.reader(GraphView(bank)) as reader:
        for model, size in ((OWN, 256), (SMALL, 128)):
            vectors = reader.memory_links.vectors(keys, model)
            assert {key: len(vector) for key, vector in vectors.items()} == dict.fromkeys(keys, 4 * size)
    await app.close()


async def test_near_vectors_are_those_of_memories_in_the_range_of_retains(app: App) -> None:
    await say(app, "Alice Smith keeps the spare key of the house under the blue mat.")
    await asyncio.sleep(0.01)
    between = round(time.time() * 1e3)
    await asyncio.sleep(0.01)
    await say(app, "The spare key of the house is kept under the blue mat.")
    assert len((await proposed(app))[0]) == 2
    assert len((await proposed(app, filters=StoreFilters(retained_range=(None, between))))[0]) == 1
    # Of the index alone, before the rows are read again.
    await settled(app)
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    keys = [row_key for row_key, _, _ in app.storage.store.wiki.unnamed(bank, (), 10)]
    with app.storage.store.graph.reader(GraphView(bank)) as reader:
        index, core = app.storage.registry.peek(bank), app.storage.core
        for filters, count in ((CURRENT, 1), (StoreFilters(retained_range=(None, between)), 0)):
            assert len(NearMemories(core, index, reader, filters).of(keys[:1])[keys[0]]) == count


async def test_causes_are_followed_like_other_stated_links(app: App) -> None:
    stated = await say(app, "Alice Smith resigned because Acme Corp moved to Paris.")
    cause = await say(app, "Acme Corp bought the old mill.")
    found, paths = await proposed(app, "why did Alice Smith resign?")
    assert ids(found)[:2] == [stated, cause]
    assert paths[cause].entity_ids == (ALICE, ACME)
    assert paths[cause].link_types in {("caused_by",), ("co_occurs_with",)}


async def test_the_trace_of_a_recall_tells_the_memory_on_the_way(app: App) -> None:
    named = await say(app, "Alice Smith is here.", session_id="one")
    after = await say(app, "It is under the mat.", session_id="one")
    await settled(app)
    result = await app.gate.call(ME, Recall(RecallQuery(QUESTION, BANK)))
    assert result.trace is not None
    assert MemoryPath(after, (ALICE,), ("next_to",), BANK, named) in result.trace.via


# Fields of the bridge that the filter excludes, of the two other memories, and the filter.
EXCLUDED: dict[str, tuple[dict[str, object], dict[str, object], dict[str, object]]] = {
    "any tag": ({"tags": ("private",)}, {"tags": ("open", "red")}, {"tags": ("open", "blue")}),
    "all tags": (
        {"tags": ("open",)},
        {"tags": ("open", "red")},
        {"tags": ("open", "red"), "tag_match": TagMatch.ALL},
    ),
    "no tag": ({"tags": ("private",)}, {}, {"tags": ("private",), "tag_match": TagMatch.NONE}),
    "fact type": ({"fact_type": "opinion"}, {"fact_type": "world"}, {"fact_types": ("world",)}),
    "session": ({"session_id": "one"}, {"session_id": "two"}, {"session_id": "two"}),
    "text": ({"metadata": {"team": "red"}}, {"metadata": {"team": "blue"}}, {"metadata": {"team": "blue"}}),
    "whole number": ({"metadata": {"n": 1.5}}, {"metadata": {"n": 2, "t": "x"}}, {"metadata": {"n": 2}}),
    "fraction": ({"metadata": {"n": 2}}, {"metadata": {"n": 1.5}}, {"metadata": {"n": 1.5}}),
    "truth": ({"metadata": {"on": False}}, {"metadata": {"on": True}}, {"metadata": {"on": True}}),
    "text of a number": ({"metadata": {"n": 2}}, {"metadata": {"n": "2"}}, {"metadata": {"n": "2"}}),
    "time": (
        {"occurred_at": NOON - timedelta(days=1)},
        {"occurred_at": NOON},
        {"time_range": TimeRange(NOON, NOON)},
    ),
    "validity": (
        {"valid_until": NOON - timedelta(days=1)},
        {"valid_until": NOON + timedelta(days=1)},
        {"valid_at": NOON},
    ),
}


@pytest.mark.parametrize("name", EXCLUDED)
async def test_a_memory_outside_the_filter_connects_nothing(app: App, name: str) -> None:
    bridge, others, wanted = EXCLUDED[name]
    between = await say(app, "Alice Smith works at Acme Corp.", **bridge)
    named = await say(app, "Alice Smith likes tea.", **others)
    for number in range(link_expansion.DISTANCE):
        # So that it is no neighbour in a session.
        await say(app, f"Turn {number}.", **others)
    linked = await say(app, "Acme Corp stores every key in the red cabinet.", **others)
    await settled(app)
    found = await app.gate.call(ME, Recall(RecallQuery(QUESTION, BANK, **wanted)))  # type: ignore[arg-type]
    graph = {hit.memory_id for hit in found.hits if any(arm.arm == "graph" for arm in hit.arms)}
    assert named in graph
    assert graph.isdisjoint({between, linked})
    # The same without the filter, so that it is what makes the difference.
    found = await app.gate.call(ME, Recall(RecallQuery(QUESTION, BANK)))
    graph = {hit.memory_id for hit in found.hits if any(arm.arm == "graph" for arm in hit.arms)}
    assert {between, named, linked} <= graph


async def test_other_ids_and_times_connect_nothing(app: App) -> None:
    named = await say(app, "Alice Smith likes tea.")
    linked = await say(app, "Acme Corp stores every key in the red cabinet.")
    await asyncio.sleep(0.01)
    earlier = round(time.time() * 1e3)
    await asyncio.sleep(0.01)
    between = await say(app, "Alice Smith works at Acme Corp.")
    assert set(ids((await proposed(app))[0])) == {named, linked, between}
    chosen = StoreFilters(memory_ids=(named, linked))
    assert ids((await proposed(app, filters=chosen))[0]) == [named]
    assert ids((await proposed(app, filters=StoreFilters(memory_ids=("nonsense",))))[0]) == []
    assert ids((await proposed(app, filters=StoreFilters(as_of=earlier)))[0]) == [named]
    assert ids((await proposed(app, filters=StoreFilters(retained_range=(None, earlier))))[0]) == [named]


async def test_a_link_of_a_caller_is_followed_whatever_the_filter_and_only_while_it_holds(app: App) -> None:
    named = await say(app, "Alice Smith likes tea.", tags=("open",))
    linked = await say(app, "Bob Miller has the key.", tags=("open",))
    await settled(app)
    link = NewEntityLink(ALICE, BOB, "trusts", valid_from=NOON)
    await app.gate.call(ME, CreateEntityLink(BANK, [link]))
    wanted = StoreFilters(tags=("open",))
    assert ids((await proposed(app, filters=wanted))[0]) == [named, linked]
    past = replace(wanted, valid_at=round(NOON.timestamp() * 1e3) - 1)
    assert ids((await proposed(app, filters=past))[0]) == [named]


async def test_a_hidden_turn_is_passed_over(app: App) -> None:
    named = await say(app, "Alice Smith is here.", session_id="one", tags=("open",))
    await say(app, "A secret.", session_id="one", tags=("private",))
    after = await say(app, "It is under the mat.", session_id="one", tags=("open",))
    found, _ = await proposed(app, filters=StoreFilters(tags=("open",)))
    assert ids(found) == [named, after]


async def test_banks_do_not_meet(app: App) -> None:
    await say(app, "Alice Smith is here.")
    assert await proposed(app, bank="other") == ([], {})
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    foreign = GraphView(replace(bank, tenant="other"))
    with pytest.raises(BankNotFound), app.storage.store.graph.reader(foreign):
        pass


async def test_the_sides_of_a_comparison_take_turns(app: App) -> None:
    bob = [await say(app, f"Bob Miller has {things}.") for things in ("a boat", "two dogs")]
    alice = [await say(app, f"Alice Smith has {number} books.") for number in range(20)]
    both = await say(app, "Alice Smith met Bob Miller.")
    found, _ = await proposed(app, "compare Alice Smith and Bob Miller")
    assert ids(found)[:5] == [both, alice[-1], bob[-1], alice[-2], bob[-2]]
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    # Without a comparison who is mentioned this often tells nothing.
    assert ids((await proposed(app, "where does Alice Smith read?"))[0]) == []


async def test_work_is_bounded_by_the_budget(app: App) -> None:
    await say(app, "Alice Smith met Bob Miller, Carla Jones, Dan Brown and Eve Adams in Paris.")
    await settled(app)
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    with app.storage.store.graph.reader(GraphView(bank)) as reader:
        (key,) = reader.keys([ALICE]).values()
        whole = spread(reader, [key], depth=2)
        some = spread(reader, [key], depth=2, budget=Budget(2))
        late = spread(reader, [key], depth=2, budget=Budget(deadline=time.monotonic()))
    assert len(whole.reached) == 6
    assert not whole.truncated
    assert (len(some.reached), some.truncated) == (3, True)
    assert (len(late.reached), late.truncated) == (1, True)


async def test_a_hub_costs_what_its_newest_mentions_do(app: App) -> None:
    await say(app, "Alice Smith met Bob Miller.", tags=("open",))
    await settled(app)
    work = [await steps(app, filters) for filters in (CURRENT, StoreFilters(tags=("none",)))]
    await copy(app, 200)
    small = [await steps(app, filters) for filters in (CURRENT, StoreFilters(tags=("none",)))]
    await copy(app, 10_000)
    large = [await steps(app, filters) for filters in (CURRENT, StoreFilters(tags=("none",)))]
    assert small[0] > work[0]
    assert large[0] < 1.1 * small[0]
    # With a filter that nothing passes, a bounded number of mentions is looked at: a fifth of them all.
    assert large[1] < 11 * small[1]


async def steps(app: App, filters: StoreFilters) -> int:
    """Hundreds of steps of SQLite's machine in a comparison of the two."""
    count = 0

    def counted() -> bool:
        nonlocal count
        count += 1
        return False

    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    view = GraphView(bank)
    with app.storage.store.graph.reader(view) as reader:
        connection = reader._connection
    connection.set_progress_handler(counted, 100)
    try:
        query = ArmQuery("default", BANK, "Alice Smith or Bob Miller?", None, filters, 100)
        app.stages._graph_arm._search(bank, query, math.inf)
    finally:
        connection.set_progress_handler(None)
    return count


async def copy(app: App, count: int) -> None:
    """Copies of the first memory, with what it mentions."""

    def work(transaction: object) -> None:
        connection = transaction.connection  # type: ignore[attr-defined]
        ((first, last),) = connection.execute("SELECT min(row_key), max(row_key) FROM memories").fetchall()
        for table in ("memories", "contents", "entity_mentions", "tags"):
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            changed = {"row_key": "?2 + n.n", "memory_id": "'copy-' || (?2 + n.n)"}
            values = ", ".join(changed.get(one, f"t.{one}") for one in columns)
            connection.execute(
                "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)"  # noqa: S608 - our names
                f" INSERT INTO {table} SELECT {values} FROM n, {table} t WHERE t.row_key = ?3",
                (count, last, first),
            )

    await app.storage.store._writer.submit(work)


async def test_the_best_memories_alone_lead_on_and_few_are_added(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_expansion, "SEEDS", 1)
    monkeypatch.setattr(link_expansion, "MOST_ADDED", 1)
    first = await say(app, "Alice Smith is here.", session_id="one")
    await say(app, "It is under the mat.", session_id="one")
    second = await say(app, "Alice Smith is there.", session_id="two")
    beside = [await say(app, text, session_id="two") for text in ("Under the roof.", "By the door.")]
    found, _ = await proposed(app)
    assert ids(found) == [second, first, beside[0]]
    assert neighbors.DECAY == 0.6
