"""Sections of archives beside the memories: what is asked for, what is refused, and what a bank keeps."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from astrocyte.api.requests import (
    CompileBank,
    ConsolidateBank,
    CreateBank,
    CreateDirective,
    CreateEntityLink,
    CreateMentalModel,
    CreateObservation,
    DeleteMentalModel,
    ExportBank,
    Forget,
    GetMentalModel,
    GetObservation,
    GetPage,
    ListAuditEvents,
    ListBanks,
    ListDirectives,
    ListEntities,
    ListObservations,
    MergeEntities,
    Neighbors,
    PlaceHold,
    Recall,
    Retain,
    SearchPages,
    UpdateEntity,
    UpdateObservation,
    WaitOperation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied, AlreadyExists, LegalHoldActive, NotFound, ValidationError
from astrocyte.model import Caller, ForgetSelector, NewEntityLink, RecallQuery, RetainItem
from astrocyte.policy.gate import Gate
from samples.archiving import ME, archive_of, export, id_of, lines_of, load, memory_line

Open = Callable[..., Gate]
PARTS = ("graph", "observations", "mental_models", "directives", "wiki_pages")
ALL: dict[str, Any] = {f"include_{part}": True for part in PARTS}
SECTIONS = ["graph_entities", "graph_links", "observations", "mental_models", "directives", "wiki_pages"]
TIME = "2025-06-01T09:30:00.000+00:00"
SECRET = "mara@example.org"
TEA = memory_line(id_of("tea"), "Mara Stone drinks tea with Ines Wolf.", tags=["tea"])
COMMON = {
    "revision": 1,
    "cause": "created",
    "scope": "bank",
    "created_by": "ann",
    "created_at": TIME,
    "changed_by": "ann",
    "changed_at": TIME,
}
CITED = [{"id": id_of("tea"), "version": 1, "observed_at": TIME}]
OBSERVATION = {
    "section": "observations", "id": "obs-1", **COMMON, "text": "Mara likes tea.", "kind": "preference",
    "confidence": 0.9, "sources": CITED,
}  # fmt: skip
BLOCK = {"kind": "paragraph", "text": "She drinks tea.", "source_ids": [id_of("tea")]}
MODEL: dict[str, Any] = {
    "section": "mental_models", "id": "model:mara", **COMMON, "name": "Mara", "source_ids": [], "sources": CITED,
    "parts": [{"section_id": "likes", "heading": "Likes", "level": 2, "blocks": [BLOCK]}],
}  # fmt: skip
DIRECTIVE = {"section": "directives", "id": "rule-1", **COMMON, "rule_text": "Answer in German.", "priority": 10}
PAGE: dict[str, Any] = {
    "section": "wiki_pages", "id": "topic:tea", **COMMON, "cause": "compiled", "scope": "tag:tea", "kind": "topic",
    "titles": [{"text": "tea", "source_ids": [id_of("tea")]}], "writer": "rules",
    "source_ids": [id_of("tea")], "sources": CITED,
    "parts": [{"section_id": "overview", "heading": "Overview", "level": 2, "blocks": [BLOCK]}],
}  # fmt: skip
MARA = {"section": "graph_entities", "id": "person:mara-stone", "type": "PERSON", "name": "Mara"}
INES = {"section": "graph_entities", "id": "person:ines-wolf", "type": "PERSON"}
LINK = {
    "section": "graph_links", "entity_a": "person:mara-stone", "entity_b": "person:ines-wolf", "link_type": "knows",
    "evidence": "a letter", "confidence": 0.8, "created_at": TIME,
}  # fmt: skip
ROWS = (MARA, INES, LINK, OBSERVATION, MODEL, DIRECTIVE, PAGE)


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    apps: list[App] = []

    def make(**sections: Any) -> Gate:
        waiting = {"entity_graph": {"read_wait_seconds": 60}}
        apps.append(App(Settings.from_mapping({"vector_store": "in_memory", **waiting, **sections})))
        return apps[-1].gate

    yield make
    for app in apps:
        await app.close()


def whole(*lines: dict[str, Any]) -> bytes:
    return archive_of([TEA, *lines], sections=["memories", "forgotten", "grants", *SECTIONS])


def changed(row: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**row, **values}


async def filled(gate: Gate) -> str:
    """A bank with one row of each section; returns the memory that they rest on."""
    memory = (
        await gate.call(ME, Retain("b", RetainItem("Mara Stone drinks tea with Ines Wolf.", tags=("tea",))))
    ).memory_id
    assert memory is not None
    await gate.call(ME, CreateObservation("b", "Mara likes tea.", (memory,)))
    await gate.call(ME, CreateMentalModel("b", "Mara", content="# Likes\n\nShe drinks tea.", source_ids=(memory,)))
    await gate.call(ME, CreateDirective("b", "Answer in German.", priority=10))
    await gate.call(ME, CompileBank("b", "tea"))
    await gate.call(ME, UpdateEntity("b", "person:mara-stone", name="Mara"))
    link = NewEntityLink("person:mara-stone", "person:ines-wolf", "knows", "a letter", 0.8)
    await gate.call(ME, CreateEntityLink("b", (link,)))
    return memory


def sections_of(archive: bytes) -> set[str]:
    return {line["section"] for line in lines_of(archive) if "section" in line} - {"memories"}


async def observations(gate: Gate) -> dict[str, str]:
    return {one.observation_id: one.text for one in (await gate.call(ME, ListObservations("b"))).observations}


async def rules(gate: Gate) -> list[tuple[str, int]]:
    return [(one.rule_text, one.priority) for one in (await gate.call(ME, ListDirectives("b"))).directives]


async def test_each_section_is_exported_and_imported_on_request_only(opened: Open) -> None:
    source = opened()
    await filled(source)
    assert sections_of(await export(source)) == set()
    for part, sections in zip(PARTS, (SECTIONS[:2], *([one] for one in SECTIONS[2:])), strict=True):
        wanted: dict[str, Any] = {f"include_{part}": True}
        assert sections_of(await export(source, **wanted)) == set(sections)
    archive = await export(source, **ALL)
    assert lines_of(archive)[0]["sections"] == ["memories", "forgotten", *SECTIONS]
    cautious = opened()
    result = await load(cautious, archive)
    assert (result.imported, result.left_out) == (1, 7)
    assert await observations(cautious) == {}
    assert await rules(cautious) == []
    target = opened()
    result = await load(target, archive, **ALL)
    counts = (result.observations, result.mental_models, result.directives, result.wiki_pages, result.entities)
    assert (*counts, result.links) == (1, 1, 1, 1, 1, 1)
    assert (result.errors, result.kept, result.left_out) == (0, 0, 0)
    assert await observations(target) == await observations(source)
    answer = await target.call(ME, Recall(RecallQuery("What does Mara drink?", "b")))
    assert [rule.rule_text for rule in answer.directives] == ["Answer in German."]


async def test_directives_need_a_caller_who_may_write_them(opened: Open) -> None:
    gate = opened(
        access_control={"enabled": True, "default_policy": "owner_only"},
        access_grants=[{"bank_id": "*", "principal": "user:*", "permissions": ["*"]}],
        directives={"allowed_principals": ["user:root"]},
    )
    ann, root = Caller(principal="user:ann"), Caller(principal="user:root")
    archive = whole(DIRECTIVE)
    with pytest.raises(AccessDenied, match=r"directives\.allowed_principals"):
        await load(gate, archive, caller=ann, include_directives=True)
    assert (await gate.call(root, ListBanks())).banks == ()
    # Without asking for them she gets the memories, and is told of the rest.
    assert (await load(gate, archive, caller=ann)).left_out == 1
    assert (await load(gate, archive, caller=root, include_directives=True)).directives == 1
    events = (await gate.call(root, ListAuditEvents("b"))).events
    assert [event.actor for event in events if event.event == "directive_created"] == ["user:root"]
    assert events[-1].details["directives"] == "1"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (changed(OBSERVATION, colour="red"), "colour"),
        (changed(OBSERVATION, kind="rumour"), "kind"),
        (changed(OBSERVATION, confidence="high"), "confidence"),
        (changed(OBSERVATION, topic="zz"), "topic"),
        (changed(OBSERVATION, topic="00" * 33), "topic"),
        (changed(OBSERVATION, sources=[{"id": 7, "version": 1, "observed_at": TIME}]), "id"),
        (changed(OBSERVATION, sources=[{"id": id_of("tea"), "version": 1}]), "observed_at"),
        (changed(OBSERVATION, statement={"words": "tea"}), "words"),
        (changed(OBSERVATION, revision=0), "revision"),
        (changed(OBSERVATION, changed_at="yesterday"), "changed_at"),
        (changed(OBSERVATION, text="tea \ud800"), "surrogate"),
        (changed(MODEL, parts=[{"heading": "x"}]), "section_id"),
        (changed(MODEL, parts=[{"section_id": "x", "heading": "x", "level": 2, "blocks": [{"kind": "poem"}]}]), "kind"),
        (changed(MODEL, cause="magic"), "cause"),
        (changed(DIRECTIVE, priority=1.5), "priority"),
        (changed(DIRECTIVE, rule_text=None), "rule_text"),
        (changed(PAGE, kind="poem"), "kind"),
        (changed(PAGE, writer="nobody"), "writer"),
        (changed(PAGE, titles=["Mara"]), "titles"),
        (changed(PAGE, titles=[{"text": "Mara", "shown": True}]), "shown"),
        (changed(PAGE, fingerprint="00"), "fingerprint"),
        (changed(MARA, aliases="Mary"), "aliases"),
        (changed(LINK, confidence=True), "confidence"),
        (changed(LINK, created_at=None), "created_at"),
    ],
)
async def test_a_forged_line_refuses_the_archive(opened: Open, line: dict[str, Any], problem: str) -> None:
    gate = opened()
    # Sections that are not asked for are verified as well.
    for wanted in (ALL, {}):
        with pytest.raises(ValidationError, match=problem):
            await load(gate, whole(line), **wanted)
    assert (await gate.call(ME, ListBanks())).banks == ()


@pytest.mark.parametrize(
    "second",
    [changed(OBSERVATION, text="again"), changed(OBSERVATION, revision=2, scope="tag:x"), changed(OBSERVATION)],
)
async def test_revisions_out_of_order_refuse_the_archive(opened: Open, second: dict[str, Any]) -> None:
    gate = opened()
    with pytest.raises(ValidationError, match="revisions of an item"):
        await load(gate, whole(OBSERVATION, second), **ALL)
    assert (await load(gate, whole(OBSERVATION, changed(OBSERVATION, revision=3)), **ALL)).observations == 1


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([changed(OBSERVATION, id="a b")], "id"),
        ([changed(OBSERVATION, scope="planet:earth")], "scope"),
        ([changed(OBSERVATION, text=" ")], "empty"),
        ([changed(OBSERVATION, confidence=1.5)], "confidence"),
        ([changed(OBSERVATION, sources=[])], "rests on memories"),
        ([changed(OBSERVATION, sources=[{**CITED[0], "id": id_of("gone")}])], "does not exist"),
        ([changed(OBSERVATION, scope="tag:x")], "outside of the scope"),
        ([changed(OBSERVATION, statement={"words": ["tea"]})], "expected all of"),
        ([changed(OBSERVATION, valid_from=TIME, valid_until="2024-01-01T00:00:00Z")], "valid_until"),
        ([changed(MODEL, sources=[])], "which the model cites"),
        ([changed(MODEL, parts=[*MODEL["parts"], *MODEL["parts"]])], "section_id"),
        ([changed(DIRECTIVE, priority=5_000)], "priority"),
        ([changed(DIRECTIVE, sources=CITED)], "rests on no memory"),
        ([changed(PAGE, id="entity:tea")], "kind of the page"),
        ([changed(PAGE, sources=[])], "source_ids"),
        ([changed(PAGE, sources=[], source_ids=[])], "source_ids"),
        ([changed(PAGE, titles=PAGE["titles"] * 4)], "titles"),
        ([changed(PAGE, titles=[{"text": "Mara"}])], "told by memories"),
        ([changed(PAGE, titles=[{"text": "Mara", "source_ids": [id_of("gone")]}])], "which the page cites"),
        ([changed(PAGE, parts=[{**PAGE["parts"][0], "blocks": []}])], "has no text"),
        ([changed(PAGE, parts=[{**PAGE["parts"][0], "blocks": [{**BLOCK, "text": "x" * (1 << 17)}]}])], "bytes"),
        ([changed(PAGE, parts=[{**PAGE["parts"][0], "blocks": [{**BLOCK, "source_ids": [id_of("gone")]}]}])],
         "which the page cites"),
        ([changed(PAGE, scope="tag:nothing")], "outside of the scope"),
        ([changed(MARA, id="person:Mara Stone")], "normalised"),
        ([changed(MARA, type="robot")], "type"),
        ([changed(LINK, entity_b="person:nobody")], "no entity"),
        ([changed(LINK, link_type="co_occurs_with")], "computed"),
        ([changed(LINK, confidence=2)], "confidence"),
        ([INES, MARA, changed(LINK, link_type="alias_of"),
          changed(LINK, link_type="alias_of", entity_a=INES["id"], entity_b=MARA["id"])], "alias of the source"),
    ],
)  # fmt: skip
async def test_a_row_that_the_bank_does_not_take_is_named(
    opened: Open, lines: list[dict[str, Any]], problem: str
) -> None:
    gate = opened()
    result = await load(gate, whole(*lines), **ALL)
    assert (result.imported, result.errors) == (1, 1)
    (failure,) = result.failures
    assert problem in failure.error
    assert failure.line == len(lines) + 2


OTHER = (
    changed(MARA, name="Mary"),
    changed(LINK, evidence="a photo"),
    changed(OBSERVATION, text="Mara prefers coffee."),
    changed(MODEL, name="Mara Stone"),
    changed(DIRECTIVE, priority=20),
    changed(PAGE, parts=[{**PAGE["parts"][0], "heading": "2025-06"}]),
)


@pytest.mark.parametrize("row", OTHER, ids=lambda row: row["section"])
async def test_a_conflict_is_kept_overwritten_or_refuses_the_archive(opened: Open, row: dict[str, Any]) -> None:
    gate, is_graph = opened(), row["section"].startswith("graph")
    await load(gate, whole(*ROWS), **ALL)
    for other in (whole(*ROWS), whole(row)):
        with pytest.raises(AlreadyExists, match="nothing was stored"):
            await load(gate, other, on_conflict="error", **ALL)
    before = await export(gate, **ALL)
    assert (await load(gate, whole(row), **ALL)).kept == 1
    assert rows(await export(gate, **ALL)) == rows(before)
    result = await load(gate, whole(row), on_conflict="overwrite", **ALL)
    assert result.kept == 0
    assert result.observations + result.mental_models + result.directives + result.wiki_pages == int(not is_graph)
    assert result.entities + result.links == int(is_graph)
    assert rows(await export(gate, **ALL)) != rows(before)
    # A second time nothing differs any more.
    assert (await load(gate, whole(row), on_conflict="overwrite", **ALL)).kept == 1


def rows(archive: bytes) -> list[dict[str, Any]]:
    return [line for line in lines_of(archive) if line.get("section") in SECTIONS]


@pytest.mark.parametrize("row", OTHER, ids=lambda row: row["section"])
async def test_a_hold_refuses_an_overwrite_in_all_sections(opened: Open, row: dict[str, Any]) -> None:
    gate = opened()
    await load(gate, whole(*ROWS), **ALL)
    await gate.call(ME, PlaceHold("b", reason="a case"))
    before = rows(await export(gate, **ALL))
    new = memory_line(id_of("new"), "Ines drinks coffee.")
    with pytest.raises(LegalHoldActive):
        await load(gate, whole(new, row), on_conflict="overwrite", **ALL)
    assert rows(await export(gate, **ALL)) == before
    assert "coffee" not in str([hit.text for hit in (await recalled(gate))])
    # What does not differ, or is new, changes nothing that is held.
    assert (await load(gate, whole(*ROWS), on_conflict="overwrite", **ALL)).kept == 6
    fresh = changed(DIRECTIVE, id="rule-2")
    assert (await load(gate, whole(fresh), on_conflict="overwrite", **ALL)).directives == 1


async def recalled(gate: Gate) -> Any:
    return (await gate.call(ME, Recall(RecallQuery("coffee", "b")))).hits


async def test_an_overwrite_adds_a_revision(opened: Open) -> None:
    gate = opened()
    await load(gate, whole(OBSERVATION, changed(OBSERVATION, revision=4, text="Mara loves tea.")), **ALL)
    other = changed(OBSERVATION, revision=2, text="Mara hates tea.")
    await load(gate, whole(other), on_conflict="overwrite", **ALL)
    observation = await gate.call(ME, GetObservation("b", "obs-1"))
    assert (observation.text, observation.revision, observation.created_by) == ("Mara hates tea.", 5, "ann")
    told = [line["text"] for line in rows(await export(gate, include_observations=True))]
    assert told == ["Mara likes tea.", "Mara loves tea.", "Mara hates tea."]


async def test_a_deleted_model_stays_deleted(opened: Open) -> None:
    gate = opened()
    await load(gate, whole(MODEL), **ALL)
    await gate.call(ME, DeleteMentalModel("b", "model:mara"))
    for action in ("skip", "overwrite"):
        assert (await load(gate, whole(MODEL), on_conflict=action, **ALL)).kept == 1
    with pytest.raises(Exception, match="no mental model"):
        await gate.call(ME, GetMentalModel("b", "model:mara"))


async def test_what_rests_on_a_forgotten_memory_is_in_no_archive(opened: Open) -> None:
    gate = opened()
    memory = await filled(gate)
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory,))))
    archive = await export(gate, **ALL)
    assert b"She drinks tea" not in archive
    assert b"Mara likes tea" not in archive
    # The link of a caller keeps its two entities, as it does in the graph.
    assert sections_of(archive) == {"forgotten", "graph_entities", "graph_links", "directives"}


async def test_knowledge_of_later_memories_is_not_in_the_archive(opened: Open) -> None:
    gate = opened()
    await filled(gate)
    parts = gate.stream(ME, ExportBank("b", include_observations=True))
    begun = await anext(parts)
    later = (await gate.call(ME, Retain("b", RetainItem("Otto is a cat.")))).memory_id or ""
    await gate.call(ME, CreateObservation("b", "Otto purrs.", (later,)))
    (first,) = [name for name, text in (await observations(gate)).items() if "tea" in text]
    await gate.call(ME, UpdateObservation("b", first, text="Mara adores tea."))
    archive = begun + b"".join([part async for part in parts])
    assert b"Otto" not in archive
    assert (await load(opened(), archive, **ALL)).errors == 0


async def test_personal_data_is_screened_on_both_ways(opened: Open) -> None:
    lines = (
        changed(OBSERVATION, text=f"Write to {SECRET}."),
        changed(MODEL, name=f"About {SECRET}"),
        changed(DIRECTIVE, rule_text=f"Answer to {SECRET}."),
        changed(
            PAGE,
            titles=[{**PAGE["titles"][0], "text": f"Mara {SECRET}"}],
            parts=[{**PAGE["parts"][0], "blocks": [{**BLOCK, "text": f"Her mail is {SECRET}."}]}],
        ),
        changed(MARA, name=SECRET),
        INES,
        changed(LINK, evidence=f"from {SECRET}", metadata={"mail": SECRET}),
    )
    open_bank = opened(barriers={"pii": {"mode": "disabled"}})
    await load(open_bank, whole(*lines), **ALL)
    assert SECRET.encode() in await export(open_bank, **ALL)
    target = opened(barriers={"pii": {"mode": "regex", "action": "redact"}})
    result = await load(target, whole(*lines), **ALL)
    assert (result.errors, result.links, result.entities) == (0, 1, 1)
    assert SECRET.encode() not in await export(target, **ALL)
    strict = opened(barriers={"pii": {"mode": "regex", "action": "reject"}})
    refused = await load(strict, whole(*lines), **ALL)
    assert refused.errors == 6
    assert SECRET not in str([failure.error for failure in refused.failures])
    leaving = opened(
        barriers={"pii": {"mode": "disabled"}}, dlp={"scan_recall_output": True, "output_pii_action": "redact"}
    )
    await load(leaving, whole(*lines), **ALL)
    assert SECRET.encode() not in await export(leaving, **ALL)


async def test_a_bank_takes_no_more_items_than_it_may_have(opened: Open) -> None:
    gate = opened(directives={"max_per_bank": 2})
    lines = [changed(DIRECTIVE, id=f"rule-{number}") for number in range(3)]
    result = await load(gate, whole(*lines), **ALL)
    assert (result.directives, result.errors) == (2, 1)
    assert "limit" in result.failures[0].error


async def test_a_consolidation_goes_on_with_imported_observations(opened: Open) -> None:
    source, target = opened(), opened()
    await source.call(ME, Retain("b", RetainItem("I live in Brno.", speaker="Mara", session_id="march")))
    await source.call(ME, Retain("b", RetainItem("I live in Oslo now.", speaker="Mara", session_id="june")))
    await consolidated(source)
    known = await observations(source)
    assert len(known) == 2
    await load(target, await export(source, **ALL), **ALL)
    await consolidated(target)
    assert await observations(target) == known


async def consolidated(gate: Gate) -> None:
    operation = await gate.call(ME, ConsolidateBank("b"))
    await gate.call(ME, WaitOperation("b", operation.operation_id))


async def test_an_entity_that_nothing_names_does_not_stay(opened: Open) -> None:
    gate = opened()
    nobody = changed(MARA, id="person:nobody-else", name="Nobody")
    result = await load(gate, whole(MARA, nobody, changed(INES, id="org:bare", type="ORG"), INES, LINK), **ALL)
    assert (result.entities, result.links, result.errors) == (1, 1, 2)
    assert {(one.memory_id, one.error) for one in result.failures} == {
        (name, "neither a memory of the bank nor a link of the archive names it")
        for name in ("person:nobody-else", "org:bare")
    }
    assert [one.line for one in result.failures] == [4, 5]
    assert {one.id for one in (await gate.call(ME, ListEntities("b"))).entities} == {MARA["id"], INES["id"]}


async def test_merges_move_with_the_graph(opened: Open) -> None:
    source, target = opened(), opened()
    await source.call(ME, CreateBank("b"))
    await filled(source)
    await source.call(ME, MergeEntities("b", ("person:ines-wolf",), "person:mara-stone", "one person"))
    await load(target, await export(source, **ALL), **ALL)
    for gate in (source, target):
        (entity,) = (await gate.call(ME, ListEntities("b"))).entities
        assert (entity.name, entity.merged_ids) == ("Mara", ("person:ines-wolf",))
        assert (await gate.call(ME, Neighbors("b", ("person:ines-wolf",)))).memories


async def test_an_imported_page_is_searched_compiled_again_and_erased_with_its_memory(opened: Open) -> None:
    gate = opened()
    last = changed(PAGE, revision=4)
    assert (await load(gate, whole(PAGE, last), **ALL)).wiki_pages == 1
    page = await gate.call(ME, GetPage("b", PAGE["id"]))
    assert (page.title, page.revision, page.is_stale) == ("tea", 4, False)
    assert [hit.page_id for hit in await gate.call(ME, SearchPages("b", "tea"))] == [PAGE["id"]]
    # Its memories are rows of this bank, so that the compilation cannot tell that it is of these.
    result = await gate.call(ME, CompileBank("b", "tea"))
    assert (result.pages_created, result.pages_updated) == (0, 1)
    assert (await gate.call(ME, CompileBank("b", "tea"))).pages_unchanged == 1
    compiled = await gate.call(ME, GetPage("b", PAGE["id"]))
    assert (compiled.revision, compiled.created_at) == (5, page.created_at)
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(id_of("tea"),)), compliance=True, reason="asked"))
    with pytest.raises(NotFound):
        await gate.call(ME, GetPage("b", PAGE["id"]))
    assert sections_of(await export(gate, **ALL)) == set()


async def test_an_import_keeps_as_many_revisions_of_a_page_as_a_compilation(opened: Open) -> None:
    gate = opened(wiki={"keep_revisions": 2, "max_pages": 1})
    history = [changed(PAGE, revision=number) for number in (1, 2, 4)]
    other = changed(PAGE, id="topic:drinks", scope="bank")
    result = await load(gate, whole(*history, other), **ALL)
    assert (result.wiki_pages, result.errors) == (1, 1)
    assert "limit" in result.failures[0].error
    assert [line["revision"] for line in rows(await export(gate, **ALL))] == [4]


async def test_a_page_of_the_same_text_is_equal_whatever_it_was_compiled_from(opened: Open) -> None:
    gate = opened()
    await filled(gate)
    archive = await export(gate, **ALL)
    assert (await load(gate, archive, on_conflict="overwrite", **ALL)).wiki_pages == 0
    state = [line for line in lines_of(archive) if line.get("section") == "wiki_pages"]
    assert [sorted(line) for line in state if "fingerprint" in line] == []
    assert (await gate.call(ME, CompileBank("b", "tea"))).pages_unchanged == 1
