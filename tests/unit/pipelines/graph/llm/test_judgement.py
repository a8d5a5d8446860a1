"""A language model is asked about names that no rule decides: in the background, once for each, within the budget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import GetEntity, GetGraphStats, Neighbors
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ProviderUnavailable
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.messages import Completion, Prompt
from samples.entity_graphs import BANK, ME, drop, say, settled

GLORIA, MORALES = "person:gloria-hernandez", "person:gloria-morales"
Answer = Callable[[Prompt], Completion]


class Judge:
    """A model that answers by a function, and keeps what it was asked."""

    model_id = "judge"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        self.asked.append(str(prompt.messages[-1].content))
        return self.answer(prompt)

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        yield await self.complete(prompt, deadline=deadline)

    async def close(self) -> None:
        return


def says(number: int, confidence: float) -> Answer:
    reason = "Gloria took the name Morales in a secret wedding."
    return lambda _: Completion(json.dumps({"number": number, "confidence": confidence, "reason": reason}))


async def asked(app: App, judge: Judge, calls: int) -> None:
    """Wait until the model was asked so often, and then some more."""
    await settled(app)
    for _ in range(200):
        if len(judge.asked) >= calls:
            break
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.1)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., App]:
    def make(judge: Judge, **resolution: Any) -> App:
        monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: BoundedModel(judge))
        settings = {"data_dir": str(tmp_path), "llm_provider": "mock", "entity_resolution": resolution}
        return App(Settings.from_mapping(settings))

    return make


async def two_names(app: App) -> str:
    memory = await say(app, "Gloria Hernandez lives in Lisbon.")
    await settled(app)
    await say(app, "Gloria Morales plays the oboe.")
    return memory


async def test_a_sure_answer_links_the_names_and_the_words_of_the_model_are_not_kept(
    opened: Callable[..., App],
) -> None:
    judge = Judge(says(1, 0.9))
    app = opened(judge)
    memory = await two_names(app)
    await asked(app, judge, 1)
    found = await app.gate.call(ME, GetEntity(BANK, MORALES))
    assert {found.id, *found.merged_ids} == {GLORIA, MORALES}
    assert any("oboe" in text and "Lisbon" in text for text in judge.asked)
    near = await app.gate.call(ME, Neighbors(BANK, [found.id]))
    assert "place:lisbon" in [one.entity.id for one in near.entities]
    with app.storage.store._connections.snapshot() as connection:
        links = connection.execute("SELECT evidence, confidence FROM entity_links WHERE origin = 'model'").fetchall()
    assert links == [("language model", 0.9)]
    await drop(app, memory, compliance=True)
    assert (await app.gate.call(ME, GetEntity(BANK, MORALES))).merged_ids == ()
    await app.close()


async def test_what_must_not_leave_is_not_sent(opened: Callable[..., App], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "astrocyte.policy.privacy.barriers.Barriers.passages",
        lambda *given: [text.replace("Gloria", "[NAME]") for text in given[-1]],
    )
    judge = Judge(says(1, 0.9))
    app = opened(judge)
    await two_names(app)
    await asked(app, judge, 1)
    found = await app.gate.call(ME, GetEntity(BANK, MORALES))
    assert {found.id, *found.merged_ids} == {GLORIA, MORALES}
    assert any("[NAME] Hernandez" in text for text in judge.asked)
    assert not any("Gloria" in text for text in judge.asked)
    await app.close()


async def test_names_that_come_together_are_linked_once(opened: Callable[..., App]) -> None:
    judge = Judge(says(1, 0.9))
    app = opened(judge)
    await say(app, "Gloria Hernandez met Gloria Morales.")
    await settled(app)
    query = app.storage.store._connections.query
    async with asyncio.timeout(30):
        while query("SELECT 1 FROM graph_entities WHERE judged IS NULL"):  # noqa: ASYNC110 - however long that takes
            await asyncio.sleep(0.01)
    links = query("SELECT confidence FROM entity_links WHERE origin = 'model'")
    assert (links, len(judge.asked)) == ([(0.9,)], 1)
    await app.close()


@pytest.mark.parametrize("answer", [says(0, 1.0), says(1, 0.74)])
async def test_an_unsure_answer_links_nothing_and_is_not_asked_for_again(
    opened: Callable[..., App], answer: Answer
) -> None:
    judge = Judge(answer)
    app = opened(judge)
    await two_names(app)
    await asked(app, judge, 1)
    # The other name of the pair may be asked for as well.
    await asyncio.sleep(1.0)
    calls = len(judge.asked)
    assert calls
    await say(app, "It rains.")
    await asked(app, judge, calls)
    assert len(judge.asked) == calls
    assert (await app.gate.call(ME, GetGraphStats(BANK))).merged == 0
    await app.close()


async def test_the_budget_of_an_hour_is_kept(opened: Callable[..., App]) -> None:
    judge = Judge(says(0, 1.0))
    app = opened(judge, calls_per_hour=1)
    await two_names(app)
    await asked(app, judge, 1)
    assert len(judge.asked) == 1
    await app.close()


async def test_a_failing_model_stops_neither_the_graph_nor_the_other_names(opened: Callable[..., App]) -> None:
    def fail(_: Prompt) -> Completion:
        raise ProviderUnavailable("away")

    judge = Judge(fail)
    app = opened(judge)
    await two_names(app)
    await asked(app, judge, 1)
    assert (await app.gate.call(ME, GetGraphStats(BANK))).pending_memories == 0
    judge.answer = says(1, 0.9)
    for number in range(2):
        await say(app, f"It rains, as on day {number}.")
        await asked(app, judge, len(judge.asked))
    assert (await app.gate.call(ME, GetGraphStats(BANK))).merged == 1
    await app.close()


async def test_names_that_are_not_alike_are_not_compared(opened: Callable[..., App]) -> None:
    judge = Judge(says(1, 1.0))
    app = opened(judge)
    await say(app, "Gloria Hernandez lives in Lisbon.")
    await say(app, "Tariq Osman plays the oboe.")
    await asked(app, judge, 0)
    assert judge.asked == []
    await app.close()


async def test_switched_off_nobody_is_asked(opened: Callable[..., App]) -> None:
    judge = Judge(says(1, 1.0))
    app = opened(judge, enabled=False)
    await two_names(app)
    await asked(app, judge, 0)
    assert judge.asked == []
    await app.close()
