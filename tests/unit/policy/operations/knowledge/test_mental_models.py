"""Mental models: documents with revisions, delta operations, and provenance down to the block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from astrocyte.api.requests import (
    CreateMentalModel,
    DeleteMentalModel,
    DiffMentalModelRevisions,
    Forget,
    GetMentalModel,
    GetMentalModelRevision,
    ListMentalModelRevisions,
    ListMentalModels,
    PlaceHold,
    RefreshMentalModel,
    Retain,
    UndeleteMemory,
    UndeleteMentalModel,
    UpdateMemory,
    UpdateMentalModel,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AlreadyExists, Conflict, FailedPrecondition, LegalHoldActive, NotFound, ValidationError
from astrocyte.model import (
    AppliedOperation,
    BlockKind,
    Caller,
    DeltaOperation,
    ForgetSelector,
    MemoryUpdate,
    ModelBlock,
    ModelSection,
    RetainItem,
    RevisionCause,
)

ME, BANK = Caller(), "family"
ID = "model:mara"
SECTIONS = (
    ModelSection("", "Communication", (ModelBlock(text="Prefers async stand-ups."),)),
    ModelSection("", "Tools", (ModelBlock(text="Python for data work."), ModelBlock(BlockKind.CODE, "x = 1"))),
)
NEW = ModelBlock(text="Rust for tools.")


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> int:
        return int(self.now.timestamp() * 1_000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def app(clock: Clock) -> AsyncIterator[App]:
    settings = {"vector_store": "in_memory", "mental_models": {"max_bytes": 2_000}}
    app = App(Settings.from_mapping(settings), clock=clock)
    yield app
    await app.close()


async def kept(app: App, text: str, *tags: str) -> str:
    result = await app.gate.call(ME, Retain(BANK, RetainItem(text, tags=tags)))
    assert result.memory_id is not None
    return result.memory_id


async def forget(app: App, *memory_ids: str, compliance: bool = False) -> None:
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=memory_ids), compliance=compliance))


async def test_a_model_has_an_id_of_its_name_and_renders_as_markdown(app: App) -> None:
    made = await app.gate.call(ME, CreateMentalModel(BANK, "Mara's preferences", SECTIONS))
    assert made.model_id == "model:mara-prefs"
    assert [section.section_id for section in made.sections] == ["communication", "tools"]
    assert made.content == (
        "## Communication\n\nPrefers async stand-ups.\n\n## Tools\n\nPython for data work.\n\n```\nx = 1\n```"
    )
    assert (made.revision, made.is_stale, made.sources) == (1, False, ())
    assert await app.gate.call(ME, GetMentalModel("", made.model_id)) == made
    with pytest.raises(AlreadyExists):
        await app.gate.call(ME, CreateMentalModel(BANK, "Mara's preferences", content="x"))
    other = await app.gate.call(ME, CreateMentalModel("work", "\u4f60\u597d", content="# A\nb"))
    assert other.model_id.startswith("model:")
    assert other.model_id.isascii()


async def test_operations_change_one_place_and_leave_the_rest_as_it_is(app: App) -> None:
    made = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", SECTIONS, model_id=ID))
    replaced = DeltaOperation("replace_block", "tools", 0, NEW)
    request = UpdateMentalModel(BANK, ID, [DeltaOperation("burn"), replaced], request_id="r1")
    result = await app.gate.call(ME, request)
    assert result.applied_ops == (AppliedOperation(1, "replace_block"),)
    assert [(one.index, one.op) for one in result.skipped_ops] == [(0, "burn")]
    assert result.model.revision == 2
    assert result.model.sections[0] == made.sections[0]
    assert result.model.sections[1].blocks == (NEW, made.sections[1].blocks[1])
    assert await app.gate.call(ME, request) == result
    assert (await app.gate.call(ME, GetMentalModel(BANK, ID))).revision == 2


async def test_atomic_operations_apply_all_or_none(app: App) -> None:
    made = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", SECTIONS, model_id=ID))
    operations = [DeltaOperation("append_block", "tools", block=NEW), DeltaOperation("remove_section", "none")]
    with pytest.raises(ValidationError) as refusal:
        await app.gate.call(ME, UpdateMentalModel(BANK, ID, operations, atomic=True))
    assert refusal.value.field == "operations[1]"
    assert await app.gate.call(ME, GetMentalModel(BANK, ID)) == made


async def test_without_an_applied_operation_there_is_no_revision(app: App) -> None:
    made = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", SECTIONS, model_id=ID))
    result = await app.gate.call(ME, UpdateMentalModel(BANK, ID, [DeltaOperation("remove_section", "none")]))
    assert (result.model, result.applied_ops) == (made, ())
    dry = await app.gate.call(
        ME, UpdateMentalModel(BANK, ID, [DeltaOperation("remove_section", "tools")], validate_only=True)
    )
    assert (dry.model, len(dry.applied_ops)) == (made, 1)


async def test_an_etag_guards_an_update(app: App) -> None:
    made = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", SECTIONS, model_id=ID))
    operations = [DeltaOperation("append_block", "tools", block=NEW)]
    await app.gate.call(ME, UpdateMentalModel(BANK, ID, operations, etag=made.etag))
    with pytest.raises(Conflict):
        await app.gate.call(ME, UpdateMentalModel(BANK, ID, operations, etag=made.etag))
    with pytest.raises(Conflict):
        await app.gate.call(ME, RefreshMentalModel(BANK, ID, "new", etag=made.etag))


async def test_revisions_are_kept_and_compared(app: App) -> None:
    await app.gate.call(ME, CreateMentalModel(BANK, "Mara", SECTIONS, model_id=ID))
    await app.gate.call(ME, UpdateMentalModel(BANK, ID, [DeltaOperation("replace_block", "tools", 0, NEW)]))
    await app.gate.call(ME, RefreshMentalModel(BANK, ID, "## Tools\n\nNone.\n\n## Food\n\nTea."))
    page = await app.gate.call(ME, ListMentalModelRevisions(BANK, ID))
    assert [(one.revision, one.cause) for one in page] == [
        (3, RevisionCause.REFRESHED),
        (2, RevisionCause.UPDATED),
        (1, RevisionCause.CREATED),
    ]
    assert (await app.gate.call(ME, GetMentalModelRevision(BANK, ID, 2))) == page.revisions[1]
    found = await app.gate.call(ME, DiffMentalModelRevisions(BANK, ID, 2))
    assert (found.from_revision, found.to_revision) == (2, 3)
    assert found.sections_added == ("food",)
    assert found.sections_removed == ("communication",)
    assert found.sections_changed == ("tools",)
    assert "-Rust for tools." in found.unified_diff
    assert "+None." in found.unified_diff
    same = await app.gate.call(ME, DiffMentalModelRevisions(BANK, ID, 3, 3))
    assert (same.unified_diff, same.sections_changed) == ("", ())
    for wrong in (GetMentalModelRevision(BANK, ID, 4), GetMentalModelRevision(BANK, "model:none", 1)):
        with pytest.raises(NotFound):
            await app.gate.call(ME, wrong)


async def test_blocks_go_with_the_memories_that_they_rest_on(app: App) -> None:
    one, two, three = [await kept(app, f"Mara said {number}.") for number in range(3)]
    sections = (
        ModelSection("a", "A", (ModelBlock(text="of one", source_ids=(one,)), ModelBlock(text="of all"))),
        ModelSection("b", "B", (ModelBlock(text="of two", source_ids=(two,)),)),
    )
    made = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", sections, source_ids=[three], model_id=ID))
    assert set(made.source_ids) == {one, two, three}
    await forget(app, one)
    found = await app.gate.call(ME, GetMentalModel(BANK, ID))
    assert found.content == "## A\n\nof all\n\n## B\n\nof two"
    assert found.is_stale
    await app.gate.call(ME, UndeleteMemory(BANK, one))
    assert await app.gate.call(ME, GetMentalModel(BANK, ID)) == made
    await forget(app, two, three, compliance=True)
    found = await app.gate.call(ME, GetMentalModel(BANK, ID))
    assert (found.content, found.source_ids) == ("## A\n\nof one", (one,))
    await forget(app, one, compliance=True)
    with pytest.raises(NotFound):
        await app.gate.call(ME, GetMentalModel(BANK, ID))
    assert app.storage.store._connections.query("SELECT count(*) FROM knowledge_revisions") == [(0,)]


async def test_a_changed_source_makes_a_model_stale(app: App) -> None:
    one = await kept(app, "Mara drinks tea.")
    made = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", content="Tea.", source_ids=[one], model_id=ID))
    assert not made.is_stale
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(one, frozenset({"content"}), "Mara drinks coffee.")))
    assert (await app.gate.call(ME, GetMentalModel(BANK, ID))).is_stale


async def test_a_refresh_cites_the_memories_of_the_scope_and_keeps_manual_blocks(app: App) -> None:
    tea = await kept(app, "Mara drinks green tea in the morning.", "food")
    await kept(app, "Mara drinks green tea at the office.", "work")
    sections = (ModelSection("", "Drinks", (ModelBlock(text="By hand."),)),)
    await app.gate.call(ME, CreateMentalModel(BANK, "Mara", sections, scope="tag:food", model_id=ID))
    found = await app.gate.call(ME, RefreshMentalModel(BANK, ID))
    blocks = found.sections[0].blocks
    assert blocks[0] == ModelBlock(text="By hand.")
    assert blocks[1:] == (ModelBlock(text="Mara drinks green tea in the morning.", source_ids=(tea,)),)
    again = await app.gate.call(ME, RefreshMentalModel(BANK, ID))
    assert again.sections == found.sections
    await forget(app, tea)
    assert (await app.gate.call(ME, GetMentalModel(BANK, ID))).content == "## Drinks\n\nBy hand."


async def test_a_refresh_of_an_entity_reads_the_memories_that_name_it() -> None:
    app = App(
        Settings.from_mapping({"vector_store": "in_memory", "pipeline": {"entity_extraction": {"mode": "rules"}}})
    )
    await kept(app, "Coffee is bought on Fridays.")
    named = await kept(app, "At noon she met Anne-Marie Novak for tea.")
    sections = (ModelSection("", "Drinks", (ModelBlock(text="tea?"),)),)
    await app.gate.call(ME, CreateMentalModel(BANK, "Anne", sections, scope="entity:Anne-Marie Novak", model_id=ID))
    assert (await app.gate.call(ME, RefreshMentalModel(BANK, ID))).source_ids == (named,)
    await app.close()


async def test_a_refresh_without_memories_changes_nothing(app: App) -> None:
    one = await kept(app, "Mara drinks tea.", "food")
    block = ModelBlock(text="Tea.", source_ids=(one,))
    made = await app.gate.call(
        ME, CreateMentalModel(BANK, "Mara", (ModelSection("", "Drinks", (block,)),), scope="tag:food", model_id=ID)
    )
    await app.gate.call(ME, UpdateMentalModel(BANK, ID, [DeltaOperation("append_block", "drinks", block=NEW)]))
    await forget(app, one)
    left = await app.gate.call(ME, RefreshMentalModel(BANK, ID))
    assert left.sections[0].blocks == (NEW,)
    assert made.revision == 1
    with pytest.raises(ValidationError, match="without content"):
        await app.gate.call(ME, RefreshMentalModel(BANK, ID, source_ids=[one]))
    await app.gate.call(ME, CreateMentalModel("empty", "Mara", content="x", model_id=ID))
    await app.gate.call(ME, RefreshMentalModel("empty", ID, "All new."))
    with pytest.raises(ValidationError, match="several banks"):
        await app.gate.call(ME, GetMentalModel("", ID))


async def test_a_deleted_model_comes_back_until_it_is_purged(app: App, clock: Clock) -> None:
    made = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", SECTIONS, model_id=ID))
    assert await app.gate.call(ME, DeleteMentalModel("", ID)) is True
    assert await app.gate.call(ME, DeleteMentalModel(BANK, ID)) is False
    assert len(await app.gate.call(ME, ListMentalModels(BANK))) == 0
    with pytest.raises(NotFound):
        await app.gate.call(ME, GetMentalModel(BANK, ID))
    assert await app.gate.call(ME, UndeleteMentalModel(BANK, ID)) == made
    await app.gate.call(ME, DeleteMentalModel(BANK, ID))
    clock.now += timedelta(days=31)
    await app.storage.store.purge(clock())
    with pytest.raises(NotFound):
        await app.gate.call(ME, UndeleteMentalModel(BANK, ID))
    again = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", content="x", model_id=ID))
    await app.gate.call(ME, DeleteMentalModel(BANK, ID))
    other = await app.gate.call(ME, CreateMentalModel(BANK, "Mara", content="y", model_id=ID))
    assert (again.revision, other.revision, other.content) == (1, 1, "## Overview\n\ny")


async def test_a_hold_on_the_bank_keeps_models_as_they_are(app: App) -> None:
    await app.gate.call(ME, CreateMentalModel(BANK, "Mara", SECTIONS, model_id=ID))
    await app.gate.call(ME, PlaceHold(BANK, reason="a case"))
    for request in (
        DeleteMentalModel(BANK, ID),
        RefreshMentalModel(BANK, ID, "x"),
        UpdateMentalModel(BANK, ID, [DeltaOperation("remove_section", "tools")]),
    ):
        with pytest.raises(LegalHoldActive):
            await app.gate.call(ME, request)


async def test_lists_page_by_age_and_filter_by_scope(app: App) -> None:
    for number in range(5):
        scope = "tag:a" if number % 2 else "bank"
        await app.gate.call(ME, CreateMentalModel(BANK, f"Model {number}", content="x", scope=scope))
    first = await app.gate.call(ME, ListMentalModels(BANK, page_size=3))
    rest = await app.gate.call(ME, ListMentalModels(BANK, page_size=3, page_token=first.next_page_token))
    assert [one.name for one in (*first, *rest)] == [f"Model {number}" for number in range(5)]
    assert rest.next_page_token == ""
    assert [one.name for one in await app.gate.call(ME, ListMentalModels(BANK, "tag:a"))] == ["Model 1", "Model 3"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"sections": ()}, "sections"),
        ({"content": "x"}, "sections"),
        ({"sections": (), "content": "## Nothing"}, "content"),
        ({"sections": (), "content": "x" * 2_001}, "content"),
        ({"sections": (ModelSection("", ""),)}, "sections[0].heading"),
        ({"sections": (ModelSection("", "A", (), 7),)}, "sections[0].level"),
        ({"sections": (ModelSection("", "A", (ModelBlock(),)),)}, "sections[0].blocks[0].text"),
        (
            {"sections": (ModelSection("", "A", (ModelBlock(BlockKind.BULLET_LIST, "x"),)),)},
            "sections[0].blocks[0].items",
        ),
        (
            {"sections": (ModelSection("", "A", (ModelBlock(text="x", language="c"),)),)},
            "sections[0].blocks[0].language",
        ),
        ({"model_id": "a b"}, "model_id"),
        ({"scope": "all"}, "scope"),
    ],
)
async def test_bad_input_is_refused_with_its_field(app: App, change: dict[str, object], field: str) -> None:
    request = replace(CreateMentalModel(BANK, "Mara", SECTIONS), **change)  # type: ignore[arg-type]
    with pytest.raises(ValidationError) as refusal:
        await app.gate.call(ME, request)
    assert refusal.value.field == field


async def test_operations_cannot_empty_or_overfill_a_model(app: App) -> None:
    await app.gate.call(ME, CreateMentalModel(BANK, "Mara", SECTIONS, model_id=ID))
    emptied = [DeltaOperation("remove_section", name) for name in ("communication", "tools")]
    large = [DeltaOperation("append_block", "tools", block=ModelBlock(text="x" * 1_999))]
    for operations in (emptied, large, []):
        with pytest.raises(ValidationError) as refusal:
            await app.gate.call(ME, UpdateMentalModel(BANK, ID, operations))
        assert refusal.value.field == "operations"
    one = await kept(app, "x", "other")
    with pytest.raises(FailedPrecondition):
        await app.gate.call(ME, CreateMentalModel(BANK, "N", SECTIONS, scope="tag:a", source_ids=[one]))
