"""An erasure leaves no byte of a source in consolidated observations, nor in what a consolidation is about to write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import ConsolidateBank, Forget, ListObservations, ListOperations, Retain, WaitOperation
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, ForgetSelector, OperationState, RetainItem
from astrocyte.providers.bounded import BoundedModel
from astrocyte.stores.knowledge.consolidation import Action, ConsolidationWork, Reached
from doubles.observing_models import Observer
from oracles.byte_scans import files_with

ME, BANK = Caller(), "family"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
# A word that stands nowhere else.
SECRET = "qzxvoltairxzq"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path / "data")}))
    yield app
    await app.close()


async def kept(app: App, text: str, days: int, speaker: str = "Mara") -> str:
    item = RetainItem(text, speaker=speaker, occurred_at=NOW - timedelta(days=days))
    return (await app.gate.call(ME, Retain(BANK, item))).memory_id or ""


async def consolidated(app: App) -> None:
    started = await app.gate.call(ME, ConsolidateBank(BANK))
    ended = await app.gate.call(ME, WaitOperation(BANK, started.operation_id))
    assert (ended.state, ended.error) == (OperationState.SUCCEEDED, None)


async def erase(app: App, *memory_ids: str) -> None:
    result = await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=memory_ids), compliance=True))
    assert result.receipt is not None


async def texts(app: App) -> set[str]:
    return {one.text for one in await app.gate.call(ME, ListObservations(BANK))}


async def test_no_byte_of_an_erased_source_is_left_in_consolidated_observations(app: App, tmp_path: Path) -> None:
    # One of its own, one with a second source, one that is superseded, one that supersedes, and one of the speaker.
    secrets = [
        await kept(app, f"I love {SECRET}.", 9),
        await kept(app, f"I enjoy {SECRET} music.", 9),
        await kept(app, f"I live in {SECRET.title()}.", 9),
        await kept(app, "I love tea.", 8, SECRET.title()),
    ]
    await kept(app, "I live in Brno.", 5)
    await kept(app, "I love pottery.", 5)
    await consolidated(app)
    # The same again, so that the observations have earlier revisions.
    secrets += [await kept(app, f"I enjoy {SECRET} music.", 3), await kept(app, f"I live in {SECRET.title()}.", 2)]
    await consolidated(app)
    assert sum(SECRET in text.casefold() for text in await texts(app)) == 4
    assert files_with(tmp_path, SECRET)
    await erase(app, *secrets)
    assert files_with(tmp_path, SECRET) == []
    await consolidated(app)
    assert await texts(app) == {"Mara lives in Brno.", "Mara loves pottery."}
    assert files_with(tmp_path, SECRET) == []


async def test_what_was_planned_before_an_erasure_is_not_written_after_it(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = await kept(app, f"I love {SECRET}.", 2)
    await kept(app, "I love pottery.", 1)
    store = app.storage.store.consolidation
    step = store.step
    planned: list[int] = []

    async def erasing(work: ConsolidationWork, actions: Sequence[Action], reached: Reached) -> Any:
        if not planned:
            planned.append(len(actions))
            await erase(app, secret)
        return await step(work, actions, reached)

    monkeypatch.setattr(type(store), "step", lambda _, *parts: erasing(*parts))
    await consolidated(app)
    assert planned == [2]
    assert await texts(app) == {"Mara loves pottery."}
    assert files_with(tmp_path, SECRET) == []


async def test_no_byte_of_an_erased_source_is_left_of_what_a_model_observed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: BoundedModel(Observer()))
    consolidation = {"writer": "model", "scopes": ["bank", "entity:*", "tag:*"], "calls_per_day": 1_000}
    settings = {
        "data_dir": str(tmp_path / "model"),
        "llm_provider": "mock",
        "pipeline": {"entity_extraction": {"mode": "rules"}},
        "observations": {"consolidation": consolidation},
    }
    app = App(Settings.from_mapping(settings))
    secrets = [
        await kept(app, f"I came round to {SECRET} in {SECRET.title()}.", 9),
        await kept(app, f"Well, I came round to {SECRET} in {SECRET.title()}.", 8),
        await kept(app, f"I came round to {SECRET.title()}. I came round to tea.", 7),
    ]
    await kept(app, "I came round to tea.", 5)
    await consolidated(app)
    assert any(SECRET in text for text in await texts(app))
    assert any(SECRET in one.scope for one in await app.gate.call(ME, ListObservations(BANK)))
    # A change of one scope of several waits, and so does another one.
    await app.gate.call(ME, ConsolidateBank(BANK))
    await erase(app, *secrets)
    assert files_with(tmp_path, SECRET) == []
    for operation in (await app.gate.call(ME, ListOperations(BANK))).operations:
        await app.gate.call(ME, WaitOperation(BANK, operation.operation_id, timeout=60.0))
    await consolidated(app)
    assert await texts(app) == {"Mara came round to tea."}
    assert files_with(tmp_path, SECRET) == []
    await app.close()
