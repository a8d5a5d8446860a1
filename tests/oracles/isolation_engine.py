"""An engine for all tenants, in the isolation machine: it keeps banks apart, and lies about whose memories it knows."""

from __future__ import annotations

import random
from collections.abc import Sequence

from astrocyte.model import (
    ForgetResult,
    ForgetSelector,
    MemoryHit,
    Permission,
    RecallQuery,
    ReflectQuery,
    RetainResult,
)
from astrocyte.providers.engines import (
    EngineAnswer,
    EngineCall,
    EngineCapabilities,
    EngineHealth,
    EngineItem,
    EngineReflection,
)
from oracles.isolation_checks import text_of
from oracles.isolation_model import CANARY, Model, Place

# Of so many calls that may fail one does.
FAILS = 4
# Memories of anybody that each answer says it knows.
LIES = 5
# What every memory of the machine says, so that a lie about any of them could be believed.
COMMON = "sesame"


class Gossip:
    """`EngineProvider` that writes down what it should not have been told.

    Args:
        model: What is where.
        chance: When it fails, and what it says that it knows.
        tenants: Beside whose banks it stands.
    """

    def __init__(self, model: Model, chance: random.Random, tenants: frozenset[str]) -> None:
        self._tenants = tenants
        self._model = model
        self._chance = chance
        self._held: dict[Place, dict[str, tuple[str, str | None]]] = {}
        self._made = 0
        self.wrongs: list[str] = []

    def plant(self, place: Place) -> None:
        """Let it know something of its own about a bank."""
        self._put(place, text_of(self._model.canary(place)), None)

    def capabilities(self) -> EngineCapabilities:
        return EngineCapabilities(time_travel=True)

    async def health(self) -> EngineHealth:
        return EngineHealth(healthy=True)

    async def recall(self, call: EngineCall, query: RecallQuery) -> EngineAnswer:
        place = self._place(call)
        if Permission.READ not in self._model.held(call.tenant, call.principal, call.bank_id):
            self.wrongs.append(f"{place} is asked about for {call.principal}, who may not read it")
        self._may_fail()
        held = self._held.get(place, {})
        hits = [MemoryHit(text, 1.0, memory_id=number) for number, (text, _) in held.items()]
        origins = {number: origin for number, (_, origin) in held.items() if origin is not None}
        known = sorted(self._model.memories)
        for number, memory in enumerate(self._chance.sample(known, k=min(LIES, len(known)))):
            hits.append(MemoryHit(COMMON, 2.0, memory_id=f"lie-{number}"))
            origins[f"lie-{number}"] = memory
        self._chance.shuffle(hits)
        return EngineAnswer(hits, origins)

    async def retain(self, call: EngineCall, items: Sequence[EngineItem]) -> Sequence[RetainResult]:
        place = self._place(call)
        for one in items:
            said = f"{one.item.content} {dict(one.item.metadata)}"
            self.wrongs += [
                f"{canary} of {self._model.names.get(canary)} is told to {place}"
                for canary in CANARY.findall(said)
                if self._model.names.get(canary) != place
            ]
        self._may_fail()
        for one in items:
            self._put(place, one.item.content, one.origin)
        return [RetainResult(stored=True) for _ in items]

    async def reflect(self, call: EngineCall, query: ReflectQuery) -> EngineReflection:
        raise AssertionError("this engine is never asked to reflect")

    async def forget(
        self, call: EngineCall, selector: ForgetSelector, *, compliance: bool, reason: str | None
    ) -> ForgetResult:
        held = self._held.get((call.tenant, call.bank_id), {})
        gone = [
            number
            for number, (_, origin) in held.items()
            if selector.scope or {number, origin} & set(selector.memory_ids)
        ]
        for number in gone:
            del held[number]
        return ForgetResult(len(gone))

    async def close(self) -> None:
        return

    def _place(self, call: EngineCall) -> Place:
        if call.tenant not in self._tenants:
            self.wrongs.append(f"{call.tenant} has no such engine")
        return call.tenant, call.bank_id

    def _put(self, place: Place, text: str, origin: str | None) -> None:
        self._made += 1
        self._held.setdefault(place, {})[f"gossip-{self._made}"] = text, origin

    def _may_fail(self) -> None:
        if not self._chance.randrange(FAILS):
            raise RuntimeError
