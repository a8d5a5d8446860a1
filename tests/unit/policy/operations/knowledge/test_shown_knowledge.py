"""Derived items leave as recalls of their bank do: without the personal data that its output barrier takes out."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from astrocyte.api.requests import (
    CompileBank,
    CreateMentalModel,
    CreateObservation,
    DeleteMentalModel,
    DiffMentalModelRevisions,
    GetMemory,
    GetMentalModel,
    GetMentalModelRevision,
    GetObservation,
    GetPage,
    LintPages,
    ListMentalModelRevisions,
    ListMentalModels,
    ListObservationRevisions,
    ListObservations,
    ListPageRevisions,
    ListPages,
    Recall,
    RefreshMentalModel,
    Retain,
    SearchPages,
    UndeleteMentalModel,
    UpdateMentalModel,
    UpdateObservation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import BlockKind, Caller, DeltaOperation, ModelBlock, ModelSection, RecallQuery, RetainItem

ME, BANK = Caller(), "family"
# The address in the text of each item, and of each part of a model.
MAIL = "ann@example.com"
MODEL = "model:ann"


@pytest.fixture
async def apps() -> AsyncIterator[list[App]]:
    made: list[App] = []
    yield made
    for app in made:
        await app.close()


def opened(apps: list[App], **dlp: Any) -> App:
    values = {"vector_store": "in_memory", "wiki": {"min_memories": 1}, "dlp": dlp}
    app = App(Settings.from_mapping({**values, "barriers": {"pii": {"action": "warn"}}}))
    apps.append(app)
    return app


async def answers(app: App) -> dict[str, Any]:
    """The answers of every call that shows derived items, by its name."""
    call = app.gate.call
    # The link leads nowhere, which LintPages says with its target.
    item = RetainItem(f"Ann reads {MAIL} at [[home of {MAIL}]].", tags=("ann", MAIL))
    memory_id = (await call(ME, Retain(BANK, item))).memory_id
    assert memory_id
    created = await call(ME, CreateObservation(BANK, f"Ann reads {MAIL}.", [memory_id]))
    item_id = created.observation_id
    text = ModelBlock(text=f"Write to {MAIL}.", source_ids=(memory_id,))
    listed = ModelBlock(BlockKind.BULLET_LIST, items=(f"mail: {MAIL}", "phone: none"))
    sections = (ModelSection("reach", f"How to reach {MAIL}", (text, listed)),)
    append = [DeltaOperation("append_block", "reach", block=text)]
    await call(ME, CompileBank(BANK))
    found = {
        "CreateObservation": created,
        "UpdateObservation": await call(ME, UpdateObservation(BANK, item_id, f"Ann has the address {MAIL}.")),
        "GetObservation": await call(ME, GetObservation(BANK, item_id)),
        "ListObservations": await call(ME, ListObservations(BANK)),
        "ListObservationRevisions": await call(ME, ListObservationRevisions(BANK, item_id)),
        "CreateMentalModel": await call(ME, CreateMentalModel(BANK, f"Ann {MAIL}", sections, model_id=MODEL)),
        "UpdateMentalModel": await call(ME, UpdateMentalModel(BANK, MODEL, append)),
        "RefreshMentalModel": await call(ME, RefreshMentalModel(BANK, MODEL, f"Ann has {MAIL}.")),
        "GetMentalModel": await call(ME, GetMentalModel(BANK, MODEL)),
        "ListMentalModels": await call(ME, ListMentalModels(BANK)),
        "GetMentalModelRevision": await call(ME, GetMentalModelRevision(BANK, MODEL, 1)),
        "ListMentalModelRevisions": await call(ME, ListMentalModelRevisions(BANK, MODEL)),
        "DiffMentalModelRevisions": await call(ME, DiffMentalModelRevisions(BANK, MODEL, 1, 3)),
        "GetPage": await call(ME, GetPage(BANK, "topic:ann")),
        "ListPages": await call(ME, ListPages(BANK)),
        "ListPageRevisions": await call(ME, ListPageRevisions(BANK, "topic:ann")),
        "SearchPages": await call(ME, SearchPages(BANK, "what does Ann read?")),
        "LintPages": await call(ME, LintPages(BANK)),
        "Recall": await call(ME, Recall(RecallQuery("what does Ann read?", BANK))),
    }
    await call(ME, DeleteMentalModel(BANK, MODEL))
    found["UndeleteMentalModel"] = await call(ME, UndeleteMentalModel(BANK, MODEL))
    # Those that correct a memory see what is stored.
    memory = await call(ME, GetMemory(BANK, memory_id))
    assert MAIL in memory.content
    return found


def shown(value: Any) -> list[str]:
    """The texts of an answer, without ids and scopes."""
    if isinstance(value, str):
        return [value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if not field.name.endswith("_id")]
        return [text for name in names if name not in {"scope", "tags"} for text in shown(getattr(value, name))]
    if isinstance(value, Mapping):
        return [text for one in value.values() for text in shown(one)]
    if isinstance(value, list | tuple):
        return [text for one in value for text in shown(one)]
    return []


@pytest.mark.parametrize("action", ["redact", "reject"])
async def test_no_answer_has_what_a_recall_would_not_return(apps: list[App], action: str) -> None:
    found = await answers(opened(apps, scan_recall_output=True, output_pii_action=action))
    assert [name for name, answer in found.items() if any(MAIL in text for text in shown(answer))] == []
    assert any("EMAIL_REDACTED" in text for text in shown(found["GetObservation"]))


@pytest.mark.parametrize("dlp", [{}, {"scan_recall_output": True, "output_pii_action": "warn"}])
async def test_every_answer_has_it_where_recalls_return_it(apps: list[App], dlp: dict[str, Any]) -> None:
    found = await answers(opened(apps, **dlp))
    assert [name for name, answer in found.items() if not any(MAIL in text for text in shown(answer))] == []
