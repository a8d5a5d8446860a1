"""Random remembers, recalls, forgets and reviews of terms of several agents against a model of the decisions.

The vectors are chosen by the machine, so that the model knows every cosine. Contents carry the name of their agent: an
answer that shows another agent's content fails.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any

import pytest

from astrocyte.api.requests import (
    ForgetAgentMemory,
    ListAgentMemories,
    ProposeTerm,
    Recall,
    RecallAgentMemory,
    Remember,
    Retain,
    ReviewTerm,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import vector_bytes, vector_values
from astrocyte.errors import NotFound
from astrocyte.model import Caller, RecallQuery, RetainItem, SourceTag, TermDecision
from astrocyte.pipelines.agent_memory.ranking import canonical_hits
from astrocyte.policy.operations.agents import agent_memories
from samples.agent_stores import database

DAY = 86_400_000
AGENTS = [Caller(tenant, f"agent:{name}") for tenant in ("acme", "beta") for name in ("atlas", "drake")]
# Topics as they are encountered, each with the term that it belongs to once it is approved.
TOPICS = {
    "infrastructure": "infrastructure",
    "infra": "infrastructure",
    "the infrastructure": "infrastructure",
    "meals": "meals",
    "canteen": "meals",
    "travel": "travel",
}
ALIASES = {"infrastructure": ["infra"], "meals": ["canteen"], "travel": []}
# The bank that agents of one tenant blend with, and one of them may read.
SHARED, READER = "kb", Caller("acme", "agent:atlas")
ROOT = {tenant: Caller(tenant, "user:root") for tenant in ("acme", "beta")}
DIMENSIONS = 8
UPDATE, DECAY = 0.92, 90.0
SETTINGS: dict[str, Any] = {
    "vector_store": "in_memory",
    "access_control": {"enabled": True},
    "access_grants": [
        *({"bank_id": "*", "principal": "user:root", "permissions": ["*"], "tenant": tenant} for tenant in ROOT),
        {"bank_id": SHARED, "principal": READER.principal, "permissions": ["read"], "tenant": "acme"},
    ],
    "agent_memory": {"min_similarity": -1.0, "shared_banks": [SHARED]},
}
STEPS, MANY = 600, 20_000


@dataclass
class Kept:
    """A memory of the model."""

    topic: str
    topic_raw: str
    is_canonical: bool
    content: str
    vector: list[float]
    updated_at: int
    user: str | None
    access_count: int = 0


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
            values = [(4.0 if place == axis else 0.0) + self._random.gauss(0, 0.6) for place in range(DIMENSIONS)]
            norm = sqrt(sum(value * value for value in values))
            self._drawn[text] = vector_bytes([value / norm for value in values])
        return self._drawn[text]


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


class Machine:
    """An application, and the model of what it holds."""

    def __init__(self, seed: int, dsn: str | None = None) -> None:
        self.choose = random.Random(seed)
        self.now = 1_800_000_000_000
        of_agents = {**SETTINGS["agent_memory"], "dsn": dsn}
        self.app = App(Settings.from_mapping({**SETTINGS, "agent_memory": of_agents}), clock=lambda: self.now)
        self.embedder = Vectors(seed)
        self.app.gate.agent_memories._embedder = self.embedder
        self.app.gate.agent_memories.indexes._embedder = self.embedder
        self.model: dict[Caller, dict[str, Kept]] = {agent: {} for agent in AGENTS}
        self.approved: dict[str, set[str]] = {tenant: set() for tenant in ROOT}
        self.seen = dict.fromkeys(("insert", "update", "recall", "forget", "foreign", "canonical"), 0)

    async def call(self, agent: Caller, request: Any) -> Any:
        return await self.app.gate.call(agent, request)

    def vector(self, text: str) -> list[float]:
        return list(vector_values(self.embedder._vector(text)))

    def term_of(self, agent: Caller, raw: str) -> str | None:
        return TOPICS[raw] if raw and TOPICS[raw] in self.approved[agent.tenant] else None

    async def step(self, number: int) -> None:
        self.now += self.choose.randrange(DAY)
        agent, action = self.choose.choice(AGENTS), self.choose.random()
        if action < 0.6:
            await self.remember(agent, number)
        elif action < 0.9:
            await self.recall(agent)
        elif action < 0.905:
            await self.approve(agent.tenant)
        else:
            await self.forget(agent)

    async def remember(self, agent: Caller, number: int) -> None:
        own = self.model[agent]
        raw, user = self.choose.choice(list(TOPICS)), self.choose.choice((None, "u1", "u2"))
        term = self.term_of(agent, raw)
        topic = raw if term is None else term
        content = f"{agent.tenant}/{agent.principal} {number}"
        outcome = await self.call(agent, Remember(raw, content, user_id=user))
        assert (outcome.topic, outcome.is_canonical) == (topic, term is not None)
        assert (outcome.proposed_term_id is None) is (term is not None)
        vector = self.vector(f"{topic}\n{content}")
        near = {key: cosine(one.vector, vector) for key, one in own.items() if (one.topic, one.user) == (topic, user)}
        best = max(near, key=lambda key: near[key], default=None)
        # Within rounding of the threshold either decision is right.
        if best is not None and abs(near[best] - UPDATE) > 1e-4:
            assert outcome.was_update is (near[best] > UPDATE)
        assert not outcome.was_update or near[outcome.memory_id] == pytest.approx(near[best or ""], abs=1e-4)
        count = own[outcome.memory_id].access_count + 1 if outcome.was_update else 0
        own[outcome.memory_id] = Kept(topic, raw, term is not None, content, vector, self.now, user, count)
        self.seen["update" if outcome.was_update else "insert"] += 1

    async def recall(self, agent: Caller) -> None:
        own, user, raw = self.model[agent], self.choose.choice((None, "u1")), self.choose.choice(("", *TOPICS))
        query = f"what of {raw} {self.choose.randrange(40)}?"
        term = self.term_of(agent, raw)
        found = await self.call(agent, RecallAgentMemory(query, 5, user_id=user))
        assert found.query_canonical == term
        asked = self.vector(query if term is None else f"{term}\n{query}")
        private = [
            cosine(one.vector, asked) * exp(-(self.now - one.updated_at) / DAY / DECAY)
            for one in own.values()
            if user is None or one.user in {None, user}
        ]
        shared = []
        if agent == READER:
            bank = await self.call(agent, Recall(RecallQuery(query, SHARED, max_results=5)))
            shared = [hit.score for hit in canonical_hits(bank.hits)]
        expected = sorted((*private, *shared), reverse=True)[:5]
        assert [hit.score for hit in found.hits] == pytest.approx(expected, abs=1e-4)
        for hit in found.hits:
            if hit.source_tag is SourceTag.CANONICAL:
                assert (agent, hit.content.split(":")[0]) == (READER, agent.tenant)
                self.seen["canonical"] += 1
            else:
                # A memory of another agent is none of its own.
                assert own[hit.memory_id].content == hit.content
                assert hit.content.startswith(f"{agent.tenant}/{agent.principal} ")
                own[hit.memory_id].access_count += 1
        self.seen["recall"] += 1

    async def approve(self, tenant: str) -> None:
        for name in sorted(set(ALIASES) - self.approved[tenant])[:1]:
            root = ROOT[tenant]
            term = await self.call(root, ProposeTerm(name))
            await self.call(root, ReviewTerm(term.term_id, TermDecision.APPROVE))
            for alias in ALIASES[name]:
                other = await self.call(root, ProposeTerm(alias))
                await self.call(root, ReviewTerm(other.term_id, TermDecision.MERGE, term.term_id))
            self.approved[tenant].add(name)

    async def forget(self, agent: Caller) -> None:
        own = self.model[agent]
        other = self.choose.choice([one for one in AGENTS if one != agent])
        key = self.choose.choice(list(self.model[self.choose.choice((agent, other))]) or ["agm_none"])
        try:
            await self.call(agent, ForgetAgentMemory(key))
        except NotFound:
            assert key not in own
            self.seen["foreign"] += 1
        else:
            del own[key]
            self.seen["forget"] += 1

    async def check(self) -> None:
        # The counts of recalls are written in the background.
        await self.app.gate.agent_memories.close()
        for agent, own in self.model.items():
            token, listed = "", 0
            while token or not listed:
                page = await self.call(agent, ListAgentMemories(page_size=1_000, page_token=token))
                for one in page.memories:
                    kept = own[one.memory_id]
                    assert (one.topic, one.topic_raw, one.is_canonical) == (
                        kept.topic,
                        kept.topic_raw,
                        kept.is_canonical,
                    )
                    assert (one.content, one.access_count) == (kept.content, kept.access_count)
                token, listed = page.next_page_token, listed + len(page.memories)
                if not page.memories:
                    break
            assert listed == len(own)


async def walk(steps: int, seed: int, dsn: str | None = None) -> dict[str, int]:
    """Run the machine; returns the number of each event."""
    machine = Machine(seed, dsn)
    for tenant, root in ROOT.items():
        text = f"{tenant}: shared knowledge of infrastructure and meals."
        await machine.call(root, Retain(SHARED, RetainItem(text)))
    for number in range(steps):
        await machine.step(number)
    await machine.check()
    await machine.app.close()
    return machine.seen


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_decisions_hold(seed: int) -> None:
    seen = await walk(STEPS, seed)
    assert min(seen.values()) > 5, seen


async def test_the_decisions_hold_in_postgresql() -> None:
    with database() as dsn:
        seen = await walk(STEPS, 1, dsn)
    # The store changes no decision.
    assert seen == await walk(STEPS, 1)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("postgresql", [False, True])
async def test_the_decisions_hold_for_long(*, postgresql: bool) -> None:
    with ExitStack() as stack:
        seen = await walk(MANY, 3, stack.enter_context(database()) if postgresql else None)
    assert seen["insert"] + seen["update"] > 10_000
    assert min(seen.values()) > 100, seen


async def test_the_machine_finds_a_missing_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    # All memories count as about anybody: those about other users are updated and found.
    monkeypatch.setattr(agent_memories, "user_tag", lambda user: "any")
    monkeypatch.setattr("astrocyte.pipelines.agent_memory.index.user_tag", lambda user: "any")
    with pytest.raises(AssertionError):
        await walk(STEPS, 1)


def test_the_machine_can_be_run_twice() -> None:
    assert asyncio.run(walk(60, 9)) == asyncio.run(walk(60, 9))
