"""Random steps: an observation cites memories of its scope only, and is there exactly while all of them are."""

from __future__ import annotations

import random

import pytest

from astrocyte.api.requests import (
    CreateObservation,
    Forget,
    ListObservations,
    Retain,
    UndeleteMemory,
    UpdateMemory,
    UpdateObservation,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import FailedPrecondition, MemoryNotFound, NotFound
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RetainItem

ME, BANK = Caller(), "family"
TAGS = ("billing", "auth", "home")
# Of each seed; 10,000 together.
STEPS = 2_500
# Steps after which everything is compared with the model; each comparison reads all observations.
CHECKED = 50
MOST_MEMORIES, MOST_OBSERVATIONS = 60, 80


class Steps:
    """Random steps in a bank, and what the bank should hold: tags by memory, scope and sources by observation."""

    def __init__(self, app: App, seed: int) -> None:
        self.call = app.gate.call
        self.chance = random.Random(seed)
        self.tags: dict[str, frozenset[str]] = {}
        self.forgotten: set[str] = set()
        self.observations: dict[str, tuple[str, tuple[str, ...]]] = {}

    def fits(self, scope: str, sources: tuple[str, ...]) -> bool:
        return all(
            one not in self.forgotten and (scope == "bank" or scope.removeprefix("tag:") in self.tags[one])
            for one in sources
        )

    def some_tags(self) -> frozenset[str]:
        return frozenset(self.chance.sample(TAGS, self.chance.randint(0, 2)))

    def some_sources(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.chance.choices(list(self.tags), k=self.chance.randint(1, 3)))))

    async def retain(self) -> None:
        tags, text = self.some_tags(), f"Fact {self.chance.random()}."
        kept = await self.call(ME, Retain(BANK, RetainItem(text, tags=tuple(tags))))
        self.tags[kept.memory_id or ""] = tags

    async def create(self) -> None:
        scope = self.chance.choice(("bank", *(f"tag:{tag}" for tag in TAGS)))
        sources = self.some_sources()
        try:
            made = await self.call(ME, CreateObservation(BANK, f"Statement {self.chance.random()}.", sources, scope))
        except (FailedPrecondition, MemoryNotFound):
            assert not self.fits(scope, sources)
        else:
            assert self.fits(scope, sources)
            self.observations[made.observation_id] = (scope, sources)

    async def update(self) -> None:
        name = self.chance.choice(sorted(self.observations))
        scope, former = self.observations[name]
        sources = self.some_sources()
        try:
            await self.call(ME, UpdateObservation(BANK, name, evidence=sources))
        except (FailedPrecondition, NotFound):
            assert not (self.fits(scope, sources) and self.fits(scope, former))
        else:
            assert self.fits(scope, sources)
            self.observations[name] = (scope, sources)

    async def forget(self) -> None:
        one = self.chance.choice(list(self.tags))
        await self.call(ME, Forget(BANK, ForgetSelector(memory_ids=(one,))))
        self.forgotten.add(one)

    async def undelete(self) -> None:
        one = self.chance.choice(sorted(self.forgotten))
        await self.call(ME, UndeleteMemory(BANK, one))
        self.forgotten.discard(one)

    async def retag(self) -> None:
        one, tags = self.chance.choice(sorted(set(self.tags) - self.forgotten)), self.some_tags()
        await self.call(ME, UpdateMemory(BANK, MemoryUpdate(one, frozenset({"tags"}), tags=tuple(tags))))
        self.tags[one] = tags

    async def step(self) -> None:
        possible = {
            self.retain: len(self.tags) < MOST_MEMORIES,
            self.create: bool(self.tags) and len(self.observations) < MOST_OBSERVATIONS,
            self.update: bool(self.observations),
            self.forget: bool(self.tags),
            self.undelete: bool(self.forgotten),
            self.retag: len(self.tags) > len(self.forgotten),
        }
        await self.chance.choice([step for step, can in possible.items() if can])()

    async def check(self) -> None:
        found = await self.call(ME, ListObservations(BANK, page_size=1_000))
        assert {one.observation_id: (one.scope, one.source_ids) for one in found} == {
            name: (scope, sources) for name, (scope, sources) in self.observations.items() if self.fits(scope, sources)
        }


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
async def test_scopes_and_sources_hold_through_random_steps(seed: int) -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    steps = Steps(app, seed)
    await steps.retain()
    for number in range(STEPS):
        await steps.step()
        if number % CHECKED == 0:
            await steps.check()
    await app.close()
