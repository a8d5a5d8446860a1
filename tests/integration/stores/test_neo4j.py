"""Memories whose entities are followed into Neo4j, and found with its help."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    BatchRetain,
    CreateEntityLink,
    DeleteBank,
    DeleteEntityLink,
    Forget,
    GetBank,
    GetEntity,
    MergeEntities,
    RebuildGraph,
    Recall,
    Retain,
    SplitEntity,
    UpdateEntity,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings, load_settings
from astrocyte.errors import StoreError
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, NewEntityLink, RecallQuery, RetainItem
from astrocyte.pipelines.external_stores import sync
from astrocyte.providers.storage import Attributes, EntityLink
from astrocyte.providers.storage.neo4j import create_graph_store, database
from external import neo4j_server
from external.tcp_forwarder import Forwarder

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

ANA = Caller("default", "user:ana")
# What the documentation gives, with the address of the test's server.
SETTINGS = """
data_dir: {directory}
graph_store: neo4j
graph_store_config:
  uri: {uri}
  user: neo4j
  password: ${{NEO4J_PASSWORD}}
  label_prefix: Integration
entity_resolution:
  enabled: true
  similarity_threshold: 0.8
  confirmation_threshold: 0.75
outside_stores: {{recall_seconds: 60, compare_seconds: 0.5}}
"""


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[App]:
    uri = neo4j_server.options("Integration")["uri"]
    monkeypatch.setenv("NEO4J_PASSWORD", neo4j_server.PASSWORD)
    path = tmp_path / "astrocyte.yaml"
    path.write_text(SETTINGS.format(directory=tmp_path / "data", uri=uri))
    app = App(load_settings(path))
    yield app
    await app.gate.close()


async def settled(app: App) -> None:
    bank = await app.gate.call(ANA, GetBank("notes"))
    assert app.storage.external is not None
    await app.storage.external.confirm(bank, bank.position)


async def names(app: App) -> list[str]:
    """The entities of this server's banks, as they stand in Neo4j."""
    query = "MATCH (e:IntegrationEntity) WHERE e.bank_id STARTS WITH $server RETURN e.name AS name ORDER BY name"
    return [record["name"] for record in await _read(query, {"server": app.storage.store.following.installation})]


async def _read(query: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    given = database.Database(database.Neo4jOptions.model_validate(neo4j_server.options("Integration")))
    try:
        return await given.read(query, values)
    finally:
        await given.close()


async def test_entities_go_out_lead_to_memories_and_are_erased(app: App) -> None:
    texts = ["Mara Silva met Tom Reed.", "Tom Reed repairs kites.", "A kettle stands in the kitchen."]
    results = await app.gate.call(ANA, BatchRetain("notes", [RetainItem(text) for text in texts]))
    await settled(app)
    assert await names(app) == ["Mara Silva", "Tom Reed"]

    # The second memory has no word of the question: the way to it is the name beside that of the question.
    found = await app.gate.call(ANA, Recall(RecallQuery("Where is Mara Silva?", "notes", include_trace=True)))
    assert found.trace is not None
    assert found.trace.degraded == ""
    led = {hit.memory_id for hit in found.hits if "graph_store" in {arm.arm for arm in hit.arms}}
    assert led == {results[0].memory_id, results[1].memory_id}

    first = str(results[0].memory_id)
    changed = MemoryUpdate(first, frozenset({"content"}), content="Ines Lopes met Tom Reed.")
    await app.gate.call(ANA, UpdateMemory("notes", changed))
    await settled(app)
    # The version of the past is still there for recalls with `as_of`.
    assert await names(app) == ["Ines Lopes", "Mara Silva", "Tom Reed"]

    await app.gate.call(ANA, Forget("notes", ForgetSelector(memory_ids=(first,)), compliance=True))
    assert await names(app) == ["Tom Reed"]


async def test_a_deleted_bank_goes_and_another_stays(app: App) -> None:
    for bank, text in (("notes", "Mara Silva met Tom Reed."), ("other", "Ines Lopes repairs kites.")):
        await app.gate.call(ANA, Retain(bank, RetainItem(text)))
    await settled(app)
    await app.gate.call(ANA, DeleteBank("notes"))
    async with asyncio.timeout(60):
        while await names(app) != ["Ines Lopes"]:  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.05)


async def link(app: App, source: str, target: str, link_type: str) -> str:
    made = await app.gate.call(
        ANA, CreateEntityLink("notes", [NewEntityLink(source, target, link_type, evidence="a chart")])
    )
    return str(made[0].link_id)


