"""The graph arm proposes memories around the entities of a question, within the filters and the time of the recall."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from astrocyte.api.requests import Explain, MergeEntities, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import ExplainQuery, MemoryHit, MemoryPath, RecallQuery, RecallResult, RetainItem
from astrocyte.pipelines.search.arm_paths import PathList
from astrocyte.providers.stages import ArmQuery
from astrocyte.providers.storage import CURRENT
from harness.serving import serving
from samples.entity_graphs import BANK, ME, drop, say, settled

ALICE, ACME = "person:alice-smith", "org:acme-corp"
QUESTION = "where does Alice Smith's colleague keep the key?"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = App(
        Settings.from_mapping({"data_dir": str(tmp_path), "entity_graph": {"recall_weight": 1.0, "recall_seconds": 30}})
    )
    yield app
    await app.close()


async def recall(app: App, question: str, **fields: object) -> RecallResult:
    await settled(app)
    return await app.gate.call(ME, Recall(RecallQuery(question, BANK, **fields)))  # type: ignore[arg-type]


def by_graph(result: RecallResult) -> list[MemoryHit]:
    """The hits that the arm proposed, by its rank."""
    ranked = [(arm.rank, hit) for hit in result.hits for arm in hit.arms if arm.arm == "graph"]
    return [hit for _, hit in sorted(ranked, key=lambda one: one[0])]


async def test_memories_of_linked_entities_are_proposed_after_those_of_the_named_one(app: App) -> None:
    named = await say(app, "Alice Smith works at Acme Corp.")
    linked = await say(app, "Acme Corp stores every key in the red cabinet.")
    await say(app, "The weather was fine at the lake.")
    result = await recall(app, QUESTION)
    assert [hit.memory_id for hit in by_graph(result)] == [named, linked]
    assert result.trace is not None
    assert "graph" in (result.trace.strategies_used or ())


async def test_a_question_without_a_known_entity_has_no_proposals(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    assert by_graph(await recall(app, "where does Bob Miller keep the key?")) == []
    assert by_graph(await recall(app, "where is the key?")) == []


async def test_filters_and_as_of_hold(app: App) -> None:
    first = await say(app, "Alice Smith works at Acme Corp.", tags=("old",))
    await settled(app)
    await asyncio.sleep(0.01)
    between = datetime.now(UTC)
    await asyncio.sleep(0.01)
    await say(app, "Acme Corp stores every key in the red cabinet.", tags=("new",))
    assert [hit.memory_id for hit in by_graph(await recall(app, QUESTION, tags=("old",)))] == [first]
    assert [hit.memory_id for hit in by_graph(await recall(app, QUESTION, as_of=between))] == [first]


async def test_a_forgotten_memory_neither_appears_nor_connects(app: App) -> None:
    bridge = await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Acme Corp stores every key in the red cabinet.")
    kept = await say(app, "Alice Smith lives in Paris.")
    assert len(by_graph(await recall(app, QUESTION))) == 3
    await drop(app, bridge)
    assert [hit.memory_id for hit in by_graph(await recall(app, QUESTION))] == [kept]


async def test_both_sides_of_a_comparison_are_anchors(app: App) -> None:
    ids = [await say(app, f"{name} likes the sea.") for name in ("Alice Smith", "Bob Miller", "Carla Jones")]
    found = by_graph(await recall(app, "Alice Smith vs Bob Miller: who is older?"))
    assert {hit.memory_id for hit in found} == set(ids[:2])


async def test_without_a_weight_the_arm_does_not_run(tmp_path: Path) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    await say(app, "Alice Smith works at Acme Corp.")
    assert by_graph(await recall(app, QUESTION)) == []
    await app.close()


@pytest.mark.parametrize(
    ("question", "runs"),
    [
        ("compare Alice Smith and Bob Miller", True),
        ("Alice Smith or Bob Miller?", True),
        ("how does Alice Smith know Bob Miller?", True),
        ("where does Alice Smith keep the key?", False),
    ],
)
async def test_the_arm_runs_for_the_intents_that_are_set(tmp_path: Path, question: str, runs: bool) -> None:
    graph = {"recall_weight": 1.0, "recall_seconds": 30, "recall_intents": ["comparative", "relational"]}
    app = App(Settings.from_mapping({"data_dir": str(tmp_path), "entity_graph": graph}))
    for name in ("Alice Smith", "Bob Miller"):
        await say(app, f"{name} likes the sea.")
    assert bool(by_graph(await recall(app, question))) is runs
    await app.close()


async def test_the_trace_names_the_path_to_each_hit_of_the_arm(app: App) -> None:
    named = await say(app, "Alice Smith works at Acme Corp.")
    linked = await say(app, "Acme Corp stores every key in the red cabinet.")
    other = await say(app, "The weather was fine at the lake.")
    result = await recall(app, QUESTION)
    assert result.trace is not None
    paths = {path.memory_id: path for path in result.trace.via}
    assert paths == {
        named: MemoryPath(named, (ALICE,), (), BANK),
        linked: MemoryPath(linked, (ALICE, ACME), ("works_at",), BANK),
    }
    assert [path.memory_id for path in result.trace.via] == [
        hit.memory_id for hit in result.hits if hit in by_graph(result)
    ]
    asked = ExplainQuery(RecallQuery(QUESTION, BANK), (linked, other))
    told = (await app.gate.call(ME, Explain(asked))).explanations
    assert [one.via for one in told] == [paths[linked], None]


async def test_a_path_names_an_entity_by_the_name_that_it_was_merged_into(app: App) -> None:
    await say(app, "Bob Miller sat beside Alice Smith at noon.")
    bees = await say(app, "Rob Hansen keeps bees.")
    await settled(app)
    await app.gate.call(ME, MergeEntities(BANK, ("person:rob-hansen",), "person:bob-miller"))
    result = await recall(app, QUESTION)
    assert result.trace is not None
    (path,) = [path for path in result.trace.via if path.memory_id == bees]
    assert (path.entity_ids, path.link_types) == ((ALICE, "person:bob-miller"), ("co_occurs_with",))


async def test_without_a_hit_of_the_arm_there_is_no_path(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Acme Corp stores every key in the red cabinet.")
    for question, fields in (("where is the key?", {}), (QUESTION, {"tags": ("none",)})):
        result = await recall(app, question, **fields)
        assert result.trace is not None
        assert result.trace.via == ()


async def test_paths_are_of_their_bank_and_go_over_the_wire() -> None:
    async with serving(entity_graph={"recall_weight": 1.0, "recall_seconds": 30}) as served:
        ids = {}
        for bank in (BANK, "other"):
            # Another text in each bank: what two banks have alike is shown once.
            for text in (f"Alice Smith works at Acme Corp, say the {bank}.", f"Acme Corp keeps the keys of {bank}."):
                found = await served.app.gate.call(ME, Retain(bank, RetainItem(text)))
                ids[found.memory_id] = bank
        await settled(served.app)
        for query in (RecallQuery(QUESTION, BANK), RecallQuery(QUESTION, banks=(BANK, "other"))):
            near = await served.app.gate.call(ME, Recall(query))
            far = await served.backend.call(ME, Recall(query))
            assert near.trace is not None
            assert far.trace is not None
            assert far.trace.via == near.trace.via
            assert {path.memory_id: path.bank_id for path in near.trace.via} == {
                memory_id: bank for memory_id, bank in ids.items() if bank in (query.bank_id, *query.banks)
            }


async def test_a_lower_limit_cuts_the_list_and_changes_no_path(app: App) -> None:
    for place in range(6):
        text = "Alice Smith opened the meeting." if place == 2 else f"Item {place} of the agenda was the budget."
        await app.gate.call(ME, Retain(BANK, RetainItem(text, session_id="meeting")))
    await recall(app, QUESTION)
    arm = app.stages._graph_arm
    assert arm is not None
    found = []
    for limit in range(1, 7):
        proposals = await arm.search(ArmQuery(ME.tenant, BANK, QUESTION, None, CURRENT, limit), deadline=math.inf)
        assert isinstance(proposals, PathList)
        found.append(proposals)
    whole = found[-1]
    # The memory that mentions the entity, and the turns beside it.
    assert len(whole) == 5
    assert {path.through_memory_id for path in whole.paths.values()} == {"", whole[0][0]}
    for limit, cut in enumerate(found, start=1):
        assert cut == whole[:limit]
        assert dict(cut.paths) == {memory_id: whole.paths[memory_id] for memory_id, _ in cut}
