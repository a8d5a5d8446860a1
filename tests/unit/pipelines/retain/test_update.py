"""Concurrent updates, and what an update keeps."""

import asyncio
import threading

import pytest

from astrocyte.api.requests import BatchRetain, GetMemory, Retain, UpdateMemory
from astrocyte.core import count_tokens
from astrocyte.errors import Conflict
from astrocyte.model import Caller, MemoryUpdate, RetainItem
from astrocyte.pipelines.retain.pipeline import ATTEMPTS
from astrocyte.policy.gate import Gate

ME = Caller()


async def stored(gate: Gate, item: RetainItem) -> str:
    memory_id = (await gate.call(ME, Retain("b", item))).memory_id
    assert memory_id is not None
    return memory_id


async def test_concurrent_updates_of_several_fields_all_stay(gate: Gate) -> None:
    memory_id = await stored(gate, RetainItem("tea"))
    await asyncio.gather(
        gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"tags"}), tags=("a",)))),
        gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"source"}), source="s"))),
        gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"metadata"}), metadata={"m": 1}))),
        gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"content"}), content="green tea"))),
    )
    memory = await gate.call(ME, GetMemory("b", memory_id))
    assert (memory.content, memory.tags, memory.source, dict(memory.metadata)) == ("green tea", ("a",), "s", {"m": 1})
    assert memory.version == 5


async def test_an_update_of_a_version_seen_is_not_tried_again(gate: Gate) -> None:
    memory_id = await stored(gate, RetainItem("tea"))
    etag = (await gate.call(ME, GetMemory("b", memory_id))).etag
    updates = [MemoryUpdate(memory_id, frozenset({"source"}), source=name, etag=etag) for name in "abc"]
    results = await asyncio.gather(*(gate.call(ME, UpdateMemory("b", one)) for one in updates), return_exceptions=True)
    assert sum(isinstance(result, Conflict) for result in results) == 2
    assert (await gate.call(ME, GetMemory("b", memory_id))).version == 2


async def test_who_always_comes_second_is_told(gate: Gate) -> None:
    memory_id = await stored(gate, RetainItem("tea"))
    updates = [MemoryUpdate(memory_id, frozenset({"source"}), source=f"s{n}") for n in range(3 * ATTEMPTS)]
    results = await asyncio.gather(*(gate.call(ME, UpdateMemory("b", one)) for one in updates), return_exceptions=True)
    made = [result for result in results if not isinstance(result, BaseException)]
    assert len(made) >= ATTEMPTS
    assert all(isinstance(result, Conflict) for result in results if isinstance(result, BaseException))
    assert (await gate.call(ME, GetMemory("b", memory_id))).version == 1 + len(made)


async def test_large_content_is_prepared_beside_the_loop(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    count = count_tokens

    def counting(text: str) -> int:
        threads.append(threading.current_thread() is threading.main_thread())
        return count(text)

    monkeypatch.setattr("astrocyte.pipelines.retain.draft_builder.count_tokens", counting)
    memory_id = await stored(gate, RetainItem("tea"))
    assert threads == [True]
    long = "All work and no play. " * 1_000
    await gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"content"}), content=long)))
    await gate.call(ME, Retain("b", RetainItem(long), validate_only=True))
    await gate.call(ME, BatchRetain("b", [RetainItem("a"), RetainItem("b"), RetainItem("c")], validate_only=True))
    assert threads == [True, *[False] * 5]
