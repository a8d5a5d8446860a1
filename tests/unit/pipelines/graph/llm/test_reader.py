"""A language model reads memories for the graph in the background: each once, within the budget of its bank."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    DeleteBank,
    ExportGraph,
    FindPath,
    GetGraphStats,
    Neighbors,
    RebuildGraph,
    Retain,
    UndeleteMemory,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError, DeadlineExceeded, ProviderUnavailable
from astrocyte.model import LinkOrigin, MemoryUpdate, RetainItem
from astrocyte.pipelines.graph.derivation import derive
from astrocyte.pipelines.text import model_calls
from astrocyte.pipelines.text.model_calls import MOST_ATTEMPTS
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.messages import Completion, Prompt
from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from doubles.graph_models import ALLERGY, SAID, TOKENS, Model, read, until, waiting
from samples.entity_graphs import BANK, ME, counted, derived, drop, orphans, say, settled

ALICE, ASPIRIN = "person:alice-smith", "product:aspirin"


Opened = Callable[..., App]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    monkeypatch.setattr(model_calls, "FIRST_REST_SECONDS", 0.01)

    def make(model: Model, banks: dict[str, Any] | None = None, **extraction: Any) -> App:
        monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: BoundedModel(model))
        settings = {
            "data_dir": str(tmp_path),
            "llm_provider": "mock",
            "entity_resolution": {"enabled": False},
            "graph_extraction": {"mode": "llm", **extraction},
            "signal_quality": {"dedup": {"enabled": False}},
            "banks": banks or {},
        }
        return App(Settings.from_mapping(settings))

    return make


async def reactions(app: App) -> list[tuple[str, str, str, float]]:
    """The links of the model, as a caller sees them."""
    found = await app.gate.call(ME, Neighbors(BANK, [ALICE], link_types=["reacts_to"]))
    links = [one.via for one in found.entities if one.via is not None]
    assert all(link.origin is LinkOrigin.MODEL and link.memory_id for link in links)
    return [(link.entity_a, link.entity_b, link.evidence, link.confidence) for link in links]


async def test_relations_come_with_evidence_confidence_and_memory(opened: Opened) -> None:
    model = Model()
    app = opened(model)
    memory = await say(app, ALLERGY.format(1))
    await read(app)
    assert await reactions(app) == [(ALICE, ASPIRIN, ALLERGY.format(1), 0.9)]
    found = await app.gate.call(ME, FindPath(BANK, ASPIRIN, ALICE, link_types=["reacts_to"]))
    assert [link.memory_id for path in found.paths for link in path.links] == [memory]
    lines = "".join([piece async for piece in app.gate.stream(ME, ExportGraph(BANK))]).splitlines()
    assert [one["origin"] for one in map(json.loads, lines) if one.get("link_type") == "reacts_to"] == ["model"]
    assert len(model.asked) == 1
    await app.close()


async def test_a_memory_is_read_once_over_restarts(opened: Opened) -> None:
    model = Model()
    app = opened(model)
    for number in range(3):
        await say(app, ALLERGY.format(number))
    await read(app)
    before = derived(app)
    await app.close()
    app = opened(model)
    await say(app, "It rains.")
    await read(app)
    assert len(model.asked) == 4
    assert {name: derived(app)[name] for name in ("links", "entities")} == {
        name: before[name] for name in ("links", "entities")
    }
    await app.close()


async def test_a_rebuild_keeps_what_was_read_and_asks_nobody(opened: Opened) -> None:
    model = Model()
    app = opened(model)
    await say(app, ALLERGY.format(1))
    await say(app, "Bob Miller works at Acme Corp.")
    await read(app)
    before = derived(app)
    await app.gate.call(ME, RebuildGraph(BANK))
    await read(app)
    assert derived(app) == before
    assert len(model.asked) == 2
    await app.close()


async def test_a_rebuild_has_memories_read_that_were_not_or_by_another_model(opened: Opened) -> None:
    model = Model()
    app = opened(model, mode="rules")
    await say(app, ALLERGY.format(1))
    await settled(app)
    assert model.asked == []
    assert await reactions(app) == []
    await app.close()
    app = opened(model)
    await app.gate.call(ME, RebuildGraph(BANK))
    await read(app)
    assert len(await reactions(app)) == 1
    await app.close()
    other = Model("other")
    other.words = "ails_from"
    app = opened(other)
    assert len(await reactions(app)) == 1
    await app.gate.call(ME, RebuildGraph(BANK))
    await read(app)
    assert await reactions(app) == []
    assert len(other.asked) == 1
    assert (await app.gate.call(ME, GetGraphStats(BANK))).links_by_type["ails_from"] == 1
    await app.close()
    # A rebuild by rules alone drops what a model found.
    app = opened(other, mode="rules")
    await app.gate.call(ME, RebuildGraph(BANK))
    await settled(app)
    assert "ails_from" not in (await app.gate.call(ME, GetGraphStats(BANK))).links_by_type
    await app.close()


async def test_the_budget_of_a_day_is_kept_over_restarts_and_for_each_bank(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    app = opened(model, calls_per_day=2)
    for number in range(4):
        await say(app, ALLERGY.format(number))
    await until(lambda: len(model.asked) == 2)
    await app.gate.call(ME, Retain("other", RetainItem(ALLERGY.format(9))))
    # The third is stored too: a call whose answer is not yet stored is made again after a restart.
    await until(lambda: (len(model.asked), waiting(app)) == (3, 2))
    await app.close()
    app = opened(model, calls_per_day=2)
    await say(app, "It rains.")
    await settled(app)
    await asyncio.sleep(0.2)
    assert (len(model.asked), waiting(app)) == (3, 3)
    await app.close()
    # The next day.
    app = opened(model, calls_per_day=2)
    clock = app.storage.clock
    monkeypatch.setattr(app.pipelines.graph.follower._reader, "_clock", lambda: clock() + 86_400_000)
    await say(app, "It snows.")
    await until(lambda: len(model.asked) == 5)
    await asyncio.sleep(0.1)
    assert (len(model.asked), waiting(app)) == (5, 2)
    await app.close()


async def test_the_newest_memories_are_read_first(opened: Opened) -> None:
    model = Model()
    app = opened(model, mode="rules")
    for number in range(4):
        await say(app, ALLERGY.format(number))
    await settled(app)
    await app.close()
    app = opened(model)
    await app.gate.call(ME, RebuildGraph(BANK))
    await read(app)
    numbers = [int(found[3]) for text in model.asked if (found := SAID.search(text))]
    assert sorted(numbers) == [0, 1, 2, 3]
    assert numbers[0] == 3
    await app.close()


async def test_tokens_are_counted_too(opened: Opened) -> None:
    model = Model()
    app = opened(model, tokens_per_day=150)
    for number in range(4):
        await say(app, ALLERGY.format(number))
    await until(lambda: len(model.asked) == 2)
    await settled(app)
    await asyncio.sleep(0.2)
    assert (len(model.asked), waiting(app)) == (2, 2)
    assert (await app.gate.call(ME, GetGraphStats(BANK))).unread_memories == 2
    await app.close()


async def test_only_banks_that_want_it_are_read(opened: Opened) -> None:
    model = Model()
    app = opened(model, {"secret": {"graph_extraction": {"mode": "rules"}}})
    await app.gate.call(ME, Retain("secret", RetainItem(ALLERGY.format(7))))
    await say(app, ALLERGY.format(1))
    await read(app)
    assert [SAID.search(text)[3] for text in model.asked] == ["1"]  # type: ignore[index]
    await app.close()


def unavailable() -> Completion:
    raise ProviderUnavailable("away")


def late() -> Completion:
    raise DeadlineExceeded("late")


@pytest.mark.parametrize("fault", [unavailable, late, lambda: Completion("nonsense", usage=TOKENS)])
async def test_a_failing_model_stops_nothing_and_is_asked_again(
    opened: Opened, fault: Callable[[], Completion]
) -> None:
    model = Model()
    model.fault = fault
    app = opened(model)
    await say(app, ALLERGY.format(1))
    await until(lambda: len(model.asked) >= 1)
    assert (await app.gate.call(ME, GetGraphStats(BANK))).pending_memories == 0
    model.fault = None
    await read(app)
    assert len(await reactions(app)) == 1
    await app.close()


async def test_an_outage_costs_no_budget_and_gives_no_memory_up(opened: Opened) -> None:
    model = Model()
    model.fault = unavailable
    app = opened(model, calls_per_day=1)
    await say(app, ALLERGY.format(1))
    await until(lambda: len(model.asked) > MOST_ATTEMPTS)
    assert waiting(app) == 1
    model.fault = None
    await read(app)
    assert len(await reactions(app)) == 1
    await app.close()


async def test_a_memory_that_the_model_cannot_read_is_given_up(opened: Opened) -> None:
    model = Model()
    model.fault = lambda: Completion("nonsense", usage=TOKENS)
    app = opened(model)
    await say(app, ALLERGY.format(1))
    await read(app)
    assert len(model.asked) == MOST_ATTEMPTS
    rows = app.storage.store._connections.query("SELECT calls, tokens FROM model_budgets")
    assert rows == [(MOST_ATTEMPTS, MOST_ATTEMPTS * TOKENS.total)]
    model.fault = None
    await app.gate.call(ME, RebuildGraph(BANK))
    await read(app)
    assert len(await reactions(app)) == 1
    await app.close()


class Held(Model):
    """A model that answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        completion = await super().complete(prompt, deadline=deadline)
        await self.go.wait()
        return completion


