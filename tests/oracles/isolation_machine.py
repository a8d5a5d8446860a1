"""Three tenants, the same bank names, the same principals, grants that come and go: nobody ever sees a foreign canary.

Every text holds a canary of its own, and every answer, error and id is searched for the canaries of others. Who may do
what is decided a second time, from a model alone (`isolation_model`), and each call must be refused or pass
accordingly. Memories say that they are relevant to other banks. The index is made to lie: now and then it answers with
another bank's rows; and an engine that stands beside banks of two tenants lies as well: it says that its hits are
memories of anybody. What holds is that the database is asked again, that the engine is told by whom and about what, and
that references show where both banks may be read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from astrocyte.api.requests import (
    BatchRecall,
    ExportGraph,
    FindPath,
    GetEntity,
    ListEntities,
    Neighbors,
    Recall,
    Reflect,
    SearchEntities,
    StreamReflect,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AuthorizationError
from astrocyte.model import (
    Bank,
    Caller,
    MultiBankMode,
    MultiBankStrategy,
    Permission,
    RecallQuery,
    ReflectQuery,
)
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.providers.hybrid import HybridEngineProvider
from astrocyte.stores.graph.entity_graph import GraphReader, GraphView
from astrocyte.stores.sqlite import store as sqlite_store
from harness.calls import ROWS
from harness.doors import Doors, api_keys
from harness.http_doors import HttpDoors
from harness.mcp_doors import McpDoors
from oracles.isolation_admin import AdminCalls
from oracles.isolation_checks import EVERYWHERE
from oracles.isolation_engine import Gossip
from oracles.isolation_memories import MemoryCalls
from oracles.isolation_model import BANKS, CLERK, PRINCIPALS, TENANTS, Model

PATTERNS = (*BANKS, "b*", "*")
# Beside whose banks the engine stands, and what is retained there.
BESIDE = {"acme": "both", "beta": "pipeline"}
# What fills banks, and what could mix them up.
# An import stores what an archive holds: tests/property/test_portability.py has its machine.
ASKED = sorted(set(ROWS) - {"ImportBank"})
OFTEN = ("Retain", "BatchRetain", "Recall", "BatchRecall", "History") * 4
# How often, of ten times, the index of another bank answers.
LIES = 3


GRAPH_READS: Sequence[Callable[[str], Any]] = (
    lambda bank: SearchEntities(bank, "corp"),
    lambda bank: GetEntity(bank, EVERYWHERE),
    lambda bank: ListEntities(bank, page_size=200),
    lambda bank: Neighbors(bank, (EVERYWHERE,), limit=50),
    lambda bank: FindPath(bank, EVERYWHERE, "place:nowhere"),
    ExportGraph,
)


class Confused:
    """A registry whose index is at times that of another bank, of any tenant."""

    def __init__(self, registry: IndexRegistry, chance: random.Random) -> None:
        self._registry = registry
        self._chance = chance
        self._seen: dict[int, Bank] = {}

    def loaded(self, bank: Bank) -> BankIndex | None:
        self._seen[bank.key] = bank
        if self._chance.randrange(10) < LIES:
            return self._registry.loaded(self._chance.choice(list(self._seen.values())))
        return self._registry.loaded(bank)

    async def get(self, bank: Bank) -> BankIndex:
        return await self._registry.get(bank)


class Isolation(MemoryCalls, AdminCalls, RuleBasedStateMachine):
    """One step is one call of one principal of one tenant, about one bank."""

    guarded: ClassVar[bool] = True
    # The server through which calls go, where they do.
    door: ClassVar[type[Doors | HttpDoors | McpDoors]] = Doors
    # Whether a principal can act on behalf of another there.
    delegates: ClassVar[bool] = True
    # Whether there always is an engine, and not by chance.
    beside: ClassVar[bool] = False

    @initialize(policy=st.sampled_from(["deny", "owner_only"]), cached=st.booleans(), beside=st.booleans())
    def begin(self, policy: str, *, cached: bool, beside: bool) -> None:
        self.model = Model(policy == "owner_only")
        self.chance = random.Random(0)
        settings = Settings.from_mapping(
            {
                "vector_store": "in_memory",
                "server": {"port": 0},
                "gateway": {"port": 0},
                "auth": {"api_keys": api_keys(Caller(*who) for who in product(TENANTS, PRINCIPALS))},
                "recall": {"cache_bytes": 1 << 20 if cached else 0},
                "access_control": {"enabled": True, "default_policy": policy},
                # Agents may call every tool, about as much as the others.
                "mcp": {
                    "expose_forget": True,
                    "expose_directives": True,
                    "expose_admin": True,
                    "max_results_limit": 1_000,
                },
                # What everybody may write by the grants alone is the matter here.
                "directives": {"allowed_principals": ["*"]},
                # An engine that fails now and then is asked again all the same.
                "escalation": {"circuit_breaker": {"failure_threshold": 1_000_000}},
                "access_grants": [
                    {"bank_id": "*", "principal": CLERK, "permissions": ["admin"], "tenant": tenant}
                    for tenant in TENANTS
                ],
            }
        )
        self.runner = asyncio.Runner()
        self.app = self.runner.run(self._open(settings))
        self.gossip = Gossip(self.model, self.chance, frozenset(BESIDE))
        if beside or self.beside:
            for tenant, target in BESIDE.items():
                options = {"tenant": tenant, "retain_target": target}
                self.app.providers.engines.attach(
                    HybridEngineProvider(self.gossip, name=f"for-{tenant}", options=options)
                )
        self._confuse_graphs()
        self.engines = tuple(engine.name for engine in self.app.providers.engines)
        confused = Confused(self.app.gate._registry, self.chance)
        recall: Any = self.app.gate._pipelines.recall
        recall._registry = confused
        self.gate: Any = self.runner.run(self.door.open(self.app)) if self.wire else self.app.gate
        # Keys that were made by call, by their ids, and whom each stands for.
        self.minted = {}
        self.revoked = set()

    async def _open(self, settings: Settings) -> App:
        with pytest.MonkeyPatch.context() as patch:
            store = sqlite_store.SqliteStore
            if not self.guarded:
                patch.setattr(
                    "astrocyte.wiring.storage.open_store", lambda path, **rest: store(path, **rest, _guarded=False)
                )
            return App(settings)

    def _confuse_graphs(self) -> None:
        """Let the graph be read now and then by the key of another bank, of any tenant."""
        graph: Any = self.app.storage.store.graph
        reader, seen = graph.reader, dict[int, Bank]()

        def confused(view: GraphView) -> AbstractContextManager[GraphReader]:
            seen[view.bank.key] = view.bank
            if self.chance.randrange(10) < LIES:
                key = self.chance.choice(list(seen))
                view = replace(view, bank=replace(view.bank, key=key))
            return reader(view)  # type: ignore[no-any-return] # of the graph above

        graph.reader = confused

    def teardown(self) -> None:
        if hasattr(self, "gate"):
            if self.wire:
                self.runner.run(self.gate.close())
            self.runner.run(self.app.close())
            self.runner.close()

    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS),
        behalf=st.sampled_from([None] * 7 + list(PRINCIPALS[:3])),
        bank=st.sampled_from(BANKS),
        operation=st.sampled_from([*ASKED, *OFTEN]),
        number=st.integers(0, 1_000),
    )
    def call(self, tenant: str, principal: str, behalf: str | None, bank: str, operation: str, number: int) -> None:
        self.make(Caller(tenant, principal, behalf if self.delegates else None), operation, bank, number)

    def make(self, caller: Caller, operation: str, bank: str, number: int) -> None:
        """Make one call."""
        own = getattr(self, f"_{operation.lower()}", None)
        self.runner.run(self._any(caller, ROWS[operation], bank, number) if own is None else own(caller, bank, number))
        assert not self.gossip.wrongs, f"wrongs: {self.gossip.wrongs}"

    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS),
        behalf=st.sampled_from([None] * 7 + list(PRINCIPALS[:3])),
        banks=st.lists(st.sampled_from(BANKS), min_size=1, max_size=3, unique=True),
        mode=st.sampled_from(MultiBankMode),
        how=st.sampled_from(["recall", "recall_batch", "reflect", "reflect_stream"]),
    )
    def several(
        self, tenant: str, principal: str, behalf: str | None, banks: list[str], mode: MultiBankMode, how: str
    ) -> None:
        """One call about several banks: all of them may be read, or nothing is said of any."""
        caller = Caller(tenant, principal, behalf if self.delegates else None)
        strategy = MultiBankStrategy(mode)
        query = RecallQuery("sesame", "", banks=tuple(banks), strategy=strategy, max_results=200)
        question = ReflectQuery("What about sesame?", "", banks=tuple(banks), strategy=strategy, include_sources=True)

        async def pieces() -> list[object]:
            return [piece async for piece in self.gate.stream(caller, StreamReflect(question))]

        work: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "recall": lambda: self.gate.call(caller, Recall(query)),
            "recall_batch": lambda: self.gate.call(caller, BatchRecall([query])),
            "reflect": lambda: self.gate.call(caller, Reflect(question)),
            "reflect_stream": pieces,
        }
        passes = all(self.model.reads(caller, bank) for bank in banks)
        places = {(tenant, bank) for bank in banks}
        self.runner.run(self._decided(work[how](), passes=passes, places=places, reads=passes, finder=caller))

    @rule(tenant=st.sampled_from(sorted(BESIDE)), bank=st.sampled_from(BANKS))
    def planted(self, tenant: str, bank: str) -> None:
        """The engine comes to know something about a bank."""
        if self.engines and (tenant, bank) in self.model.owners:
            self.gossip.plant((tenant, bank))

    @rule(number=st.integers(0, 1_000), bank=st.sampled_from(BANKS))
    def minted_key(self, number: int, bank: str) -> None:
        """A recall with a key that was made by call: it is of whom the key stands for, or nobody's any more."""
        if self.wire and self.minted:
            self.runner.run(self._by_key(list(self.minted)[number % len(self.minted)], bank))

    async def _by_key(self, key_id: str, bank: str) -> None:
        secret, caller = self.minted[key_id]
        client = self.gate.by_key(secret)
        work = client.call(Caller(), Recall(RecallQuery("sesame", bank, max_results=200)))
        try:
            if key_id in self.revoked:
                with pytest.raises(AuthorizationError):
                    await work
            else:
                await self._held_to(caller, "Recall", bank, work)
        finally:
            await client.close()

    # A memory that names another bank seldom meets somebody who reads that one, and not its own.
    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS[1:]),
        reader=st.sampled_from(PRINCIPALS[1:]),
        banks=st.lists(st.sampled_from(BANKS), min_size=2, max_size=2, unique=True),
    )
    def referring(self, tenant: str, principal: str, reader: str, banks: list[str]) -> None:
        """Somebody keeps in one bank what is relevant to another, and somebody else reads there."""
        own, other = banks
        clerk, read, write = Caller(tenant, CLERK), frozenset({Permission.READ}), frozenset({Permission.WRITE})
        for who, bank, right in ((principal, own, write), (reader, other, read), (principal, other, write)):
            self.runner.run(self._give(clerk, bank, who, right))
        self.runner.run(self._keep(Caller(tenant, principal), other, 1, None))
        self.runner.run(self._keep(Caller(tenant, principal), own, 1, other))
        self.runner.run(self._recall(Caller(tenant, reader), other, 1))

    # The entity that all memories mention, so that what goes around it is of many banks.
    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS),
        bank=st.sampled_from(BANKS),
        request=st.sampled_from(GRAPH_READS),
    )
    def graph(self, tenant: str, principal: str, bank: str, request: Callable[[str], Any]) -> None:
        """A read of the entity graph tells of its bank alone."""
        caller, asked = Caller(tenant, principal), request(bank)

        async def pieces() -> list[object]:
            return [piece async for piece in self.gate.stream(caller, asked)]

        work = pieces() if isinstance(asked, ExportGraph) else self.gate.call(caller, asked)
        self.runner.run(self._held_to(caller, type(asked).__name__, bank, work))

    # Grants are what makes the rest worth trying, so they come more often than one call in many.
    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS),
        pattern=st.sampled_from(PATTERNS),
        permissions=st.frozensets(st.sampled_from(Permission), min_size=1),
        give=st.booleans(),
    )
    def clerk(
        self, tenant: str, principal: str, pattern: str, permissions: frozenset[Permission], *, give: bool
    ) -> None:
        change = self._give if give else self._take
        self.runner.run(change(Caller(tenant, CLERK), pattern, principal, permissions))
