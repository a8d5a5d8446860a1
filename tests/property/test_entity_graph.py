"""The entity graph after random operations equals one that is derived anew from the memories."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import (
    CreateBank,
    CreateEntityLink,
    DeleteEntityLink,
    ListEntities,
    MergeEntities,
    RebuildGraph,
    Retain,
    SplitEntity,
    UndeleteMemory,
    UpdateEntity,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError
from astrocyte.model import MemoryUpdate, NewEntityLink, RetainItem
from astrocyte.pipelines.text import model_calls
from astrocyte.providers.bounded import BoundedModel
from astrocyte.stores.sqlite.graph import derived_rows
from doubles.graph_models import Model, read
from samples.entity_graphs import BANK, ME, counted, derived, drop, orphans, say, settled

PEOPLE = (
    "Alice Smith", "Alice Johnson", "A. Smith", "Adam Smith", "Bob Miller", "Robert Miller", "Bob", "Alice",
    "Carla Jones", "José García", "Jose Garcia", "Dr. Carla Jones",
)  # fmt: skip
PLACES = ("Acme Corp", "Acme", "Globex Inc.", "Paris", "Project Apollo")
SENTENCES = (
    "{0} works at {2}.",
    "{0} sat beside {1}.",
    "{0} (formerly {1}) joined the team.",
    "{0} is married to {1}.",
    "We talked about {2} with {0} and {1}.",
    "{0} lives in Paris.",
    "{0}, also known as {1}, left {2}.",
)
STEPS = 60
# What a language model reads: nothing of it is a relation that the rules know.
BESIDE = re.compile(r"(\w[\w. ]+?) sat beside (\w[\w. ]+?)\.")


def sentence(choose: random.Random) -> str:
    one, other = choose.sample(PEOPLE, 2)
    text = " ".join(choose.choice(SENTENCES) for _ in range(choose.randint(1, 3)))
    # A number keeps two memories from being duplicates.
    return text.format(one, other, choose.choice(PLACES)) + f" Note {choose.randrange(10**9)}."


class Machine:
    """Random operations on one bank."""

    def __init__(self, app: App, choose: random.Random, *, links: bool) -> None:
        self.app = app
        self.choose = choose
        self.alive: list[str] = []
        self.forgotten: list[str] = []
        self.stored: list[str] = []
        self.steps: list[tuple[int, Callable[[], Awaitable[Any]]]] = [
            (6, self.retain),
            (2, self.update),
            (2, self.forget),
            (1, self.undelete),
            (1, self.erase),
            (1, self.merge),
            (1, self.split),
            (1, self.purge),
            (1, lambda: settled(app)),
        ]
        if links:
            self.steps += [(1, self.link), (1, self.unlink), (1, self.rename)]

    async def run(self) -> None:
        weights, steps = zip(*self.steps, strict=True)
        for _ in range(STEPS):
            await self.choose.choices(steps, weights)[0]()
        await settled(self.app)
        assert counted(self.app)

    async def retain(self) -> None:
        speaker = self.choose.choice([None, "Alice Smith", "Bob"])
        self.alive.append(await say(self.app, sentence(self.choose), speaker=speaker))

    async def update(self) -> None:
        if self.alive:
            memory = self.choose.choice(self.alive)
            update = MemoryUpdate(memory, frozenset({"content"}), content=sentence(self.choose))
            await self.app.gate.call(ME, UpdateMemory(BANK, update))

    async def forget(self) -> None:
        if self.alive:
            memory = self.alive.pop(self.choose.randrange(len(self.alive)))
            self.forgotten.append(memory)
            await drop(self.app, memory)

    async def undelete(self) -> None:
        if self.forgotten:
            memory = self.forgotten.pop(self.choose.randrange(len(self.forgotten)))
            self.alive.append(memory)
            await self.app.gate.call(ME, UndeleteMemory(BANK, memory))

    async def erase(self) -> None:
        every = [*self.alive, *self.forgotten]
        if every:
            memory = self.choose.choice(every)
            self.alive = [one for one in self.alive if one != memory]
            self.forgotten = [one for one in self.forgotten if one != memory]
            await drop(self.app, memory, compliance=True)

    async def purge(self) -> None:
        self.forgotten.clear()
        await self.app.storage.store.purge(2**62)

    async def some(self, number: int) -> list[str]:
        page = await self.app.gate.call(ME, ListEntities(BANK))
        ids = [one for entity in page.entities for one in (entity.id, *entity.merged_ids)]
        return self.choose.sample(ids, number) if len(ids) >= number else []

    async def merge(self) -> None:
        if found := await self.some(2):
            await self.attempt(MergeEntities(BANK, [found[0]], found[1]))

    async def split(self) -> None:
        if found := await self.some(1):
            await self.attempt(SplitEntity(BANK, found[0]))

    async def link(self) -> None:
        if found := await self.some(2):
            made = await self.attempt(
                CreateEntityLink(BANK, [NewEntityLink(found[0], found[1], "knows", "a caller says so")])
            )
            self.stored += [one.link_id for one in made or ()]

    async def unlink(self) -> None:
        if self.stored:
            await self.attempt(DeleteEntityLink(BANK, self.stored.pop(self.choose.randrange(len(self.stored)))))

    async def rename(self) -> None:
        if found := await self.some(1):
            names = self.choose.sample(PEOPLE, 2)
            await self.attempt(UpdateEntity(BANK, found[0], names[0], (names[1],)))

    async def attempt(self, request: Any) -> Any:
        """The answer of a call; a refusal changes nothing."""
        try:
            return await self.app.gate.call(ME, request)
        except AstrocyteError:
            return None


async def opened(path: Path, **settings: Any) -> App:
    given = {"data_dir": str(path), "signal_quality": {"dedup": {"enabled": False}}, **settings}
    app = App(Settings.from_mapping(given))
    app.start_purging()
    await app.gate.call(ME, CreateBank(BANK))
    return app


@pytest.mark.parametrize("seed", range(6))
async def test_a_rebuild_changes_nothing(tmp_path: Path, seed: int) -> None:
    app = await opened(tmp_path)
    await Machine(app, random.Random(seed), links=True).run()
    before = derived(app)
    assert all(before[name] for name in ("entities", "mentions", "links"))
    await app.gate.call(ME, RebuildGraph(BANK))
    await settled(app)
    assert app.storage.store.graph.rebuilds() == []
    assert derived(app) == before
    await app.close()


def reads(model: Model) -> int:
    """The number of memories that a model was shown, without the names that it was asked for."""
    return sum(text.startswith("<memory ") for text in model.asked)


@pytest.mark.parametrize("seed", range(4))
async def test_a_rebuild_changes_nothing_of_what_a_model_read(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(pattern=BESIDE)
    monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: BoundedModel(model))
    monkeypatch.setattr(model_calls, "FIRST_REST_SECONDS", 0.01)
    resolution = {"similarity_threshold": 1.0, "calls_per_hour": 1}
    app = await opened(tmp_path, llm_provider="mock", graph_extraction={"mode": "llm"}, entity_resolution=resolution)
    machine = Machine(app, random.Random(300 + seed), links=True)
    await machine.run()
    # A version that was replaced or forgotten before it was read is not read.
    await read(app)
    before = derived(app)
    links = [row for row in before["links"] if row[2] == model.words]
    assert links
    assert {row[3] for row in links} == {"model"}
    asked = reads(model)
    await app.gate.call(ME, RebuildGraph(BANK))
    await read(app)
    assert derived(app) == before
    assert orphans(app) == []
    assert reads(model) == asked
    for memory in [*machine.alive, *machine.forgotten]:
        await drop(app, memory, compliance=True)
    assert [row for row in derived(app)["links"] if row[3] == "model"] == []
    assert app.storage.store._connections.query("SELECT count(*) FROM graph_readings") == [(0,)]
    await app.close()


@pytest.mark.parametrize("seed", range(6))
async def test_an_entity_goes_with_its_last_mention_or_link(tmp_path: Path, seed: int) -> None:
    app = await opened(tmp_path)
    machine = Machine(app, random.Random(200 + seed), links=True)
    for _ in range(3):
        await machine.run()
        assert orphans(app) == []
    for memory in [*machine.alive, *machine.forgotten]:
        await drop(app, memory, compliance=True)
        assert orphans(app) == []
    for link in machine.stored:
        await machine.attempt(DeleteEntityLink(BANK, link))
    assert derived(app) == {"entities": [], "words": [], "mentions": [], "links": []}
    await app.close()


async def test_without_the_deletion_of_entities_some_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derived_rows, "settle", lambda *_: None)
    app = await opened(tmp_path)
    machine = Machine(app, random.Random(200), links=True)
    await machine.run()
    for memory in [*machine.alive, *machine.forgotten]:
        await drop(app, memory, compliance=True)
    assert orphans(app) != []
    await app.close()


@pytest.mark.parametrize("seed", range(6))
async def test_the_graph_is_that_of_a_bank_with_the_same_memories(tmp_path: Path, seed: int) -> None:
    app = await opened(tmp_path / "lived")
    machine = Machine(app, random.Random(100 + seed), links=False)
    await machine.run()
    # What is forgotten may come back, and so its names still count among the candidates.
    await machine.purge()
    await settled(app)
    fresh = await opened(tmp_path / "fresh")
    ids = await replayed(app, fresh)
    await settled(fresh)
    assert facts(fresh, {}) == facts(app, ids)
    await fresh.close()
    await app.close()


async def replayed(app: App, fresh: App) -> dict[str, str]:
    """Store the same versions in another bank, in the same order; returns the new ids by the old ones."""
    sql = (
        "SELECT m.memory_id, m.version, c.content, c.speaker FROM memories m JOIN contents c USING (row_key)"
        " ORDER BY m.row_key"
    )
    with app.storage.store._connections.snapshot() as connection:
        rows = connection.execute(sql).fetchall()
    ids: dict[str, str] = {}
    for memory_id, version, content, speaker in rows:
        if version == 1:
            result = await fresh.gate.call(
                ME, Retain(BANK, RetainItem(str(content), speaker=None if speaker is None else str(speaker)))
            )
            ids[str(memory_id)] = str(result.memory_id)
        else:
            update = MemoryUpdate(ids[str(memory_id)], frozenset({"content"}), content=str(content))
            await fresh.gate.call(ME, UpdateMemory(BANK, update))
    return ids


def facts(app: App, ids: dict[str, str]) -> dict[str, list[tuple[Any, ...]]]:
    """The derived rows, with the memories' ids replaced; what callers merged or split is left out."""
    rows = derived(app)
    rows["links"] = [row for row in rows["links"] if row[3] != "caller"]
    return {
        name: sorted(
            (tuple(ids.get(value, value) if isinstance(value, str) else value for value in row) for row in own),
            key=repr,
        )
        for name, own in rows.items()
    }
