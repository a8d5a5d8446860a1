"""Random steps: what is consolidated in a scope never cites a memory outside of it, by rules and by a model."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from astrocyte.api.requests import ConsolidateBank, Forget, ListObservations, Retain, UndeleteMemory, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RetainItem
from astrocyte.providers.bounded import BoundedModel
from doubles.observing_models import Observer

ME, BANK = Caller(), "family"
TAGS = ("billing", "auth", "home")
SPEAKERS, THINGS = ("Ann", "Bo"), ("tea", "chess", "pottery", "rain")
# Steps after which a consolidation runs to its end, and what it made is compared with the tags.
CHECKED = 50
MOST_MEMORIES = 40


class Steps:
    """Random steps in a bank with the tags of its memories; the text is of a form that rules and model observe."""

    def __init__(self, app: App, form: str, seed: int) -> None:
        self.app = app
        self.call = app.gate.call
        self.form = form
        self.chance = random.Random(seed)
        self.tags: dict[str, frozenset[str]] = {}
        self.said: dict[str, str] = {}
        self.forgotten: set[str] = set()

    def some_tags(self) -> frozenset[str]:
        return frozenset(self.chance.sample(TAGS, self.chance.randint(0, 2)))

    async def retain(self) -> None:
        tags, speaker, thing = self.some_tags(), self.chance.choice(SPEAKERS), self.chance.choice(THINGS)
        item = RetainItem(self.form.format(thing), speaker=speaker, tags=tuple(tags), session_id=str(len(self.tags)))
        kept = (await self.call(ME, Retain(BANK, item))).memory_id or ""
        self.tags[kept], self.said[kept] = tags, f"{speaker}:{thing}"

    async def forget(self) -> None:
        one = self.chance.choice(sorted(set(self.tags) - self.forgotten))
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
        is_there = len(self.tags) > len(self.forgotten)
        possible = {
            self.retain: len(self.tags) < MOST_MEMORIES,
            self.forget: is_there,
            self.undelete: bool(self.forgotten),
            self.retag: is_there,
        }
        await self.chance.choice([step for step, can in possible.items() if can])()

    async def isolated(self) -> list[Any]:
        """The observations; none of a tag cites a memory without it."""
        found = list(await self.call(ME, ListObservations(BANK, page_size=1_000)))
        for one in found:
            assert all(one.scope.removeprefix("tag:") in self.tags[memory] for memory in one.source_ids)
        return found

    async def check(self) -> None:
        """After a consolidation each tag has one observation of what was said, with all memories that say it."""
        await self.isolated()
        async with asyncio.timeout(600):
            while self.app.storage.store.consolidation.work(lambda _: True, lambda _: True) is not None:  # noqa: ASYNC110 - the database tells nobody
                await asyncio.sleep(0.005)
        found = await self.isolated()
        expected: dict[tuple[str, str], set[str]] = {}
        for memory in set(self.tags) - self.forgotten:
            for tag in self.tags[memory]:
                expected.setdefault((f"tag:{tag}", self.said[memory]), set()).add(memory)
        made = {
            (one.scope, f"{one.text.split()[0]}:{one.text.split()[-1].strip('.')}"): set(one.source_ids)
            for one in found
        }
        assert made == expected


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("writer", "form", "count"),
    [
        ("rules", "I love {}.", 1_000),
        ("model", "I came round to {}.", 150),
        pytest.param("rules", "I love {}.", 10_000, marks=pytest.mark.slow),
        pytest.param("model", "I came round to {}.", 10_000, marks=pytest.mark.slow),
    ],
)
async def test_scopes_hold_through_random_steps(
    monkeypatch: pytest.MonkeyPatch, writer: str, form: str, count: int
) -> None:
    monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: BoundedModel(Observer()))
    consolidation = {
        "enabled": True, "writer": writer, "scopes": ["tag:*"], "delay_seconds": 0, "calls_per_day": 1_000_000,
        "tokens_per_day": 1_000_000_000, "memories_per_minute": 10_000_000,
    }  # fmt: skip
    settings = {
        "vector_store": "in_memory",
        "llm_provider": "mock",
        "observations": {"consolidation": consolidation},
        "signal_quality": {"dedup": {"enabled": False}},
        "entity_graph": {"enabled": False},
        "entity_resolution": {"enabled": False},
    }
    app = App(Settings.from_mapping(settings))
    steps = Steps(app, form, 1)
    await steps.retain()
    for number in range(count):
        await steps.step()
        if number % CHECKED == 0:
            await steps.check()
    await steps.check()
    await steps.call(ME, ConsolidateBank(BANK))
    await steps.check()
    await app.close()
