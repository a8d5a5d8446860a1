"""Contract of the stores of agents' private memories: a file, memory, and a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from astrocyte.errors import NotFound, RequestIdReused
from astrocyte.model import AgentSummary
from astrocyte.stores.agent_memory import AgentMemoryStore, Retopic
from astrocyte.stores.agent_postgres import PostgresAgentMemory
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.agent_memory import SqliteAgentMemory
from astrocyte.stores.sqlite.rows import to_datetime
from samples.agent_stores import NEW, REQUEST, SETTINGS, VECTOR, database
from samples.memories import Clock

OTHER = RequestKey("r1", "remember", b"\x02" * 16)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["file", "memory", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[AgentMemoryStore]:
    with ExitStack() as stack:
        opened: AgentMemoryStore
        if request.param == "postgres":
            opened = PostgresAgentMemory(stack.enter_context(database()), clock=clock, settings=SETTINGS)
        else:
            path = tmp_path / "agents.db" if request.param == "file" else None
            opened = SqliteAgentMemory(path, clock=clock, settings=SETTINGS)
        stack.callback(opened.close)
        yield opened


async def test_a_memory_is_read_as_it_was_stored(store: AgentMemoryStore, clock: Clock) -> None:
    stored = await store.put(NEW, None)
    assert (stored.was_update, stored.is_replay, stored.updated_at) == (False, False, clock())
    (memory,) = store.read([stored.memory_key]).values()
    assert (memory.memory_id, memory.agent_id, memory.user_id) == (stored.memory_id, "agent:atlas", None)
    assert (memory.topic, memory.topic_raw, memory.is_canonical) == ("deploy window", "the deploy window", True)
    assert (memory.content, memory.source, memory.access_count) == (NEW.content, NEW.source, 0)
    assert memory.created_at == memory.updated_at == to_datetime(clock())
    assert memory.deleted_at is None
    (vector,) = store.vectors("acme", "agent:atlas")
    assert vector == (
        stored.memory_key, stored.memory_id, None, "deploy window", NEW.content, "m1", VECTOR, clock()
    )  # fmt: skip
    assert store.read([stored.memory_key + 1]) == {}
    assert store.read([]) == {}


async def test_an_update_keeps_the_id_the_topic_and_the_time_of_creation(store: AgentMemoryStore, clock: Clock) -> None:
    first = await store.put(NEW, None)
    made = clock()
    clock.now += 5_000
    newer = replace(NEW, topic_raw="deploys", is_canonical=False, content="On Fridays.", source={}, vector=b"")
    again = await store.put(newer, first.memory_id)
    assert (again.memory_key, again.memory_id, again.was_update) == (first.memory_key, first.memory_id, True)
    (memory,) = store.read([first.memory_key]).values()
    assert (memory.topic, memory.topic_raw, memory.is_canonical) == ("deploy window", "deploys", False)
    assert (memory.content, memory.source, memory.access_count) == ("On Fridays.", {}, 1)
    assert (memory.created_at, memory.updated_at) == (to_datetime(made), to_datetime(clock()))
    assert store.vectors("acme", "agent:atlas")[0].vector == b""


async def test_what_is_not_the_agents_is_not_updated(store: AgentMemoryStore) -> None:
    first = await store.put(NEW, None)
    for other in (replace(NEW, agent_id="agent:drake"), replace(NEW, tenant="beta")):
        stored = await store.put(other, first.memory_id)
        assert (stored.was_update, stored.memory_id == first.memory_id) == (False, False)
    await store.forget("acme", "agent:atlas", first.memory_id, by="agent:atlas", reason="")
    assert not (await store.put(NEW, first.memory_id)).was_update


async def test_an_equal_request_gets_the_first_answer(store: AgentMemoryStore, clock: Clock) -> None:
    assert store.find_response("acme", REQUEST) is None
    first = await store.put(NEW, None, request=REQUEST)
    clock.now += 1_000
    again = await store.put(NEW, None, request=REQUEST)
    assert again == first._replace(is_replay=True) == store.find_response("acme", REQUEST)
    assert len(store.vectors("acme", "agent:atlas")) == 1
    assert store.find_response("beta", REQUEST) is None
    with pytest.raises(RequestIdReused):
        await store.put(NEW, None, request=OTHER)
    with pytest.raises(RequestIdReused):
        store.find_response("acme", OTHER)
    # Answers are kept for a day; the next write with an id drops those that are older.
    clock.now += round(SETTINGS.request_keep_hours * 3_600_000) + 1
    await store.put(NEW, None, request=RequestKey("r2", "remember", b"\x03" * 16))
    assert store.find_response("acme", REQUEST) is None


async def test_an_outcome_is_kept_once(store: AgentMemoryStore) -> None:
    assert store.find_outcome("acme", REQUEST) is None
    await store.keep_outcome("acme", REQUEST, b"[1]")
    await store.keep_outcome("acme", REQUEST, b"[2]")
    assert store.find_outcome("acme", REQUEST) == b"[1]"
    with pytest.raises(RequestIdReused):
        store.find_outcome("acme", OTHER)


async def test_a_forgotten_memory_is_listed_on_request_only(store: AgentMemoryStore, clock: Clock) -> None:
    kept, gone = [await store.put(NEW, None) for _ in range(2)]
    key = RequestKey("f1", "forget", b"\x04" * 16)
    for tenant, agent, memory_id in (
        ("beta", "agent:atlas", gone.memory_id),
        ("acme", "agent:drake", gone.memory_id),
        ("acme", "agent:atlas", "agm_none"),
    ):
        with pytest.raises(NotFound):
            store.is_forgotten_by(tenant, agent, memory_id, None)
        with pytest.raises(NotFound):
            await store.forget(tenant, agent, memory_id, by=agent, reason="")
    assert not store.is_forgotten_by("acme", "agent:atlas", gone.memory_id, key)
    clock.now += 1_000
    memory_key, memory = await store.forget(
        "acme", "agent:atlas", gone.memory_id, by="agent:atlas", reason="asked", request=key
    )
    assert (memory_key, memory.deleted_at) == (gone.memory_key, to_datetime(clock()))
    assert store.is_forgotten_by("acme", "agent:atlas", gone.memory_id, key)
    again = await store.forget("acme", "agent:atlas", gone.memory_id, by="agent:atlas", reason="asked", request=key)
    assert again == (memory_key, memory)
    with pytest.raises(NotFound):
        store.is_forgotten_by("acme", "agent:atlas", gone.memory_id, None)
    assert [one.memory_key for one in store.vectors("acme", "agent:atlas")] == [kept.memory_key]
    assert store.read([kept.memory_key, gone.memory_key]).keys() == {kept.memory_key}
    listed = store.listed("acme", "agent:atlas", forgotten=False, after=0, limit=9)
    assert [place for place, _ in listed] == [kept.memory_key]
    listed = store.listed("acme", "agent:atlas", forgotten=True, after=0, limit=9)
    assert [one.deleted_at is None for _, one in listed] == [True, False]
    assert store.unaudited(9) == []


async def test_pages_are_of_one_agent_or_of_all_of_a_tenant(store: AgentMemoryStore) -> None:
    names = [("acme", "a"), ("acme", "b"), ("beta", "a"), ("acme", "a")]
    keys = [(await store.put(replace(NEW, tenant=t, agent_id=a), None)).memory_key for t, a in names]
    every = [place for place, _ in store.listed("acme", None, forgotten=False, after=0, limit=9)]
    assert every == [keys[0], keys[1], keys[3]]
    assert [place for place, _ in store.listed("acme", "a", forgotten=False, after=keys[0], limit=9)] == [keys[3]]
    assert [place for place, _ in store.listed("acme", None, forgotten=False, after=0, limit=1)] == [keys[0]]
    found = store.agents("acme", None, after=0, limit=9)
    assert [(place, one.agent_id, one.memory_count) for place, one in found] == [(keys[0], "a", 2), (keys[1], "b", 1)]
    assert [one.agent_id for _, one in store.agents("acme", None, after=keys[0], limit=9)] == ["b"]
    assert [one.agent_id for _, one in store.agents("acme", "b", after=0, limit=9)] == ["b"]
    await store.forget("acme", "b", store.vectors("acme", "b")[0].memory_id, by="b", reason="")
    ((_, gone),) = store.agents("acme", "b", after=0, limit=9)
    assert gone == AgentSummary("b", 0, 1, None)


async def test_counts_and_vectors_change_and_nothing_else_does(store: AgentMemoryStore, clock: Clock) -> None:
    first, second = [await store.put(NEW, None) for _ in range(2)]
    clock.now += 1_000
    await store.count_access([first.memory_id, first.memory_id])
    await store.count_access([])
    await store.set_vectors("m2", [(second.memory_key, b"")])
    memories = store.read([first.memory_key, second.memory_key])
    assert [memories[one.memory_key].access_count for one in (first, second)] == [2, 0]
    assert {one.updated_at for one in memories.values()} == {to_datetime(first.updated_at)}
    vectors = store.vectors("acme", "agent:atlas")
    assert [(one.model, one.vector) for one in vectors] == [("m1", VECTOR), ("m2", b"")]


async def test_topics_are_replaced_and_counted(store: AgentMemoryStore) -> None:
    assert store.count_topics() == (0, 0)
    first, second = [await store.put(replace(NEW, is_canonical=False), None) for _ in range(2)]
    assert store.count_topics() == (2, 2)
    await store.retopic(Retopic(first.memory_key, "window", is_canonical=True, model="m2", vector=b""))
    moved = store.vectors("acme", "agent:atlas")[0]
    assert (moved.topic, moved.model, moved.vector, moved.updated_at) == ("window", "m2", b"", first.updated_at)
    assert store.count_topics() == (2, 1)
    await store.forget("acme", "agent:atlas", second.memory_id, by="x", reason="")
    await store.retopic(Retopic(second.memory_key, "window", is_canonical=True, model="m2", vector=b""))
    assert store.count_topics() == (1, 0)
    ((_, _), (_, gone)) = store.listed("acme", "agent:atlas", forgotten=True, after=0, limit=9)
    assert gone.topic == "deploy window"


@pytest.mark.parametrize("younger_is_kept", [False, True])
async def test_a_merge_takes_what_was_updated_last(
    store: AgentMemoryStore, clock: Clock, *, younger_is_kept: bool
) -> None:
    first = await store.put(NEW, None)
    clock.now += 1_000
    last = await store.put(replace(NEW, content="On Fridays.", topic_raw="fridays", source={"n": 1}), None)
    await store.count_access([first.memory_id, last.memory_id, last.memory_id])
    clock.now += 1_000
    kept, gone = (last, first) if younger_is_kept else (first, last)
    change = Retopic(kept.memory_key, "window", is_canonical=True, model="m2", vector=b"")
    merged = await store.merge(change, gone.memory_key, by="root", reason="merged")
    assert (merged.memory_key, merged.topic, merged.content) == (kept.memory_key, "window", "On Fridays.")
    assert (merged.model, merged.vector, merged.updated_at) == ("m2", b"", last.updated_at)
    (memory,) = store.read([kept.memory_key, gone.memory_key]).values()
    assert (memory.topic_raw, memory.source, memory.access_count) == ("fridays", {"n": 1}, 4)
    with pytest.raises(NotFound):
        await store.merge(change, gone.memory_key, by="root", reason="merged")
