"""A language model that observes what sentences of one form say, for consolidations."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from astrocyte.providers.messages import Completion, Prompt, TokenUsage

TOKENS = TokenUsage(80, 20)
ENTRY = re.compile(r"^\[(\d+)\](?: \([^)]*\))?(?: ([^:\]]+):)? (.*)$")
# Nothing that a rule knows.
SAID = re.compile(r"I came round to (\w+)(?: in (\w+))?\.")
Shown = list[tuple[int, str, str]]


def parts(prompt: str) -> tuple[Shown, list[str]]:
    """Number, speaker and text of the memories that a prompt shows, and the texts of the observations."""
    found: dict[str, list[re.Match[str]]] = {"memories": [], "observations": []}
    block = ""
    for line in prompt.splitlines():
        if (fence := re.fullmatch(r"<(/?)(memories|observations) [0-9a-f]+>", line)) is not None:
            block = "" if fence[1] else fence[2]
        elif block and (entry := ENTRY.match(line)) is not None:
            found[block].append(entry)
    memories = [(int(one[1]), one[2] or "", one[3]) for one in found["memories"]]
    return memories, [one[0].partition("] ")[2] for one in found["observations"]]


def action(act: str, number: int = 0, text: str = "", confidence: Any = 0.9, **evidence: str) -> dict[str, Any]:
    """An action of an answer; evidence by the memory's number, as in ``m1="..."``."""
    told = [{"memory": int(name[1:]), "passage": passage} for name, passage in evidence.items()]
    return {"action": act, "observation": number, "text": text, "confidence": confidence, "evidence": told}


def observing(memories: Shown, observations: list[str]) -> list[dict[str, Any]]:
    """Observes each sentence of the form `SAID`; what is observed already gets the evidence."""
    actions: list[dict[str, Any]] = []
    for number, speaker, text in memories:
        for found in SAID.finditer(text):
            said = f"{speaker} came round to {found[1]}."
            place = observations.index(said) + 1 if said in observations else 0
            act = "update" if place else "create"
            actions.append(action(act, place, said, **{f"m{number}": found[0]}))
    return actions


class Observer:
    """A model that observes, and keeps what it was asked; ``fault`` answers in its place while it is set."""

    def __init__(self, answer: Callable[[Shown, list[str]], list[dict[str, Any]]] = observing) -> None:
        self.model_id = "observer"
        self.answer = answer
        self.asked: list[str] = []
        self.systems: list[str] = []
        self.fault: Callable[[], Completion] | None = None

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        text = str(prompt.messages[-1].content)
        self.asked.append(text)
        self.systems.append(prompt.messages[0].content)
        if self.fault is not None:
            return self.fault()
        return Completion(json.dumps({"actions": self.answer(*parts(text))}), usage=TOKENS)

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        yield await self.complete(prompt, deadline=deadline)

    async def close(self) -> None:
        return
