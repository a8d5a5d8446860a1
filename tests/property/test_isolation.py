"""Nobody ever sees a foreign canary: at the gate, over gRPC, over HTTP, and through the tools of agents.

The machine is in `isolation_machine`. With any of the guards that it tests switched off, it finds leaks: a test
here, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as budget
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from astrocyte.api import RPCS
from astrocyte.app import App
from astrocyte.mcp.http import Authenticate
from astrocyte.mcp.server import Session
from astrocyte.mcp.tools import TOOLS
from astrocyte.model import (
    Bank,
    Caller,
    MemoryHit,
    RecallQuery,
)
from astrocyte.policy.banks.cross_references import Relevance, Relevant
from astrocyte.policy.engines.registry import Engine
from astrocyte.policy.engines.result_screening import ResultScreening, _of_memory
from astrocyte.providers.engines import EngineAnswer
from harness.http_doors import HttpDoors
from harness.mcp_doors import McpDoors
from oracles.isolation_machine import Isolation
from oracles.isolation_model import BANKS, PRINCIPALS, TENANTS


class Wired(Isolation):
    """The same through a server, its credentials and the generated stubs."""

    wire = True


class Web(Isolation):
    """The same through the HTTP gateway."""

    wire = True
    door = HttpDoors


class Agents(Isolation):
    """The same through the MCP server over HTTP, where a tool or a resource has it."""

    wire = True
    door = McpDoors
    delegates = False

    @rule(
        tenant=st.sampled_from(TENANTS),
        principal=st.sampled_from(PRINCIPALS),
        bank=st.sampled_from(BANKS),
        operation=st.sampled_from(sorted(RPCS[tool.request].name for tool in TOOLS)),
        number=st.integers(0, 1_000),
    )
    def tool(self, tenant: str, principal: str, bank: str, operation: str, number: int) -> None:
        """A call that there is a tool for."""
        self.make(Caller(tenant, principal), operation, bank, number)


class Mixed(McpDoors):
    """An MCP server that takes the principal of a credential, and not its tenant."""

    @classmethod
    def sessions(cls, app: App) -> Authenticate:
        """Sessions in the first tenant."""
        right = super().sessions(app)

        async def authenticate(credential: str | None) -> Session:
            session = await right(credential)
            return replace(session, caller=replace(session.caller, tenant=TENANTS[0]))

        return authenticate


class MixedUp(Agents):
    """The same through that server."""

    door = Mixed


class Unguarded(Isolation):
    """The same, with the database's last word taken away."""

    guarded = False


class Beside(Isolation):
    """The same, always with the engine."""

    beside = True


def _budget(examples: int, steps: int, **options: Any) -> budget:
    return budget(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **options,
    )


def test_nobody_sees_what_is_not_theirs() -> None:
    run_state_machine_as_test(Isolation, settings=_budget(8, 100))


def test_nobody_sees_what_is_not_theirs_over_the_wire() -> None:
    run_state_machine_as_test(Wired, settings=_budget(3, 60))


def test_nobody_sees_what_is_not_theirs_over_http() -> None:
    run_state_machine_as_test(Web, settings=_budget(3, 60))


def test_nobody_sees_what_is_not_theirs_through_tools() -> None:
    called: set[str] = set()

    class Counted(Agents):
        def teardown(self) -> None:
            called.update(self.gate.called)
            super().teardown()

    # The same steps each time: others may call few of the tools.
    run_state_machine_as_test(Counted, settings=_budget(6, 60, phases=[Phase.generate], derandomize=True))
    assert len(called) > len(TOOLS) / 4, called


def test_with_sessions_of_another_tenant_the_machine_finds_leaks() -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(MixedUp, settings=_budget(4, 100, phases=[Phase.generate], derandomize=True))


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("machine", [Isolation, Wired, Web, Agents])
def test_nobody_sees_what_is_not_theirs_in_twenty_thousand_steps(machine: type[Isolation]) -> None:
    run_state_machine_as_test(machine, settings=_budget(40, 500))


def test_without_the_databases_last_word_the_machine_finds_leaks() -> None:
    # Found within 2,000 steps; nothing is gained from making it short.
    with pytest.raises(AssertionError, match=r"is of another place|may not read"):
        run_state_machine_as_test(Unguarded, settings=_budget(8, 250, phases=[Phase.generate], derandomize=True))


def test_without_a_look_at_whose_graph_it_is_the_machine_finds_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    # The only use of it: to see whether the bank is the caller's.
    monkeypatch.setattr("astrocyte.stores.sqlite.graph.reader.fetch", lambda *_: [(1,)])
    with pytest.raises(AssertionError, match=r"is of another place|may not read"):
        run_state_machine_as_test(Isolation, settings=_budget(8, 250, phases=[Phase.generate], derandomize=True))


def believing(
    self: ResultScreening, bank: Bank, query: RecallQuery, hit: MemoryHit, answer: EngineAnswer
) -> MemoryHit | None:
    """Reports of an engine about a memory are looked up wherever the memory is."""
    origin = answer.origins.get(hit.memory_id or "")
    places = {
        kept.key: kept for tenant in TENANTS for kept in self._store.list_banks(tenant, prefix="", after="", limit=9)
    }
    found = (self._store.memory(one, str(origin)) for one in places.values()) if origin is not None else iter(())
    memory = next(filter(None, found), None)
    return hit if memory is None else _of_memory(query, hit, memory)


def unasked(self: Relevance, caller: Caller, sources: Iterable[tuple[str, set[str]]]) -> Iterable[Relevant]:
    """Content of other banks, for every reader."""
    for source, memory_ids in sources:
        bank = self._banks.known(caller, source)
        if bank is not None:
            yield Relevant(bank, tuple(sorted(memory_ids)))


def of_all(self: Engine, tenant: str, bank_id: str) -> bool:
    """An engine stands beside the banks of every tenant."""
    return True


@pytest.mark.parametrize(
    ("guard", "without"),
    [
        ("astrocyte.policy.engines.result_screening.ResultScreening._own", believing),
        ("astrocyte.policy.banks.cross_references.Relevance._readable", unasked),
        ("astrocyte.policy.engines.registry.Engine.stands_beside", of_all),
    ],
)
def test_without_what_holds_engines_and_references_the_machine_finds_leaks(
    guard: str, without: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, without)
    with pytest.raises(AssertionError, match=r"is of another place|may not read|wrongs"):
        run_state_machine_as_test(Beside, settings=_budget(8, 250, phases=[Phase.generate], derandomize=True))