async def graph(app: App) -> tuple[list[str], list[str]]:
    """Links and aliases of this server's banks, as other programs read them, once they are up to date."""
    assert await app.pipelines.graph.follower.caught_up(60.0)
    await settled(app)
    server = {"server": app.storage.store.following.installation}
    links = await _read(
        "MATCH (s:IntegrationEntity)-[l:Integration_LINKS]->(t:IntegrationEntity) WHERE l.bank_id STARTS WITH $server"
        " AND l.walked RETURN s.name + ' ' + l.link_type + ' ' + t.name + ': ' + l.evidence AS link ORDER BY link",
        server,
    )
    aliases = await _read(
        "MATCH (s:IntegrationEntity)-[a:Integration_ALIAS_OF]->(t:IntegrationEntity)"
        " WHERE a.bank_id STARTS WITH $server RETURN s.name + ' is ' + t.name AS alias ORDER BY alias",
        server,
    )
    return [row["link"] for row in links], [row["alias"] for row in aliases]


MARA, TOM, INES = "person:mara-silva", "person:tom-reed", "person:ines-lopes"


async def test_what_callers_make_of_the_graph_goes_out_and_leaves(app: App) -> None:
    texts = ["Mara Silva has a lantern.", "Tom Reed repairs kites.", "Ines Lopes moved to the mill."]
    stored = await app.gate.call(ANA, BatchRetain("notes", [RetainItem(text) for text in texts]))
    made = await link(app, MARA, TOM, "reports_to")
    last = await link(app, TOM, INES, "knows")
    await app.gate.call(ANA, MergeEntities("notes", [INES], TOM, "the same"))
    await app.gate.call(ANA, UpdateEntity("notes", TOM, name="Thomas Reed", aliases=["The Miller"]))
    assert await graph(app) == (
        ["Mara Silva reports_to Thomas Reed: a chart", "Thomas Reed knows Ines Lopes: a chart"],
        ["Ines Lopes is Thomas Reed"],
    )
    assert await names(app) == ["Ines Lopes", "Mara Silva", "Thomas Reed"]

    # No word of the question is in the memories: the caller's name leads to both of the group.
    found = await app.gate.call(ANA, Recall(RecallQuery("Where is The Miller?", "notes", include_trace=True)))
    led = {hit.memory_id for hit in found.hits if "graph_store" in {arm.arm for arm in hit.arms}}
    assert {stored[1].memory_id, stored[2].memory_id} <= led

    await app.gate.call(ANA, SplitEntity("notes", INES, "two people"))
    await app.gate.call(ANA, DeleteEntityLink("notes", made))
    await app.gate.call(ANA, UpdateEntity("notes", TOM, name="", aliases=[]))
    assert await graph(app) == (["Tom Reed knows Ines Lopes: a chart"], [])
    await app.gate.call(ANA, RebuildGraph("notes"))
    assert await graph(app) == (["Tom Reed knows Ines Lopes: a chart"], [])
    assert await names(app) == ["Ines Lopes", "Mara Silva", "Tom Reed"]

    # A link of a caller keeps both of its ends when the memory goes, until it goes itself.
    erased = ForgetSelector(memory_ids=(str(stored[1].memory_id),))
    await app.gate.call(ANA, Forget("notes", erased, compliance=True))
    assert await graph(app) == (["tom reed knows Ines Lopes: a chart"], [])
    await app.gate.call(ANA, DeleteEntityLink("notes", last))
    assert await graph(app) == ([], [])
    assert await names(app) == ["Ines Lopes", "Mara Silva"]


