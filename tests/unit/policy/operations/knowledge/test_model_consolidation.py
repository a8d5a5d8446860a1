"""Consolidation by a language model: its observations, and what happens during a call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from astrocyte.api.requests import (
    ConsolidateBank,
    Forget,
    ListObservations,
    PlaceHold,
    UpdateMemory,
    UpdateObservation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError, Conflict
from astrocyte.model import (
    ForgetSelector,
    MemoryUpdate,
)
from astrocyte.pipelines.knowledge.model_writer import ModelWriter
from astrocyte.providers.messages import Completion, Prompt
from astrocyte.stores.knowledge.consolidation import ConsolidationWork, Reached
from doubles.model_consolidations import (
    BANK,
    ME,
    NOW,
    Opened,
    consolidated,
    kept,
    observed,
    spent,
    until,
    until_observed,
)
from doubles.observing_models import TOKENS, Observer, action


async def test_creates_and_updates_with_evidence_and_a_second_run_changes_nothing(opened: Opened) -> None:
    model = Observer()
    app = opened(model)
    sources = {await kept(app, "I came round to pottery.", 3), await kept(app, "Well. I came round to pottery.", 1)}
    await kept(app, "I love tea.")
    done = await consolidated(app)
    assert (done.created, done.updated, done.seen, done.total) == (1, 1, 3, 3)
    (found,) = (await observed(app)).values()
    assert (found.text, set(found.source_ids)) == ("Mara came round to pottery.", sources)
    assert (found.confidence, found.valid_from, found.created_by) == (0.9, NOW - timedelta(days=3), "astrocyte")
    assert spent(app) == [(3, 3 * TOKENS.total)]
    again = await consolidated(app)
    assert (again.created, again.updated, again.deleted) == (0, 0, 0)
    assert (await observed(app))[found.text].revision == 2
    await app.close()


async def test_an_update_that_differs_in_a_name_supersedes_by_date(opened: Opened) -> None:
    def moves(memories: Any, known: list[str]) -> Any:
        (number, _, text), *_ = memories
        said = "Mara " + text.removeprefix("I ")
        return [action("update" if known else "create", 1 if known else 0, said, **{f"m{number}": text})]

    app = opened(Observer(moves))
    await kept(app, "I settled down in Oslo.", 2)
    await kept(app, "I settled down in Brno.", 9)
    done = await consolidated(app)
    assert (done.created, done.superseded) == (2, 0)
    found = await observed(app)
    brno, oslo = found["Mara settled down in Brno."], found["Mara settled down in Oslo."]
    assert (brno.superseded_by, brno.valid_until) == (oslo.observation_id, NOW - timedelta(days=2))
    assert (oslo.superseded_by, oslo.proof_count, brno.proof_count) == ("", 1, 1)
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=oslo.source_ids)))
    assert (await observed(app))["Mara settled down in Brno."].superseded_by == ""
    await app.close()


async def test_a_denied_observation_is_deleted_and_a_rewritten_or_held_one_stays(opened: Opened) -> None:
    def deny(memories: Any, known: list[str]) -> Any:
        (number, _, text), *_ = memories
        if "gave up" in text:
            told = [action("create", 0, "Mara gave up pottery.", m1=text)]
            return told + [
                action("delete", place, m1="pottery") for place, one in enumerate(known, 1) if "gave" not in one
            ]
        return [action("create", 0, "Mara " + text.removeprefix("I "), **{f"m{number}": text})]

    app = opened(Observer(deny))
    held = await kept(app, "I came round to fine pottery.", 9)
    for text in ("I came round to pottery.", "I sold some pottery."):
        await kept(app, text, 8)
    await consolidated(app)
    await app.gate.call(ME, PlaceHold(BANK, reason="a case", memory_ids=[held]))
    sold = (await observed(app))["Mara sold some pottery."].observation_id
    await app.gate.call(ME, UpdateObservation(BANK, sold, "Mara trades in pottery."))
    await kept(app, "I gave up pottery.", 1)
    assert len(await observed(app)) == 3
    await consolidated(app)
    assert set(await observed(app)) == {
        "Mara came round to fine pottery.", "Mara trades in pottery.", "Mara gave up pottery."
    }  # fmt: skip
    await app.close()


async def test_an_outdated_observation_is_kept_while_its_sources_say_it_and_read_again_otherwise(
    opened: Opened,
) -> None:
    model = Observer()
    app = opened(model)
    one, two = await kept(app, "I came round to pottery.", 2), await kept(app, "Yes, I came round to pottery.", 1)
    await consolidated(app)
    asked = len(model.asked)
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(one, frozenset({"content"}), "I came round to chess.")))
    await consolidated(app)
    found = await observed(app)
    assert found["Mara came round to pottery."].source_ids == (two,)
    assert found["Mara came round to chess."].source_ids == (one,)
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(two,))))
    assert set(await observed(app)) == {"Mara came round to chess."}
    await consolidated(app)
    assert set(await observed(app)) == {"Mara came round to chess."}
    assert len(model.asked) > asked
    await app.close()


async def test_a_memory_is_read_for_the_scopes_that_follow_one_that_it_left(opened: Opened) -> None:
    app = opened(Observer(), scopes=["tag:*"], enabled=True)
    memory = await kept(app, "I came round to pottery.", 1, "alpha")
    await until_observed(app, 1)
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(memory, frozenset({"tags"}), tags=("beta",))))
    async with asyncio.timeout(30):
        while [one.scope for one in (await observed(app)).values()] != ["tag:beta"]:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
    await app.close()


async def test_what_is_left_to_the_rules_keeps_the_sources_that_still_say_it(opened: Opened) -> None:
    model = Observer()
    app = opened(model)
    one, two = await kept(app, "I came round to pottery.", 2), await kept(app, "Yes, I came round to pottery.", 1)
    await consolidated(app)
    model.fault = lambda: Completion("nonsense", usage=TOKENS)
    await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(one, frozenset({"content"}), "I came round to chess.")))
    await consolidated(app)
    assert {text: found.source_ids for text, found in (await observed(app)).items()} == {
        "Mara came round to pottery.": (two,)
    }
    await app.close()


async def test_a_bank_that_no_longer_waits_for_anything_wakes_nobody_again(opened: Opened) -> None:
    app = opened(Observer())
    (writer,) = [part._writer for part in app.pipelines.consolidator._parts if isinstance(part._writer, ModelWriter)]
    writer._waiting = {1: 0.0, 2: float("inf")}
    assert writer.rest() == 0.0
    assert writer._waiting == {2: float("inf")}
    writer._waiting = {1: 0.0}
    assert (writer.rest(), writer.rest()) == (0.0, None)
    await app.close()


async def test_banks_choose_whether_and_who_writes(opened: Opened) -> None:
    model = Observer()
    own = {
        "rules": {"observations": {"consolidation": {"writer": "rules", "enabled": True}}},
        "model": {"observations": {"consolidation": {"enabled": True}}},
    }
    app = opened(model, own)
    for bank in ("rules", "model", "off"):
        await kept(app, "I love tea. I came round to chess.", bank=bank)
    await until_observed(app, 1, "rules")
    await until_observed(app, 1, "model")
    assert set(await observed(app, "rules")) == {"Mara loves tea."}
    assert set(await observed(app, "model")) == {"Mara came round to chess."}
    await asyncio.sleep(0.1)
    assert await observed(app, "off") == {}
    assert len(model.asked) == 1
    await app.close()


class Held(Observer):
    """A model that answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        completion = await super().complete(prompt, deadline=deadline)
        await self.go.wait()
        return completion


