"""Knowledge and the graph of callers, imported elsewhere, are the same, and are exported as the same lines."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from astrocyte.api.requests import (
    CompileBank,
    CreateBank,
    CreateDirective,
    CreateEntityLink,
    CreateMentalModel,
    CreateObservation,
    DeleteDirective,
    DeleteMentalModel,
    DeleteObservation,
    Forget,
    ListDirectives,
    ListEntities,
    ListMentalModelRevisions,
    ListMentalModels,
    ListObservationRevisions,
    ListObservations,
    ListPageRevisions,
    ListPages,
    MergeEntities,
    Retain,
    SplitEntity,
    UndeleteMemory,
    UpdateEntity,
    UpdateMemory,
    UpdateMentalModel,
    UpdateObservation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError
from astrocyte.model import Caller, DeltaOperation, ForgetSelector, MemoryUpdate, ModelBlock, NewEntityLink, RetainItem
from samples.archiving import export, lines_of, load

ME = Caller()
BEGIN = 1_700_000_000_000
PEOPLE = ("Alice Smith", "Bob Miller", "Carla Jones")
IDS = ("person:alice-smith", "person:bob-miller", "person:carla-jones")
ALL: dict[str, Any] = {
    f"include_{part}": True
    for part in ("graph", "observations", "mental_models", "directives", "wiki_pages", "embeddings")
}
KINDS = {"graph_entities", "graph_links", "observations", "mental_models", "directives", "wiki_pages"}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "observe", "observe", "revise", "model", "delta", "rule", "link", "link", "merge", "split", "name",
                "update", "forget", "undelete", "drop", "compile", "compile",
            ]
        ),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=14,
)  # fmt: skip


@given(steps=STEPS)
@budget(max_examples=25, deadline=None)
def test_a_round_trip_is_equal(steps: list[tuple[str, int, int]]) -> None:
    asyncio.run(_round_trip(steps))


async def _round_trip(steps: list[tuple[str, int, int]]) -> None:
    now = BEGIN

    def clock() -> int:
        return now

    settings = Settings.from_mapping(
        {
            "vector_store": "in_memory",
            "signal_quality": {"dedup": {"enabled": False}},
            "entity_graph": {"read_wait_seconds": 60},
            "wiki": {"min_memories": 1},
        }
    )
    source, target = App(settings, clock=clock), App(settings, clock=clock)
    try:
        await source.gate.call(ME, CreateBank("b"))
        memories = [
            (
                await source.gate.call(
                    ME, Retain("b", RetainItem(f"{name} met {other} in room {room}.", tags=("rooms",)))
                )
            ).memory_id
            or ""
            for room, (name, other) in enumerate(zip(PEOPLE, (*PEOPLE[1:], PEOPLE[0]), strict=True))
        ]
        for step, one, other in steps:
            now += 10
            try:
                await _step(source, memories, step, one, other)
            except AstrocyteError:
                # A step that the state does not allow, such as the split of what nobody merged.
                continue
        archive = await export(source.gate, **ALL)
        now += 1_000
        wanted: dict[str, Any] = {name: True for name in ALL if name != "include_embeddings"}
        result = await load(target.gate, archive, **wanted)
        assert (result.errors, result.skipped, result.kept, result.left_out) == (0, 0, 0, 0), result.failures
        assert await _seen(source) == await _seen(target)
        rows = _rows(archive)
        # A second time nothing is left to do, and the same lines come out again.
        again = await load(target.gate, archive, **wanted)
        assert again.errors == 0
        assert again.observations + again.mental_models + again.directives + again.wiki_pages == 0
        assert again.entities + again.links == 0
        assert _rows(await export(target.gate, **ALL)) == rows
    finally:
        await source.close()
        await target.close()


async def _step(app: App, memories: list[str], step: str, one: int, other: int) -> None:  # noqa: C901, PLR0912
    call = app.gate.call
    memory, second = memories[one % len(memories)], memories[other % len(memories)]
    first_id, second_id = IDS[one % len(IDS)], IDS[other % len(IDS)]
    if step == "observe":
        await call(ME, CreateObservation("b", f"They meet in room {other}.", tuple({memory, second})))
    elif step == "revise":
        observation = await _pick(app, "observation", one)
        await call(ME, UpdateObservation("b", observation, text=f"They met in room {other}.", evidence=(second,)))
    elif step == "model":
        content = f"# Rooms\n\nRoom {one} is theirs.\n\n- door {other}\n- window"
        await call(ME, CreateMentalModel("b", f"Rooms {one % 3}", content=content, source_ids=(memory,)))
    elif step == "delta":
        block = ModelBlock(text=f"Room {other} too.", source_ids=(second,))
        operations = (DeltaOperation("append_block", "rooms", block=block),)
        await call(ME, UpdateMentalModel("b", await _pick(app, "model", one), operations))
    elif step == "rule":
        await call(ME, CreateDirective("b", f"Answer in {other} words.", priority=one))
    elif step == "link":
        link = NewEntityLink(first_id, second_id, "knows", f"note {one}", 0.5, {"page": other})
        await call(ME, CreateEntityLink("b", (link,)))
    elif step == "merge":
        await call(ME, MergeEntities("b", (first_id,), second_id, "the same person"))
    elif step == "split":
        await call(ME, SplitEntity("b", first_id, "two people"))
    elif step == "name":
        await call(ME, UpdateEntity("b", first_id, name=f"Friend {other}", metadata={"page": one}))
    elif step == "update":
        content = f"{PEOPLE[one % 3]} met {PEOPLE[other % 3]} at noon."
        await call(ME, UpdateMemory("b", MemoryUpdate(memory, frozenset({"content"}), content)))
    elif step == "forget":
        await call(ME, Forget("b", ForgetSelector(memory_ids=(memory,))))
    elif step == "compile":
        await call(ME, CompileBank("b", ("", "rooms")[one % 2]))
    elif step == "undelete":
        await call(ME, UndeleteMemory("b", memory))
    else:
        await _drop(app, one)


async def _drop(app: App, one: int) -> None:
    if one % 3 == 0:
        await app.gate.call(ME, DeleteObservation("b", await _pick(app, "observation", one)))
    elif one % 3 == 1:
        await app.gate.call(ME, DeleteMentalModel("b", await _pick(app, "model", one)))
    else:
        rules = (await app.gate.call(ME, ListDirectives("b"))).directives
        if rules:
            await app.gate.call(ME, DeleteDirective("b", rules[one % len(rules)].directive_id))


async def _pick(app: App, kind: str, one: int) -> str:
    if kind == "model":
        ids = [model.model_id for model in (await app.gate.call(ME, ListMentalModels("b"))).models]
    else:
        ids = [item.observation_id for item in (await app.gate.call(ME, ListObservations("b"))).observations]
    return ids[one % len(ids)] if ids else "none"


async def _seen(app: App) -> list[Any]:
    """Knowledge and graph as callers see them, without etags, which differ."""
    call, seen = app.gate.call, list[Any]()
    for item in (await call(ME, ListObservations("b"))).observations:
        history = await call(ME, ListObservationRevisions("b", item.observation_id))
        evidence = [(one.memory_id, one.version, one.observed_at, one.is_changed) for one in item.evidence]
        seen.append((item.observation_id, item.text, item.scope, item.created_at, evidence, item.trend, history))
    for model in (await call(ME, ListMentalModels("b"))).models:
        revisions = await call(ME, ListMentalModelRevisions("b", model.model_id))
        seen.append((model.model_id, model.name, model.sections, model.sources, model.updated_at, revisions))
    for rule in (await call(ME, ListDirectives("b"))).directives:
        seen.append((rule.directive_id, rule.rule_text, rule.scope, rule.priority, rule.created_by, rule.created_at))
    for page in (await call(ME, ListPages("b"))).pages:
        revisions = await call(ME, ListPageRevisions("b", page.page_id))
        about = (page.page_id, page.kind, page.title, page.scope, page.writer, page.revision)
        seen.append((*about, page.sections, page.sources, page.created_at, page.updated_at, revisions))
    for entity in (await call(ME, ListEntities("b"))).entities:
        others = (sorted(entity.aliases), sorted(entity.merged_ids))
        seen.append((entity.id, entity.name, others, entity.metadata, entity.mention_count))
    return seen


def _rows(archive: bytes) -> list[dict[str, Any]]:
    return [line for line in lines_of(archive) if line.get("section") in KINDS]