async def test_a_server_that_was_away_converges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "REST_SECONDS", 0.05)
    monkeypatch.setenv("NEO4J_PASSWORD", neo4j_server.PASSWORD)
    road = Forwarder(str(neo4j_server.options("Integration")["uri"]))
    await road.up()
    path = tmp_path / "astrocyte.yaml"
    breaker = "escalation: {circuit_breaker: {recovery_timeout_seconds: 0.1}}\n"
    path.write_text(SETTINGS.format(directory=tmp_path / "data", uri=road.uri) + breaker)
    app = App(load_settings(path))
    texts = ["Mara Silva has a lantern.", "Tom Reed repairs kites.", "Ines Lopes moved to the mill."]
    stored = await app.gate.call(ANA, BatchRetain("notes", [RetainItem(text) for text in texts]))
    gone = await link(app, MARA, TOM, "reports_to")
    assert await graph(app) == (["Mara Silva reports_to Tom Reed: a chart"], [])

    await road.down()
    await link(app, TOM, INES, "knows")
    await app.gate.call(ANA, MergeEntities("notes", [INES], TOM, "the same"))
    await app.gate.call(ANA, DeleteEntityLink("notes", gone))
    await app.gate.call(ANA, Forget("notes", ForgetSelector(memory_ids=(str(stored[0].memory_id),))))
    # Callers have what they asked for, and the server has nothing of it.
    assert (await app.gate.call(ANA, GetEntity("notes", INES))).id == TOM
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(settled(app), 0.5)
    seen = await _read(
        "MATCH ()-[l:Integration_LINKS]->() WHERE l.bank_id STARTS WITH $server RETURN l.link_type AS kind",
        {"server": app.storage.store.following.installation},
    )
    assert [row["kind"] for row in seen] == ["reports_to"]

    await road.up()
    assert await graph(app) == (["Tom Reed knows Ines Lopes: a chart"], ["Ines Lopes is Tom Reed"])
    assert await names(app) == ["Ines Lopes", "Tom Reed"]
    await app.gate.close()
    await road.down()


async def test_a_spelling_leaves_with_the_memory_that_had_it() -> None:
    store = create_graph_store(neo4j_server.options("Spelling"))
    own = [
        EntityLink(name, "notes", MARA, name, name.casefold(), "PERSON", Attributes(name, 1, known_from))
        for known_from, name in enumerate(("Mara Silva", "MARA SILVA"))
    ]
    await store.link_memories_to_entities(own)
    await store.delete(["MARA SILVA"], "notes")
    given = database.Database(database.Neo4jOptions.model_validate(neo4j_server.options("Spelling")))
    found = await given.read("MATCH (e:SpellingEntity) RETURN e.name AS name", {})
    assert [row["name"] for row in found] == ["Mara Silva"]
    await given.close()
    await store.close()


async def test_nodes_of_an_earlier_version_are_filled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    options = neo4j_server.options("Earlier")
    with monkeypatch.context() as earlier:
        earlier.setattr(database, "VERSION", 1)
        made = create_graph_store(options)
        await made.advance("notes", 3)
        await made.close()
    for _ in range(2):
        store = create_graph_store(options)
        # Ahead of every bank, so that its server drops what there is.
        assert await store.position("notes") > 2**60
        await store.close()
    store = create_graph_store(options)
    await store.advance("notes", 4)
    await store.close()
    store = create_graph_store(options)
    assert await store.position("notes") == 4
    await store.close()


async def test_a_server_that_is_not_there_costs_nothing_but_its_list() -> None:
    # A port of the discard service, which nobody listens on.
    options = {"uri": "bolt://127.0.0.1:9", "password": "x", "connect_seconds": 0.2}
    values = {"vector_store": "in_memory", "graph_store": "neo4j", "graph_store_config": options}
    app = App(Settings.from_mapping({**values, "outside_stores": {"recall_seconds": 0.1}}))
    async with asyncio.timeout(30):
        await app.gate.call(ANA, Retain("notes", RetainItem("Mara Silva has a lantern")))
        found = await app.gate.call(ANA, Recall(RecallQuery("Mara Silva", "notes", include_trace=True)))
        assert found.trace is not None
        assert (len(found.hits), found.trace.degraded) == (1, "graph_store")
        await app.gate.close()


async def test_a_wrong_password_is_a_store_that_is_not_well() -> None:
    store = create_graph_store({**neo4j_server.options("Integration"), "password": "wrong"})
    assert not await store.health()
    await store.close()


async def test_nodes_of_a_newer_version_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    options = neo4j_server.options("Newer")
    with monkeypatch.context() as newer:
        newer.setattr(database, "VERSION", database.VERSION + 1)
        made = create_graph_store(options)
        await made.advance("notes", 3)
        await made.close()
    store = create_graph_store(options)
    with pytest.raises(StoreError, match="newer version"):
        await store.position("notes")
    assert not await store.health()
    # The control: for a store of that version nothing is wrong.
    monkeypatch.setattr(database, "VERSION", database.VERSION + 1)
    assert await store.position("notes") == 3
    await store.close()


@pytest.mark.parametrize("required", [True, False])
def test_without_java_the_tests_are_skipped_only_where_they_may_be(
    monkeypatch: pytest.MonkeyPatch, required: bool
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv(neo4j_server.REQUIRED, "1" if required else "")
    with pytest.raises((pytest.fail.Exception if required else pytest.skip.Exception), match="java and mvn"):
        neo4j_server.or_skip()