@pytest.mark.parametrize("how", ["forgotten", "erased", "untagged", "consolidated anew"])
async def test_what_happens_during_a_call_holds(opened: Opened, how: str) -> None:
    model = Held()
    app = opened(model, enabled=True, scopes=["tag:work"])
    memory = await kept(app, "I came round to pottery.", 0, "work")
    await until(lambda: model.asked)
    if how == "untagged":
        await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(memory, frozenset({"tags"}), tags=())))
    elif how == "consolidated anew":
        await app.gate.call(ME, ConsolidateBank(BANK))
    else:
        selector = ForgetSelector(memory_ids=(memory,))
        await app.gate.call(ME, Forget(BANK, selector, compliance=how == "erased"))
    model.go.set()
    await consolidated(app) if how != "consolidated anew" else await asyncio.sleep(0.5)
    expected = {"Mara came round to pottery."} if how == "consolidated anew" else set()
    assert set(await observed(app)) == expected
    rows = app.storage.store._connections.query("SELECT count(*) FROM knowledge_items")
    assert rows == [(len(expected),)]
    await app.close()


async def test_each_scope_is_read_by_itself(opened: Opened) -> None:
    model = Observer()
    app = opened(model, scopes=["bank", "tag:*"])
    work = await kept(app, "I came round to pottery.", 2, "work", "art")
    home = await kept(app, "Oh, I came round to pottery.", 1, "home")
    await consolidated(app)
    found = {one.scope: set(one.source_ids) for one in await app.gate.call(ME, ListObservations(BANK))}
    assert found == {"bank": {work, home}, "tag:work": {work}, "tag:art": {work}, "tag:home": {home}}
    assert len(model.asked) == 5
    assert sum("Oh, I came" in text for text in model.asked) == 2
    await app.close()