@pytest.mark.parametrize("how", ["forgotten", "erased", "updated", "bank deleted", "rebuilt"])
async def test_what_happens_during_a_call_holds(opened: Opened, how: str) -> None:
    model = Held()
    app = opened(model)
    memory = await say(app, ALLERGY.format(1))
    await until(lambda: len(model.asked) == 1)
    if how == "updated":
        update = MemoryUpdate(memory, frozenset({"content"}), content="It rains.")
        await app.gate.call(ME, UpdateMemory(BANK, update))
    elif how == "bank deleted":
        await app.gate.call(ME, DeleteBank(BANK))
    elif how == "rebuilt":
        await app.gate.call(ME, RebuildGraph(BANK))
    else:
        await drop(app, memory, compliance=how == "erased")
    await settled(app)
    model.go.set()
    await read(app)
    await asyncio.sleep(0.1)
    rows = derived(app)
    query = app.storage.store._connections.query
    if how in {"erased", "bank deleted"}:
        assert rows == {"entities": [], "words": [], "mentions": [], "links": []}
        assert query("SELECT 1 FROM graph_readings") == []
    else:
        assert len([one for one in rows["links"] if one[3] == "model"]) == 1
    if how == "rebuilt":
        assert len(await reactions(app)) == 1
        assert len(model.asked) <= 2
    else:
        assert [one for one in rows["entities"] if one[2] > 0] == []
    assert (orphans(app), counted(app)) == ([], True)
    await app.close()


