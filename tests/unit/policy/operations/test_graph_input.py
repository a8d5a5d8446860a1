"""Bad input to the entity graph is refused with the name of the field, and changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from astrocyte.api.requests import (
    CreateEntityLink,
    DeleteEntityLink,
    ExportGraph,
    FindPath,
    GetEntity,
    GetGraphStats,
    ListEntities,
    MergeEntities,
    Neighbors,
    Retain,
    SearchEntities,
    SplitEntity,
    UpdateEntity,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import NotFound, ValidationError
from astrocyte.model import NewEntityLink, RetainItem
from samples.entity_graphs import BANK, ME, derived, say, settled

ALICE, BOB = "person:alice-smith", "person:bob-miller"
LINK = NewEntityLink(ALICE, BOB, "knows")
NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001 - that it has no zone is the point
NOW = datetime(2024, 1, 1, tzinfo=UTC)

REFUSED: list[tuple[Any, str]] = [
    (SearchEntities(BANK, ""), "query"),
    (SearchEntities(BANK, "a" * 257), "query"),
    (SearchEntities(BANK, "Alice\x00"), "query"),
    (SearchEntities(BANK, "Alice", limit=-1), "limit"),
    (SearchEntities(BANK, "Alice", limit=201), "limit"),
    (SearchEntities(BANK, "Alice", entity_types=["person"]), "entity_types[0]"),
    (SearchEntities(BANK, "Alice", entity_types=["A"] * 33), "entity_types"),
    (SearchEntities(BANK, "Alice", as_of=NAIVE), "as_of"),
    (GetEntity(BANK, ""), "entity_id"),
    (GetEntity(BANK, "a" * 513), "entity_id"),
    (ListEntities(BANK, "per son"), "entity_type"),
    (ListEntities(BANK, page_size=1_001), "page_size"),
    (ListEntities(BANK, page_token="nonsense"), "page_token"),
    (Neighbors(BANK, []), "entity_ids"),
    (Neighbors(BANK, [ALICE] * 33), "entity_ids"),
    (Neighbors(BANK, [ALICE], max_depth=7), "max_depth"),
    (Neighbors(BANK, [ALICE], limit=201), "limit"),
    (Neighbors(BANK, [ALICE], link_types=["Works At"]), "link_types[0]"),
    (Neighbors(BANK, [ALICE], valid_at=NAIVE), "valid_at"),
    (FindPath(BANK, ALICE, ""), "target_id"),
    (FindPath(BANK, ALICE, BOB, max_depth=7), "max_depth"),
    (FindPath(BANK, ALICE, BOB, max_paths=21), "max_paths"),
    (CreateEntityLink(BANK, []), "links"),
    (CreateEntityLink(BANK, [NewEntityLink(ALICE, f"person:p{number}", "knows") for number in range(10_000)]), "links"),
    (CreateEntityLink(BANK, [LINK, LINK]), "links[1]"),
    (CreateEntityLink(BANK, [replace(LINK, entity_b=ALICE)]), "links[0].entity_b"),
    (CreateEntityLink(BANK, [replace(LINK, link_type="co_occurs_with")]), "links[0].link_type"),
    (CreateEntityLink(BANK, [replace(LINK, link_type="Works at")]), "links[0].link_type"),
    (CreateEntityLink(BANK, [replace(LINK, confidence=1.01)]), "links[0].confidence"),
    (CreateEntityLink(BANK, [replace(LINK, confidence=-0.01)]), "links[0].confidence"),
    (CreateEntityLink(BANK, [replace(LINK, confidence=float("nan"))]), "links[0].confidence"),
    (CreateEntityLink(BANK, [replace(LINK, evidence="e" * 4_097)]), "links[0].evidence"),
    (CreateEntityLink(BANK, [replace(LINK, valid_from=NAIVE)]), "links[0].valid_from"),
    (
        CreateEntityLink(BANK, [replace(LINK, valid_from=NOW, valid_until=NOW.replace(year=2023))]),
        "links[0].valid_until",
    ),
    (CreateEntityLink(BANK, [replace(LINK, metadata={"_own": 1})]), "links[0].metadata[_own]"),
    (CreateEntityLink(BANK, [LINK], request_id=""), "request_id"),
    (DeleteEntityLink(BANK, ""), "link_id"),
    (UpdateEntity(BANK, ALICE), "update_mask"),
    (UpdateEntity(BANK, ALICE, name="n" * 129), "name"),
    (UpdateEntity(BANK, ALICE, aliases=["a"] * 65), "aliases"),
    (UpdateEntity(BANK, ALICE, aliases=[""]), "aliases[0]"),
    (UpdateEntity(BANK, ALICE, metadata={"k": [1]}), "metadata[k]"),  # type: ignore[dict-item]
    (MergeEntities(BANK, [], ALICE), "entity_ids"),
    (MergeEntities(BANK, [ALICE], ALICE), "into_id"),
    (MergeEntities(BANK, [f"person:p{number}" for number in range(65)], ALICE), "entity_ids"),
    (MergeEntities(BANK, [BOB], ALICE, "r" * 4_097), "reason"),
    (SplitEntity(BANK, ""), "entity_id"),
    (ExportGraph(BANK, "csv"), "format"),  # type: ignore[arg-type]
]
UNKNOWN: list[Any] = [
    GetEntity(BANK, "person:nobody"),
    Neighbors(BANK, [ALICE, "person:nobody"]),
    FindPath(BANK, ALICE, "person:nobody"),
    CreateEntityLink(BANK, [LINK, NewEntityLink(ALICE, "person:nobody", "knows")]),
    DeleteEntityLink(BANK, "link-999"),
    DeleteEntityLink(BANK, "nonsense"),
    UpdateEntity(BANK, "person:nobody", name="x"),
    MergeEntities(BANK, ["person:nobody"], ALICE),
    MergeEntities(BANK, [BOB], "person:nobody"),
    SplitEntity(BANK, "person:nobody"),
]


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    await say(app, "Alice Smith works at Acme Corp.")
    await say(app, "Bob Miller lives in Paris.")
    await settled(app)
    yield app
    await app.close()


async def ask(app: App, request: Any) -> None:
    if isinstance(request, ExportGraph):
        async for _ in app.gate.stream(ME, request):
            pass
    else:
        await app.gate.call(ME, request)


@pytest.mark.parametrize(
    ("request_", "field"),
    REFUSED,
    ids=[f"{type(one).__name__}-{field}-{place}" for place, (one, field) in enumerate(REFUSED)],
)
async def test_a_wrong_field_is_named_and_nothing_changes(app: App, request_: Any, field: str) -> None:
    before = derived(app)
    with pytest.raises(ValidationError) as caught:
        await ask(app, request_)
    assert caught.value.metadata["field"] == field
    await settled(app)
    assert derived(app) == before


@pytest.mark.parametrize("request_", UNKNOWN, ids=lambda one: type(one).__name__)
async def test_an_unknown_id_is_not_found_and_nothing_changes(app: App, request_: Any) -> None:
    before = derived(app)
    with pytest.raises(NotFound):
        await ask(app, request_)
    await settled(app)
    assert derived(app) == before


async def test_entities_of_another_bank_are_unknown(app: App) -> None:
    await app.gate.call(ME, Retain("other", RetainItem("Carla Jones lives in Rome.")))
    with pytest.raises(NotFound):
        await app.gate.call(ME, CreateEntityLink(BANK, [NewEntityLink(ALICE, "person:carla-jones", "knows")]))
    with pytest.raises(NotFound):
        await app.gate.call(ME, MergeEntities("other", ["person:carla-jones"], ALICE))
    (link,) = await app.gate.call(ME, CreateEntityLink(BANK, [LINK]))
    with pytest.raises(NotFound):
        await app.gate.call(ME, DeleteEntityLink("other", link.link_id))
    assert (await app.gate.call(ME, GetGraphStats(BANK))).links_by_type["knows"] == 1


async def test_a_circle_of_links_does_not_trap_a_search(app: App) -> None:
    circle = [ALICE, BOB, "org:acme-corp", ALICE]
    links = [NewEntityLink(one, other, "next_to") for one, other in pairwise(circle)]
    await app.gate.call(ME, CreateEntityLink(BANK, links))
    found = await app.gate.call(ME, Neighbors(BANK, [ALICE], max_depth=6, link_types=["next_to"]))
    assert sorted(one.entity.id for one in found.entities) == sorted(set(circle))
    paths = await app.gate.call(ME, FindPath(BANK, ALICE, BOB, max_depth=6, max_paths=20, link_types=["next_to"]))
    assert [len(path.links) for path in paths.paths] == [1, 2]