async def test_personal_data_stays_from_the_model_and_from_what_it_observes(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Observer()
    app = opened(model)
    (writer,) = [part._writer for part in app.pipelines.consolidator._parts if isinstance(part._writer, ModelWriter)]
    told: list[str] = []

    def withheld(bank_id: str, texts: Sequence[str]) -> list[str]:
        told.append(bank_id)
        return [text.replace("Mara", "[NAME]").replace("pottery", "[CRAFT]") for text in texts]

    monkeypatch.setattr(writer, "_withheld", withheld)
    await kept(app, "I came round to chess. Mara made pottery.")
    await consolidated(app)
    assert set(told) == {BANK}
    assert not any("Mara" in text or "pottery" in text for text in model.asked)
    assert "[NAME]: I came round to chess. [NAME] made [CRAFT]." in model.asked[0]
    assert not any("pottery" in text for text in await observed(app))
    await app.close()


def test_a_model_must_be_there() -> None:
    settings = {"vector_store": "in_memory", "observations": {"consolidation": {"writer": "model"}}}
    with pytest.raises(ConfigError, match="model needs a language model; set llm_provider"):
        App(Settings.from_mapping(settings))


@pytest.mark.parametrize("key", ["delay_seconds", "memories_per_minute"])
def test_shared_settings_are_not_of_a_bank(key: str) -> None:
    banks = {BANK: {"observations": {"consolidation": {key: 7}}}}
    with pytest.raises(ConfigError, match=f"{key} cannot be set per bank"):
        Settings.from_mapping({"banks": banks})


@pytest.mark.parametrize("scope", ["tag:", "entity: ", "person:x", ""])
def test_a_scope_has_one_of_three_forms(scope: str) -> None:
    with pytest.raises(ConfigError, match="scopes"):
        Settings.from_mapping({"observations": {"consolidation": {"scopes": [scope]}}})


async def test_an_answer_to_a_place_that_was_passed_meanwhile_is_not_stored(opened: Opened) -> None:
    app = opened(Observer())
    await kept(app, "I love tea.")
    bank = app.storage.store.get_bank(ME.tenant, BANK)
    assert bank is not None
    work = ConsolidationWork(bank, position=0, target=bank.position, key=0)
    consolidations = app.storage.store.consolidation
    await consolidations.step(work, (), Reached(bank.position))
    with pytest.raises(Conflict, match="meanwhile"):
        await consolidations.step(work, (), Reached(0, scope_done="bank", tokens=7))
    assert spent(app) == []
    await app.close()


async def test_an_erasure_leaves_no_name_of_a_scope(opened: Opened) -> None:
    app = opened(Observer(), scopes=["entity:*"])
    memory = await kept(app, "I love tea.")
    await kept(app, "I love chess.")
    bank = app.storage.store.get_bank(ME.tenant, BANK)
    assert bank is not None
    work = ConsolidationWork(bank, position=0, target=bank.position, key=0)
    await app.storage.store.consolidation.step(work, (), Reached(0, scope_done="entity:person:mara"))
    sql = "SELECT scope_done FROM consolidations"
    assert app.storage.store._connections.query(sql) == [("entity:person:mara",)]
    await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(memory,)), compliance=True))
    assert app.storage.store._connections.query(sql) == [("",)]
    await app.close()


@pytest.mark.parametrize("gone", [False, True], ids=["a source changed", "a source is gone"])
async def test_a_held_observation_stays_as_it_is_and_is_read_past(opened: Opened, *, gone: bool) -> None:
    app = opened(Observer())
    one, two = await kept(app, "I came round to pottery.", 2), await kept(app, "Yes, I came round to pottery.", 1)
    await consolidated(app)
    (before,) = rows(app)
    await app.gate.call(ME, PlaceHold(BANK, reason="a case", memory_ids=[two]))
    if gone:
        await app.gate.call(ME, Forget(BANK, ForgetSelector(memory_ids=(one,))))
    else:
        await app.gate.call(ME, UpdateMemory(BANK, MemoryUpdate(one, frozenset({"tags"}), tags=("home",))))
    # The held one is not shown without a source, so that another one says what the other source says, once.
    assert [(await consolidated(app)).created for _ in range(2)] == [int(gone), 0]
    assert len(rows(app)) == 1 + gone
    assert before in rows(app)
    assert set(await observed(app)) == {"Mara came round to pottery."}
    await app.close()


def rows(app: App) -> list[tuple[int, int]]:
    """Key and revision of each observation, hidden ones too."""
    return app.storage.store._connections.query("SELECT item_key, revision FROM knowledge_items ORDER BY item_key")
