"""Private memories of agents in a PostgreSQL database: one server each, lost connections, and a server that uses it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from astrocyte.api.requests import ForgetAgentMemory, ListAgentMemories, ListAgents, RecallAgentMemory, Remember
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError, FailedPrecondition, SchemaTooNew, StoreError, StoreLocked
from astrocyte.model import Caller
from astrocyte.stores.agent_postgres import PostgresAgentMemory, copy_file
from astrocyte.stores.sqlite.agent_memory import SqliteAgentMemory
from astrocyte.workers.checks import check_workers
from external import postgres
from samples.agent_stores import NEW, REQUEST, SETTINGS, database
from samples.memories import Clock

ATLAS = Caller(principal="agent:atlas")
LIKES = "Vivek prefers Terraform for all infrastructure."


@pytest.fixture
def dsn() -> Iterator[str]:
    with database() as made:
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(dsn: str, clock: Clock, **options: Any) -> PostgresAgentMemory:
    return PostgresAgentMemory(dsn, clock=clock, settings=SETTINGS, **options)


async def test_a_database_is_for_one_server(dsn: str, clock: Clock) -> None:
    first = opened(dsn, clock)
    stored = await first.put(NEW, None)
    for read_only in (False, True):
        with pytest.raises(StoreLocked):
            opened(dsn, clock, read_only=read_only)
    first.close()
    readers = [opened(dsn, clock, read_only=True) for _ in range(2)]
    assert all(one.read([stored.memory_key]) for one in readers)
    with pytest.raises(FailedPrecondition):
        await readers[0].put(NEW, None)
    with pytest.raises(StoreLocked):
        opened(dsn, clock)
    for one in readers:
        one.close()
    last = opened(dsn, clock)
    assert last.read([stored.memory_key])
    last.close()


def cut(dsn: str) -> None:
    """End the connections of all others to the database."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'astrocyte' AND pid <> pg_backend_pid()"
        )


async def test_a_lost_connection_is_made_anew(dsn: str, clock: Clock) -> None:
    store = opened(dsn, clock)
    first = await store.put(NEW, None)
    cut(dsn)
    assert store.read([first.memory_key])
    cut(dsn)
    await store.put(NEW, None)
    assert len(store.vectors("acme", "agent:atlas")) == 2
    store.close()


async def test_a_server_that_lost_the_database_to_another_does_nothing_more(dsn: str, clock: Clock) -> None:
    first = opened(dsn, clock)
    stored = await first.put(NEW, None)
    cut(dsn)
    second = opened(dsn, clock)
    for _ in range(2):
        with pytest.raises(StoreLocked):
            first.read([stored.memory_key])
    second.close()
    for _ in range(2):
        with pytest.raises(StoreError, match="another server had the database"):
            first.read([stored.memory_key])
        with pytest.raises(StoreError, match="another server had the database"):
            await first.put(NEW, None)
    first.close()


def test_tables_of_other_versions_are_refused(dsn: str, clock: Clock) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        opened(dsn, clock, read_only=True)
    opened(dsn, clock).close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("UPDATE agent_memory_state SET version = 99")
    for read_only in (False, True):
        with pytest.raises(SchemaTooNew):
            opened(dsn, clock, read_only=read_only)


def test_addresses_that_are_wrong_are_refused_without_their_secrets(clock: Clock) -> None:
    with pytest.raises(ConfigError, match=r"agent_memory\.dsn") as refused:
        opened("hunter2 is no address", clock)
    assert "hunter2" not in str(refused.value)
    nowhere = f"{postgres.address()}{'&' if '?' in postgres.address() else '?'}options=-csearch_path%3Dnowhere"
    with pytest.raises(ConfigError, match="search_path of its role has no schema"):
        opened(nowhere, clock)
    with pytest.raises(StoreError, match="cannot be reached") as unreachable:
        opened("postgresql://astrocyte:hunter2@127.0.0.1:1/agent_memory_db", clock)
    assert "hunter2" not in str(unreachable.value)


async def test_a_file_is_copied_once(dsn: str, tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "agent_memory.db"
    file = SqliteAgentMemory(path, clock=clock, settings=SETTINGS)
    kept = await file.put(NEW, None, request=REQUEST)
    gone = await file.put(replace(NEW, user_id="u1", is_canonical=False), None)
    await file.forget("acme", "agent:atlas", gone.memory_id, by="agent:atlas", reason="asked")
    before = file.listed("acme", None, forgotten=True, after=0, limit=9)
    vectors = file.vectors("acme", "agent:atlas")
    file.close()
    store = opened(dsn, clock)
    assert copy_file(path, store) == 2
    assert store.listed("acme", None, forgotten=True, after=0, limit=9) == before
    assert store.vectors("acme", "agent:atlas") == vectors
    assert store.find_response("acme", REQUEST) == kept._replace(is_replay=True)
    assert (await store.put(NEW, None)).memory_key > gone.memory_key
    assert copy_file(path, store) == 0
    assert len(store.listed("acme", None, forgotten=True, after=0, limit=9)) == 3
    path.write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match=r"agent_memory\.db cannot be copied"):
        copy_file(path, store)
    store.close()


def test_several_workers_refuse_the_database() -> None:
    settings = Settings.from_mapping(
        {"server": {"workers": 2}, "agent_memory": {"dsn": "postgresql://h/agent_memory_db"}}
    )
    with pytest.raises(ConfigError, match=r"agent_memory\.dsn"):
        check_workers(settings)


async def test_a_server_keeps_private_memories_there(dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "data" / "agent_memory.db"
    given: dict[str, Any] = {"data_dir": str(tmp_path / "data")}
    # A server that had them in its data directory takes them along.
    app = App(Settings.from_mapping(given))
    early = await app.gate.call(ATLAS, Remember("canteen", "The canteen opens at noon.", agent_id="agent:atlas"))
    await app.close()
    before = file.read_bytes()
    given["agent_memory"] = {"dsn": dsn}
    for life in range(2):
        app = App(Settings.from_mapping(given))
        made = await app.gate.call(ATLAS, Remember("vivek", LIKES, agent_id="agent:atlas", request_id=f"r{life}"))
        again = await app.gate.call(ATLAS, Remember("vivek", LIKES, agent_id="agent:atlas", request_id=f"r{life}"))
        assert (made.was_update, again) == (life == 1, made)
        found = await app.gate.call(ATLAS, RecallAgentMemory(LIKES, agent_id="agent:atlas"))
        assert found.hits[0].content == LIKES
        assert (await app.gate.call(ATLAS, RecallAgentMemory("canteen", agent_id="agent:atlas"))).hits
        (agent,) = (await app.gate.call(ATLAS, ListAgents())).agents
        assert (agent.agent_id, agent.memory_count, agent.forgotten_count) == ("agent:atlas", 2, 0)
        await app.close()
    app = App(Settings.from_mapping(given))
    await app.gate.call(ATLAS, ForgetAgentMemory(early.memory_id, agent_id="agent:atlas"))
    (left,) = (await app.gate.call(ATLAS, ListAgentMemories("agent:atlas"))).memories
    # Two recalls of it, and an update.
    assert (left.content, left.access_count) == (LIKES, 3)
    await app.close()
    assert file.read_bytes() == before


def test_without_the_extra_the_setting_is_refused(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    for name in [name for name in sys.modules if name.startswith("astrocyte.stores.agent_postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    settings = Settings.from_mapping({"vector_store": "in_memory", "agent_memory": {"dsn": dsn}})
    with pytest.raises(ConfigError, match=r"agent_memory\.dsn: needs the package psycopg: pip install"):
        App(settings)
