"""The entity graph through the gate: the examples of the API reference, views of time, forgetting, and changes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from astrocyte import Astrocyte
from astrocyte.api.requests import (
    CreateEntityLink,
    DeleteBank,
    DeleteEntityLink,
    ExportGraph,
    FindPath,
    GetEntity,
    GetGraphStats,
    ListAuditEvents,
    ListEntities,
    MergeEntities,
    Neighbors,
    PlaceHold,
    RebuildGraph,
    SearchEntities,
    SplitEntity,
    UndeleteMemory,
    UpdateEntity,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    AlreadyExists,
    Conflict,
    FailedPrecondition,
    LegalHoldActive,
    NotFound,
    PiiRejected,
    RequestIdReused,
)
from astrocyte.model import GraphEntity, GraphFormat, LinkOrigin, MemoryUpdate, NewEntityLink
from astrocyte.types import EntityLink
from oracles.byte_scans import files_with
from samples.entity_graphs import BANK, ME, counted, derived, drop, say, settled

ALICE, JOHNSON, BOB, ACME = "person:alice-smith", "person:alice-johnson", "person:bob-miller", "org:acme-corp"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    yield app
    await app.close()


async def entity(app: App, entity_id: str, as_of: datetime | None = None) -> GraphEntity:
    return await app.gate.call(ME, GetEntity(BANK, entity_id, as_of))


async def ids(app: App, as_of: datetime | None = None) -> list[str]:
    return [one.id for one in (await app.gate.call(ME, ListEntities(BANK, as_of=as_of))).entities]


async def test_the_examples_of_the_reference_run(tmp_path: Path) -> None:
    async with Astrocyte.from_config_dict({"data_dir": str(tmp_path)}) as brain:
        await brain.retain("Alice Smith (formerly Alice Johnson) joined the platform team.", bank_id="people")
        entities = await brain.graph_search("Alice", bank_id="people", limit=5)
        assert [(c.id, c.name, c.entity_type) for c in entities] == [(ALICE, "Alice Smith", "PERSON")]
        assert entities[0].aliases == ("Alice Johnson",)
        hits = await brain.graph_neighbors(entity_ids=["person:alice-smith"], bank_id="people", limit=20)
        assert [h.text for h in hits] == ["Alice Smith (formerly Alice Johnson) joined the platform team."]
        await brain.retain("Bob Miller is here.", bank_id="people")
        link = EntityLink(
            entity_a="person:alice-smith",
            entity_b="person:bob-miller",
            link_type="reports_to",
            evidence="Alice said so",
            confidence=0.95,
        )
        stored = await brain.create_entity_link(link, bank_id="people")
        assert (stored.link_type, stored.confidence, stored.origin) == ("reports_to", 0.95, LinkOrigin.CALLER)
        assert stored.created_at is not None


async def test_a_stated_relation_is_a_link_with_its_evidence(app: App) -> None:
    memory = await say(app, "Last year Alice Smith moved. Alice Smith works at Acme Corp.")
    found = await app.gate.call(ME, Neighbors(BANK, [ALICE], link_types=["works_at"]))
    (_, other) = found.entities
    assert (other.entity.id, other.depth) == (ACME, 1)
    assert other.via is not None
    assert (other.via.entity_a, other.via.entity_b, other.via.memory_id) == (ALICE, ACME, memory)
    assert other.via.evidence == "Alice Smith works at Acme Corp"
    assert 0.0 < other.via.confidence <= 1.0


async def test_neighbours_reach_over_shared_memories_and_stop_at_the_depth(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    await say(app, "Bob Miller sat beside Carla Jones.")
    near = await app.gate.call(ME, Neighbors(BANK, [ALICE], max_depth=1))
    assert [(one.entity.id, one.depth) for one in near.entities] == [(ALICE, 0), (BOB, 1)]
    far = await app.gate.call(ME, Neighbors(BANK, [ALICE], max_depth=2))
    assert [one.entity.id for one in far.entities] == [ALICE, BOB, "person:carla-jones"]
    assert [hit.depth for hit in far.memories] == [0, 1]
    scores = [one.score for one in far.entities]
    assert scores == sorted(scores, reverse=True)


async def test_an_update_replaces_the_mentions_and_as_of_shows_the_old_ones(app: App) -> None:
    memory = await say(app, "Alice Smith sat beside Bob Miller.")
    await settled(app)
    before = datetime.now(UTC)
    await a_moment_later(app)
    update = MemoryUpdate(memory, frozenset({"content"}), content="Alice Smith sat beside Carla Jones.")
    await app.gate.call(ME, UpdateMemory(BANK, update))
    assert await ids(app) == [ALICE, "person:carla-jones"]
    assert await ids(app, before) == [ALICE, BOB]
    assert (await entity(app, BOB, before)).mention_count == 1
    with pytest.raises(NotFound):
        await entity(app, BOB)
    assert counted(app)


async def a_moment_later(app: App) -> None:
    """Let the clock of the store go on by a millisecond."""
    start = app.storage.clock()
    while app.storage.clock() <= start + 1:
        await settled(app)


async def test_what_is_forgotten_is_gone_at_once_and_comes_back(app: App) -> None:
    memory = await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Alice Smith sat beside Bob Miller.")
    moment = datetime.now(UTC) + timedelta(seconds=1)
    assert ACME in await ids(app)
    await drop(app, memory)
    assert await ids(app) == [ALICE, BOB]
    # At no time either.
    assert await ids(app, moment) == [ALICE, BOB]
    assert (await entity(app, ALICE)).mention_count == 1
    assert (await app.gate.call(ME, GetGraphStats(BANK))).links_by_type == {}
    await app.gate.call(ME, UndeleteMemory(BANK, memory))
    assert await ids(app) == [ACME, ALICE, BOB]
    assert (await entity(app, ALICE)).mention_count == 2
    assert counted(app)


async def test_a_forgotten_spelling_is_not_shown(app: App) -> None:
    first = await say(app, "ALICE SMITH sat beside Bob Miller.")
    await say(app, "Alice Smith sat beside Bob Miller in Rome.")
    assert (await entity(app, ALICE)).name == "ALICE SMITH"
    await drop(app, first)
    assert (await entity(app, ALICE)).name == "Alice Smith"


async def test_an_erased_memory_leaves_no_entity_word_or_link(app: App) -> None:
    memory = await say(app, "Alice Smith works at Acme Corp.")
    await settled(app)
    assert all(derived(app).values())
    await drop(app, memory, compliance=True)
    await settled(app)
    assert not any(derived(app).values())


async def test_a_callers_link_keeps_an_entity_and_goes_with_its_deletion(app: App) -> None:
    memory = await say(app, "Alice Smith sat beside Bob Miller.")
    (link,) = await app.gate.call(ME, CreateEntityLink(BANK, [NewEntityLink(ALICE, BOB, "married_to")]))
    await drop(app, memory)
    assert await ids(app) == [ALICE, BOB]
    assert (await entity(app, ALICE)).mention_count == 0
    assert await app.gate.call(ME, DeleteEntityLink(BANK, link.link_id)) == link.link_id
    assert await ids(app) == []


async def test_a_deleted_link_is_gone_at_every_time_and_cannot_be_deleted_twice(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    (link,) = await app.gate.call(ME, CreateEntityLink(BANK, [NewEntityLink(ALICE, BOB, "married_to")]))
    moment = datetime.now(UTC) + timedelta(seconds=1)
    await app.gate.call(ME, DeleteEntityLink(BANK, link.link_id, "once"))
    assert await app.gate.call(ME, DeleteEntityLink(BANK, link.link_id, "once")) == link.link_id
    found = await app.gate.call(ME, Neighbors(BANK, [ALICE], link_types=["married_to"], as_of=moment))
    assert [one.entity.id for one in found.entities] == [ALICE]
    with pytest.raises(NotFound):
        await app.gate.call(ME, DeleteEntityLink(BANK, link.link_id))


async def test_a_link_that_a_memory_states_cannot_be_deleted(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    found = await app.gate.call(ME, Neighbors(BANK, [ALICE], link_types=["works_at"]))
    via = found.entities[1].via
    assert via is not None
    with pytest.raises(FailedPrecondition, match="follows from a memory"):
        await app.gate.call(ME, DeleteEntityLink(BANK, via.link_id))


async def test_a_repeated_request_gets_its_first_answer(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    links = [NewEntityLink(ALICE, BOB, "married_to")]
    first = await app.gate.call(ME, CreateEntityLink(BANK, links, "once"))
    assert await app.gate.call(ME, CreateEntityLink(BANK, links, "once")) == first
    with pytest.raises(RequestIdReused):
        await app.gate.call(ME, CreateEntityLink(BANK, [NewEntityLink(BOB, ALICE, "married_to")], "once"))
    with pytest.raises(AlreadyExists):
        await app.gate.call(ME, CreateEntityLink(BANK, links))
    assert (await app.gate.call(ME, GetGraphStats(BANK))).links_by_type == {"married_to": 1}


async def test_validate_only_checks_and_stores_nothing(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    link = NewEntityLink(ALICE, BOB, "married_to")
    assert await app.gate.call(ME, CreateEntityLink(BANK, [link], validate_only=True)) == []
    wrong = NewEntityLink(ALICE, "person:nobody", "married_to")
    with pytest.raises(NotFound):
        await app.gate.call(ME, CreateEntityLink(BANK, [wrong], validate_only=True))
    shown = await app.gate.call(ME, UpdateEntity(BANK, ALICE, name="Ally", validate_only=True))
    assert shown.name == "Alice Smith"
    merged = await app.gate.call(ME, MergeEntities(BANK, [BOB], ALICE, validate_only=True))
    assert merged.merged_ids == ()
    assert (await app.gate.call(ME, GetGraphStats(BANK))).links_by_type == {}


async def test_validity_of_links(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    year = [datetime(number, 1, 1, tzinfo=UTC) for number in range(2018, 2024)]
    links = [
        NewEntityLink(ALICE, BOB, "works_with", valid_from=year[0], valid_until=year[1]),
        NewEntityLink(ALICE, BOB, "works_with", valid_from=year[4]),
    ]
    await app.gate.call(ME, CreateEntityLink(BANK, links))
    for at, there in ((year[0], True), (year[1], True), (year[3], False), (year[5], True)):
        request = FindPath(BANK, ALICE, BOB, link_types=["works_with"], valid_at=at)
        assert bool((await app.gate.call(ME, request)).paths) is there, at


async def test_a_merge_joins_and_a_split_undoes_it(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Bob Miller sat beside Carla Jones.")
    merged = await app.gate.call(ME, MergeEntities(BANK, ["person:carla-jones"], ALICE, "one person"))
    assert (merged.id, merged.merged_ids, merged.mention_count) == (ALICE, ("person:carla-jones",), 2)
    assert merged.aliases == ("Carla Jones",)
    assert (await entity(app, "person:carla-jones")).id == ALICE
    assert await ids(app) == [ACME, ALICE, BOB]
    path = (await app.gate.call(ME, FindPath(BANK, ACME, BOB))).paths[0]
    assert [one.id for one in path.entities] == [ACME, ALICE, BOB]
    apart = await app.gate.call(ME, SplitEntity(BANK, "person:carla-jones", "two people"))
    assert (apart.id, apart.merged_ids) == ("person:carla-jones", ())
    assert await ids(app) == [ACME, ALICE, BOB, "person:carla-jones"]
    assert (await app.gate.call(ME, FindPath(BANK, ACME, BOB))).paths == ()
    with pytest.raises(FailedPrecondition, match="not merged"):
        await app.gate.call(ME, SplitEntity(BANK, "person:carla-jones"))
    again = await app.gate.call(ME, MergeEntities(BANK, ["person:carla-jones"], ALICE))
    assert again.merged_ids == ("person:carla-jones",)


async def test_a_split_holds_against_a_memory_that_states_the_alias(app: App) -> None:
    await say(app, "Alice Smith (formerly Alice Johnson) joined the platform team.")
    assert (await entity(app, JOHNSON)).id == ALICE
    await app.gate.call(ME, SplitEntity(BANK, JOHNSON))
    assert (await entity(app, JOHNSON)).id == JOHNSON
    await say(app, "Alice Smith (formerly Alice Johnson) gave a talk.")
    await app.gate.call(ME, RebuildGraph(BANK))
    await settled(app)
    assert (await entity(app, JOHNSON)).id == JOHNSON


async def test_a_merge_cannot_close_a_circle(app: App) -> None:
    await say(app, "Alice Smith, Bob Miller and Carla Jones met.")
    await app.gate.call(ME, MergeEntities(BANK, [ALICE], BOB))
    await app.gate.call(ME, MergeEntities(BANK, [BOB], "person:carla-jones"))
    with pytest.raises(FailedPrecondition, match="alias of the source"):
        await app.gate.call(ME, MergeEntities(BANK, ["person:carla-jones"], ALICE))
    link = NewEntityLink("person:carla-jones", ALICE, "alias_of")
    with pytest.raises(FailedPrecondition, match="alias of the source"):
        await app.gate.call(ME, CreateEntityLink(BANK, [link]))
    assert await ids(app) == ["person:carla-jones"]


async def test_an_entity_is_updated_under_its_etag(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    before = await entity(app, ALICE)
    changed = await app.gate.call(
        ME, UpdateEntity(BANK, ALICE, "Alice M. Smith", ("Zelda",), {"team": "platform"}, before.etag)
    )
    assert (changed.id, changed.name, changed.aliases) == (ALICE, "Alice M. Smith", ("Zelda",))
    assert changed.metadata == {"team": "platform"}
    with pytest.raises(Conflict):
        await app.gate.call(ME, UpdateEntity(BANK, ALICE, name="Ally", etag=before.etag))
    found = await app.gate.call(ME, SearchEntities(BANK, "zelda"))
    assert [one.id for one in found] == [ALICE]
    cleared = await app.gate.call(ME, UpdateEntity(BANK, ALICE, "", (), {}, changed.etag))
    assert (cleared.name, cleared.aliases, cleared.metadata) == ("Alice Smith", (), {})
    assert await app.gate.call(ME, SearchEntities(BANK, "zelda")) == []


async def test_search_ranks_exact_names_before_parts_and_filters_types(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Alice Smithson sat beside Bob Miller.")
    found = await app.gate.call(ME, SearchEntities(BANK, "alice smith"))
    assert [one.id for one in found] == [ALICE, "person:alice-smithson"]
    assert [one.id for one in await app.gate.call(ME, SearchEntities(BANK, "mith"))] == [ALICE, "person:alice-smithson"]
    assert [one.id for one in await app.gate.call(ME, SearchEntities(BANK, "ac", entity_types=["ORG"]))] == [ACME]
    assert await app.gate.call(ME, SearchEntities(BANK, "acme", entity_types=["PERSON"])) == []
    assert await app.gate.call(ME, SearchEntities(BANK, "??")) == []


async def test_pages_have_every_entity_once(app: App) -> None:
    for number in range(7):
        await say(app, f"Alice Smith sat beside Person{number} Miller.")
    everybody = await ids(app)
    seen: list[str] = []
    token = ""
    while True:
        page = await app.gate.call(ME, ListEntities(BANK, page_size=3, page_token=token))
        seen += [one.id for one in page.entities]
        token = page.next_page_token
        if not token:
            break
    assert seen == everybody
    assert len(seen) == 8


async def test_the_paths_are_the_shortest_and_have_no_entity_twice(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    await say(app, "Bob Miller sat beside Carla Jones.")
    await say(app, "Alice Smith sat beside Dora Stone.")
    await say(app, "Dora Stone sat beside Emil Brown.")
    await say(app, "Emil Brown sat beside Carla Jones.")
    found = await app.gate.call(ME, FindPath(BANK, ALICE, "person:carla-jones", max_paths=5))
    lengths = [len(path.links) for path in found.paths]
    assert lengths == [2, 3]
    for path in found.paths:
        names = [one.id for one in path.entities]
        assert len(set(names)) == len(names) == len(path.links) + 1
        assert [{link.entity_a, link.entity_b} for link in path.links] == [set(pair) for pair in pairwise(names)]
    assert not found.truncated
    near = await app.gate.call(ME, FindPath(BANK, ALICE, "person:carla-jones", max_depth=1))
    assert near.paths == ()


async def test_a_path_between_strangers_is_none_and_to_oneself_empty(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Bob Miller sat beside Carla Jones.")
    assert (await app.gate.call(ME, FindPath(BANK, ALICE, BOB))).paths == ()
    (path,) = (await app.gate.call(ME, FindPath(BANK, ALICE, ALICE))).paths
    assert ([one.id for one in path.entities], path.links) == ([ALICE], ())


async def test_the_export_has_every_entity_and_link(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp. <&>")
    await app.gate.call(ME, UpdateEntity(BANK, ALICE, metadata={"note": 'a "b" <c> &'}))
    lines = "".join([piece async for piece in app.gate.stream(ME, ExportGraph(BANK))]).splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["kind"], row.get("id") or row["link_type"]) for row in rows] == [
        ("entity", ACME),
        ("entity", ALICE),
        ("link", "works_at"),
    ]
    text = "".join([piece async for piece in app.gate.stream(ME, ExportGraph(BANK, GraphFormat.GRAPHML))])
    root = ET.fromstring(text)  # noqa: S314 - our own document
    space = "{http://graphml.graphdrawing.org/xmlns}"
    assert [node.get("id") for node in root.iter(f"{space}node")] == [ACME, ALICE]
    assert [(edge.get("source"), edge.get("target")) for edge in root.iter(f"{space}edge")] == [(ALICE, ACME)]
    assert 'a \\"b\\" <c> &' in "".join(root.itertext())


async def test_changes_and_exports_are_in_the_audit_log(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    (link,) = await app.gate.call(ME, CreateEntityLink(BANK, [NewEntityLink(ALICE, BOB, "married_to")]))
    await app.gate.call(ME, DeleteEntityLink(BANK, link.link_id))
    await app.gate.call(ME, UpdateEntity(BANK, ALICE, name="Ally"))
    await app.gate.call(ME, MergeEntities(BANK, [BOB], ALICE))
    await app.gate.call(ME, SplitEntity(BANK, BOB))
    await app.gate.call(ME, RebuildGraph(BANK))
    async for _ in app.gate.stream(ME, ExportGraph(BANK)):
        pass
    trail = await app.gate.call(ME, ListAuditEvents(BANK))
    assert [str(event.event) for event in trail.events] == [
        "entity_links_created",
        "entity_link_deleted",
        "entity_updated",
        "entities_merged",
        "entity_split",
        "graph_rebuild_started",
        "graph_exported",
    ]
    assert not any("Ally" in str(event.details) or "alice" in str(event.details) for event in trail.events)


async def test_a_hold_on_the_bank_keeps_links_and_merges(app: App) -> None:
    await say(app, "Alice Smith sat beside Bob Miller.")
    (link,) = await app.gate.call(ME, CreateEntityLink(BANK, [NewEntityLink(ALICE, BOB, "married_to")]))
    await app.gate.call(ME, MergeEntities(BANK, [BOB], ALICE))
    await app.gate.call(ME, PlaceHold(BANK, reason="a case"))
    with pytest.raises(LegalHoldActive):
        await app.gate.call(ME, DeleteEntityLink(BANK, link.link_id))
    with pytest.raises(LegalHoldActive):
        await app.gate.call(ME, SplitEntity(BANK, BOB))
    assert (await entity(app, BOB)).id == ALICE


async def test_a_deleted_bank_takes_its_graph_along(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    await app.gate.call(ME, UpdateEntity(BANK, ALICE, name="Ally"))
    await app.gate.call(ME, DeleteBank(BANK))
    await settled(app)
    assert not any(derived(app).values())


async def test_personal_data_in_a_link_is_refused_or_redacted(tmp_path: Path) -> None:
    for action, refused in (("reject", True), ("redact", False)):
        app = App(
            Settings.from_mapping(
                {"data_dir": str(tmp_path / action), "barriers": {"pii": {"mode": "regex", "action": action}}}
            )
        )
        await say(app, "Alice Smith sat beside Bob Miller.")
        request = CreateEntityLink(BANK, [NewEntityLink(ALICE, BOB, "knows", "write to bob@example.com")])
        if refused:
            with pytest.raises(PiiRejected):
                await app.gate.call(ME, request)
        else:
            (made,) = await app.gate.call(ME, request)
            assert "bob@example.com" not in made.evidence
            assert made.evidence.startswith("write to ")
        await app.close()


async def test_without_derivation_the_graph_stays_empty_and_a_rebuild_is_refused(tmp_path: Path) -> None:
    settings = {"data_dir": str(tmp_path), "entity_graph": {"enabled": False, "read_wait_seconds": 0.01}}
    app = App(Settings.from_mapping(settings))
    await say(app, "Alice Smith works at Acme Corp.")
    assert await ids(app) == []
    assert (await app.gate.call(ME, GetGraphStats(BANK))).pending_memories == 1
    with pytest.raises(FailedPrecondition, match=r"entity_graph\.enabled"):
        await app.gate.call(ME, RebuildGraph(BANK))
    await app.close()
    later = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    assert await ids(later) == [ACME, ALICE]
    await later.close()


async def test_links_and_merges_of_callers_are_unknown_before_they_were_made(app: App) -> None:
    await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Bob Miller lives in Paris.")
    await settled(app)
    before = datetime.now(UTC)
    await a_moment_later(app)
    await app.gate.call(ME, CreateEntityLink(BANK, [NewEntityLink(ACME, BOB, "employs")]))
    await app.gate.call(ME, MergeEntities(BANK, [BOB], ALICE))
    near = await app.gate.call(ME, Neighbors(BANK, [ACME], link_types=["employs"]))
    assert [one.entity.id for one in near.entities] == [ACME, ALICE]
    then = await app.gate.call(ME, Neighbors(BANK, [ACME], link_types=["employs"], as_of=before))
    assert [one.entity.id for one in then.entities] == [ACME]
    assert (await entity(app, BOB)).id == ALICE
    assert (await entity(app, BOB, before)).id == BOB
    assert (await entity(app, ALICE, before)).merged_ids == ()


async def test_no_byte_of_an_erased_name_is_left_in_a_file(app: App, tmp_path: Path) -> None:
    memory = await say(app, "Zyxwalda Quornblatt works at Vexomatic Corp.", speaker="Zyxwalda Quornblatt")
    await say(app, "Bob Miller lives in Paris.")
    known = await ids(app)
    assert any("quornblatt" in one for one in known)
    await app.gate.call(ME, UpdateEntity(BANK, next(one for one in known if "quornblatt" in one), aliases=["Zyxi"]))
    await settled(app)

    def remains() -> set[str]:
        return {word for word in ("quornblatt", "zyxwalda", "vexomatic", "zyxi") if files_with(tmp_path, word)}

    assert remains()
    await drop(app, memory, compliance=True)
    await settled(app)
    assert remains() == set()
    assert await ids(app) == [BOB, "place:paris"]