async def test_rows_that_were_derived_before_a_reading_do_not_replace_it(opened: Opened) -> None:
    model = Held()
    app = opened(model)
    await say(app, ALLERGY.format(1))
    await until(lambda: len(model.asked) == 1)
    (earlier,) = app.storage.store.graph.sources(0, limit=1)
    model.go.set()
    await read(app)
    await app.storage.store.graph.put([derive(earlier)], through=earlier.row_key)
    assert len(await reactions(app)) == 1
    await app.close()


async def test_a_forgotten_memory_is_not_sent_and_waits_for_its_return(opened: Opened) -> None:
    model = Model()
    model.fault = unavailable
    app = opened(model)
    memory = await say(app, ALLERGY.format(1))
    await until(lambda: len(model.asked) >= 1)
    await drop(app, memory)
    assert waiting(app) == 0
    model.fault = None
    await asyncio.sleep(0.1)
    calls = len(model.asked)
    await say(app, ALLERGY.format(2))
    await read(app)
    assert len(model.asked) == calls + 1
    await app.gate.call(ME, UndeleteMemory(BANK, memory))
    await read(app)
    assert len(model.asked) == calls + 2
    assert len([one for one in derived(app)["links"] if one[3] == "model"]) == 2
    await app.close()


async def test_a_forgotten_memory_takes_its_links_along(opened: Opened) -> None:
    app = opened(Model())
    memory = await say(app, ALLERGY.format(1))
    await say(app, "Alice Smith swims.")
    await read(app)
    await drop(app, memory)
    assert await reactions(app) == []
    await app.gate.call(ME, UndeleteMemory(BANK, memory))
    assert len(await reactions(app)) == 1
    await drop(app, memory, compliance=True)
    assert await reactions(app) == []
    assert [row[0] for row in derived(app)["entities"]] == [ALICE]
    await app.close()


def found_in(folder: Path, *needles: bytes) -> list[tuple[str, bytes]]:
    """The files that hold one of the byte strings in any case, and which."""
    files = [(path.name, path.read_bytes().lower()) for path in folder.rglob("*") if path.is_file()]
    return [(name, needle) for name, held in files for needle in needles if needle in held]


async def test_an_erasure_leaves_no_byte_of_what_was_read(opened: Opened, tmp_path: Path) -> None:
    model = Model()
    model.words = "qzxreacts_to"
    app = opened(model)
    memory = await say(app, ALLERGY.format(1))
    await say(app, "It rains.")
    await read(app)
    assert found_in(tmp_path, b"qzxreacts")
    await drop(app, memory, compliance=True)
    await app.close()
    assert (tmp_path / DATABASE).exists()
    assert found_in(tmp_path, b"qzxreacts", b"aspirin", b"rash from") == []


async def test_what_must_not_leave_is_not_sent(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    app = opened(model)
    withheld = app.pipelines.graph.follower._reader
    assert withheld is not None
    monkeypatch.setattr(withheld, "_withheld", lambda _, texts: [text.replace("Alice", "[NAME]") for text in texts])
    await say(app, ALLERGY.format(1), speaker="Alice Smith")
    await read(app)
    assert len(model.asked) == 1
    assert "Alice" not in model.asked[0]
    assert "speaker: [NAME] Smith" in model.asked[0]
    assert await reactions(app) == []
    await app.close()


def test_the_mode_needs_a_model_and_a_graph(tmp_path: Path) -> None:
    for settings in (
        {"graph_extraction": {"mode": "llm"}},
        {"banks": {"a": {"graph_extraction": {"mode": "llm"}}}},
        {"graph_extraction": {"mode": "llm"}, "llm_provider": "mock", "entity_graph": {"enabled": False}},
    ):
        with pytest.raises(ConfigError, match="graph_extraction"):
            App(Settings.from_mapping({"data_dir": str(tmp_path), **settings}))
