"""Random remembers, recalls and forgets of several agents against a model of the decisions.

The vectors are chosen by the machine, so that the model knows every cosine. Contents carry the name of their agent: an
answer that shows another agent's content fails.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from math import sqrt
from typing import Any

import pytest

from astrocyte.api.requests import ForgetAgentMemory, ListAgentMemories, RecallAgentMemory, Remember
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import vector_bytes, vector_values
from astrocyte.errors import NotFound
from astrocyte.model import Caller
from astrocyte.policy.operations.agents import agent_memories

DAY = 86_400_000
AGENTS = [Caller(tenant, f"agent:{name}") for tenant in ("acme", "beta") for name in ("atlas", "drake")]
TOPICS = ("infrastructure", "meals", "travel")
DIMENSIONS = 8
UPDATE, DECAY = 0.92, 90.0
STEPS, MANY = 600, 10_000


@dataclass
class Kept:
    """A memory of the model."""

    topic: str
    content: str
    vector: list[float]
    updated_at: int
    user: str | None


class Vectors:
    """An embedder whose vector of a text is drawn near one of few directions, and stays."""

    model_id = "drawn"
    dimensions = DIMENSIONS
    local = True

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._drawn: dict[str, bytes] = {}

    def embed_now(self, texts: Any) -> list[bytes]:
        return [self._vector(text) for text in texts]

    async def embed(self, texts: Any) -> list[bytes]:
        return self.embed_now(texts)

    async def close(self) -> None:
        """Nothing is open."""

    def _vector(self, text: str) -> bytes:
        if text not in self._drawn:
            axis = self._random.randrange(3)
            values = [(4.0 if place == axis else 0.0) + self._random.gauss(0, 1.2) for place in range(DIMENSIONS)]
            norm = sqrt(sum(value * value for value in values))
            self._drawn[text] = vector_bytes([value / norm for value in values])
        return self._drawn[text]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def walk(steps: int, seed: int) -> dict[str, int]:
    """Run the machine; returns the number of each event."""
    choose = random.Random(seed)
    now = [1_800_000_000_000]
    app = App(
        Settings.from_mapping(
            {
                "vector_store": "in_memory",
                "access_control": {"enabled": True},
                "agent_memory": {"min_similarity": -1.0},
            }
        ),
        clock=lambda: now[0],
    )
    embedder = Vectors(seed)
    app.gate.agent_memories._embedder = embedder
    app.gate.agent_memories._indexes._embedder = embedder
    model: dict[Caller, dict[str, Kept]] = {agent: {} for agent in AGENTS}
    seen = dict.fromkeys(("insert", "update", "recall", "forget", "foreign"), 0)
    for step in range(steps):
        now[0] += choose.randrange(DAY)
        agent = choose.choice(AGENTS)
        own = model[agent]
        action = choose.random()
        if action < 0.6:
            topic, user = choose.choice(TOPICS), choose.choice((None, "u1", "u2"))
            content = f"{agent.tenant}/{agent.principal} {step}"
            outcome = await app.gate.call(agent, Remember(topic, content, user_id=user))
            vector = list(vector_values(embedder._vector(f"{topic}\n{content}")))
            near = {
                key: cosine(one.vector, vector) for key, one in own.items() if (one.topic, one.user) == (topic, user)
            }
            best = max(near, key=lambda key: near[key], default=None)
            # Within rounding of the threshold either decision is right.
            if best is not None and abs(near[best] - UPDATE) > 1e-4:
                assert outcome.was_update is (near[best] > UPDATE)
            assert not outcome.was_update or near[outcome.memory_id] == pytest.approx(near[best or ""], abs=1e-4)
            own[outcome.memory_id] = Kept(topic, content, vector, now[0], user)
            seen["update" if outcome.was_update else "insert"] += 1
        elif action < 0.9:
            user = choose.choice((None, "u1"))
            query = f"query {choose.randrange(40)}"
            found = await app.gate.call(agent, RecallAgentMemory(query, 5, user_id=user))
            asked = list(vector_values(embedder._vector(query)))
            scores = {
                key: cosine(one.vector, asked) * 2.718281828459045 ** (-(now[0] - one.updated_at) / DAY / DECAY)
                for key, one in own.items()
                if user is None or one.user in {None, user}
            }
            expected = sorted(scores.values(), reverse=True)[:5]
            assert [hit.score for hit in found.hits] == pytest.approx(expected, abs=1e-4)
            assert all(own[hit.memory_id].content == hit.content for hit in found.hits)
            seen["recall"] += 1
        else:
            other = choose.choice([one for one in AGENTS if one != agent])
            keys = list(model[choose.choice((agent, other))]) or ["agm_none"]
            key = choose.choice(keys)
            try:
                await app.gate.call(agent, ForgetAgentMemory(key))
            except NotFound:
                assert key not in own
                seen["foreign"] += 1
            else:
                del own[key]
                seen["forget"] += 1
    for agent, own in model.items():
        listed = await app.gate.call(agent, ListAgentMemories(page_size=1_000))
        assert {one.memory_id: one.content for one in listed.memories} == {
            key: one.content for key, one in list(own.items())
        } or listed.next_page_token
    await app.close()
    return seen


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_decisions_hold(seed: int) -> None:
    seen = await walk(STEPS, seed)
    assert min(seen.values()) > 5, seen


@pytest.mark.slow
async def test_the_decisions_hold_for_long() -> None:
    seen = await walk(MANY, 3)
    assert min(seen.values()) > 100, seen


async def test_the_machine_finds_a_missing_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    # All memories count as about anybody: those about other users are updated and found.
    monkeypatch.setattr(agent_memories, "user_tag", lambda user: "any")
    monkeypatch.setattr("astrocyte.pipelines.agent_memory.index.user_tag", lambda user: "any")
    with pytest.raises(AssertionError):
        await walk(STEPS, 1)


def test_the_machine_can_be_run_twice() -> None:
    assert asyncio.run(walk(60, 9)) == asyncio.run(walk(60, 9))
