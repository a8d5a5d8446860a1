"""A language model that reads sentences of one form for entity graphs, and waits for it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable

from astrocyte.app import App
from astrocyte.providers.messages import Completion, Prompt, TokenUsage
from samples.entity_graphs import settled

# Nothing that a rule knows.
ALLERGY = "Alice Smith came out in a rash from aspirin number {}."
SAID = re.compile(r"(Alice Smith) came out in a rash from (aspirin) number (\d+)\.")
TOKENS = TokenUsage(70, 30)


def graph_of(text: str, words: str, pattern: re.Pattern[str] = SAID) -> str:
    """The answer of a model that reads links of the type ``words`` in the sentences that a pattern matches."""
    names, relations = [], []
    for found in pattern.finditer(text):
        names += [{"name": found[1], "type": "PERSON"}, {"name": found[2], "type": "PRODUCT"}]
        relations.append(
            {"source": found[1], "target": found[2], "type": words, "evidence": found[0], "confidence": 0.9}
        )
    return json.dumps({"names": names, "relations": relations})


class Model:
    """A model that reads, and keeps what it was asked; ``fault`` answers in its place while it is set."""

    def __init__(self, model_id: str = "reader", pattern: re.Pattern[str] = SAID) -> None:
        self.model_id = model_id
        self.pattern = pattern
        self.asked: list[str] = []
        self.fault: Callable[[], Completion] | None = None
        self.words = "reacts_to"

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        text = str(prompt.messages[-1].content)
        self.asked.append(text)
        return self.fault() if self.fault else Completion(graph_of(text, self.words, self.pattern), usage=TOKENS)

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        yield await self.complete(prompt, deadline=deadline)

    async def close(self) -> None:
        return


def waiting(app: App) -> int:
    """Number of the versions that wait for the model."""
    rows = app.storage.store._connections.query("SELECT count(*) FROM graph_readings WHERE waiting = 1")
    return int(rows[0][0])


async def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)


async def read(app: App) -> None:
    """Wait until everything is in the graph, and nothing waits for the model."""
    await settled(app)
    await until(lambda: not waiting(app))
    await settled(app)
