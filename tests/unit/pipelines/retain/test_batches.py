"""Items that are stored together: each is decided in view of what the earlier ones leave behind."""

import asyncio
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, CreateBank, Forget, GetMemory, ListMemories, Retain, StreamRetain
from astrocyte.app import App
from astrocyte.errors import Conflict, DiskFull, MemoryNotFound, RequestIdReused
from astrocyte.model import (
    Caller,
    DedupAction,
    Embedding,
    ForgetSelector,
    RetainItem,
    RetainResult,
)
from astrocyte.pipelines.retain.draft_builder import DraftBuilder
from astrocyte.policy.gate import Gate

ME = Caller()
FIRST = RetainItem("Mara is allergic to peanuts and cashews, says her mother in the kitchen")
AGAIN = replace(FIRST, content="Mara is allergic to peanuts and cashews, says her mother, in the kitchen!")
THIRD = replace(FIRST, content="Mara is allergic to peanuts and cashews, says her mother in the kitchen :-)")


def update(item: RetainItem, **fields: Any) -> RetainItem:
    return replace(item, dedup_action=DedupAction.UPDATE, **fields)


def embedded(content: str, *values: float) -> RetainItem:
    return RetainItem(content, embedding=Embedding("mine", 2, struct.pack("<2f", *values)))


async def contents(gate: Gate) -> list[str]:
    return [memory.content for memory in (await gate.call(ME, ListMemories("b"))).memories]


def good(results: Sequence[object]) -> list[RetainResult]:
    return [result for result in results if isinstance(result, RetainResult)]


class Interference:
    """Something that happens right before the next commits of a store."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store: Any = app.gate._memories._store
        self.commits: list[int] = []
        self.before: list[Any] = []
        self._commit = self.store.commit
        monkeypatch.setattr(self.store, "commit", self.commit)

    async def commit(self, bank: Any, writes: Any, **options: Any) -> Any:
        self.commits.append(len(writes))
        if self.before:
            await self.before.pop(0)()
        return await self._commit(bank, writes, **options)


@pytest.fixture
def interference(app: App, monkeypatch: pytest.MonkeyPatch) -> Interference:
    return Interference(app, monkeypatch)


@pytest.mark.parametrize("action", list(DedupAction))
async def test_a_near_duplicate_of_an_exact_duplicate_means_what_is_kept(gate: Gate, action: DedupAction) -> None:
    await gate.call(ME, CreateBank("b", embedding_model="mine", dimensions=2))
    first = await gate.call(ME, Retain("b", embedded(FIRST.content, 1, 0)))
    # The vectors of these two are near each other, and far from the kept one's.
    items = [
        replace(embedded(content, 0, 1), dedup_action=action) for content in (FIRST.content, AGAIN.content, "something")
    ]
    results = await gate.call(ME, BatchRetain("b", items))
    assert (results[0].stored, results[0].memory_id) == (False, first.memory_id)
    match action:
        case DedupAction.SKIP:
            assert (results[1].stored, results[1].memory_id) == (False, first.memory_id)
            assert await contents(gate) == [FIRST.content, "something"]
        case DedupAction.WARN:
            assert (results[1].stored, results[1].near_duplicate_of) == (True, first.memory_id)
        case DedupAction.UPDATE:
            assert (results[1].was_update, results[1].memory_id) == (True, first.memory_id)
            assert sorted(await contents(gate)) == [AGAIN.content, "something"]


@pytest.mark.parametrize("action", list(DedupAction))
async def test_content_that_comes_between_look_and_commit(
    gate: Gate, interference: Interference, action: DedupAction
) -> None:
    await gate.call(ME, Retain("b", RetainItem("jam")))
    other: list[RetainResult] = []

    async def store_the_same() -> None:
        other.append(await gate.call(ME, Retain("b", FIRST)))

    interference.before.append(store_the_same)
    results = await gate.call(ME, BatchRetain("b", [replace(one, dedup_action=action) for one in (FIRST, AGAIN)]))
    assert (results[0].stored, results[0].memory_id) == (False, other[0].memory_id)
    assert (results[1].near_duplicate_of or results[1].memory_id) == other[0].memory_id
    memory = await gate.call(ME, GetMemory("b", results[1].memory_id or ""))
    assert memory.content == (FIRST.content if action is DedupAction.SKIP else AGAIN.content)


async def test_with_vectors_of_the_callers_only_exact_copies_are_taken_unless_asked(gate: Gate) -> None:
    await gate.call(ME, CreateBank("b", embedding_model="mine", dimensions=2))
    await gate.call(ME, Retain("b", embedded(FIRST.content, 1, 0)))
    again = embedded(AGAIN.content, 1, 0)
    assert (await gate.call(ME, Retain("b", again))).stored
    assert not (await gate.call(ME, Retain("b", embedded(FIRST.content, 0, 1)))).stored
    asked = replace(embedded(THIRD.content.removesuffix(" :-)") + " now", 1, 0), dedup_threshold=0.9)
    assert (await gate.call(ME, Retain("b", asked))).deduplicated


async def test_content_that_goes_between_look_and_commit(gate: Gate, interference: Interference) -> None:
    await gate.call(ME, CreateBank("b", embedding_model="mine", dimensions=2))
    await gate.call(ME, Retain("b", embedded(FIRST.content, 1, 0)))

    async def forget() -> None:
        await gate.call(ME, Forget("b", ForgetSelector(scope="all")))

    interference.before.append(forget)
    again = replace(embedded(AGAIN.content, 0, 1), dedup_action=DedupAction.SKIP)
    results = await gate.call(ME, BatchRetain("b", [embedded(FIRST.content, 0, 1), again]))
    assert (results[0].stored, results[1].stored) == (True, False)
    assert results[1].memory_id == results[0].memory_id
    assert await contents(gate) == [FIRST.content]


async def test_a_near_duplicate_of_the_batch_keeps_what_it_leaves_open(gate: Gate) -> None:
    items = [
        replace(FIRST, tags=("health",), metadata={"a": 1}, session_id="s"),
        update(AGAIN, source="visit"),
        update(THIRD, metadata={"b": 2}),
    ]
    results = await gate.call(ME, BatchRetain("b", items))
    assert [result.memory_id for result in results] == [results[0].memory_id] * 3
    memory = await gate.call(ME, GetMemory("b", results[0].memory_id or ""))
    assert (memory.version, memory.content, memory.tags) == (3, THIRD.content, ("health",))
    assert (dict(memory.metadata), memory.source, memory.session_id) == ({"b": 2}, "visit", "s")


async def test_several_replacements_of_a_stored_memory_build_on_each_other(gate: Gate) -> None:
    first = await gate.call(ME, Retain("b", replace(FIRST, tags=("health",))))
    results = await gate.call(ME, BatchRetain("b", [update(AGAIN, source="visit"), update(THIRD, metadata={"b": 2})]))
    assert [result.memory_id for result in results] == [first.memory_id] * 2
    memory = await gate.call(ME, GetMemory("b", first.memory_id or ""))
    assert (memory.version, memory.tags, memory.source, dict(memory.metadata)) == (3, ("health",), "visit", {"b": 2})


async def test_content_that_the_batch_replaced_is_stored_anew(gate: Gate) -> None:
    await gate.call(ME, Retain("b", FIRST))
    results = await gate.call(ME, BatchRetain("b", [update(AGAIN), replace(FIRST, dedup_action=DedupAction.WARN)]))
    assert [result.stored for result in results] == [True, True]
    assert sorted(await contents(gate)) == sorted([AGAIN.content, FIRST.content])
    # A third of the same is one of these again.
    again = await gate.call(ME, BatchRetain("b", [AGAIN, FIRST]))
    assert [one.memory_id for one in again] == [one.memory_id for one in results]


async def test_concurrent_near_duplicates_that_replace_lose_nothing(gate: Gate) -> None:
    first = await gate.call(ME, Retain("b", FIRST))
    await asyncio.gather(
        gate.call(ME, Retain("b", update(AGAIN, source="visit"))),
        gate.call(ME, Retain("b", update(THIRD, metadata={"b": 2}))),
        gate.call(ME, Retain("b", update(AGAIN, content=AGAIN.content + "!", tags=("health",)))),
    )
    memory = await gate.call(ME, GetMemory("b", first.memory_id or ""))
    assert (memory.version, memory.tags, memory.source, dict(memory.metadata)) == (4, ("health",), "visit", {"b": 2})


async def test_many_items_with_request_ids_share_a_commit_in_order(gate: Gate, interference: Interference) -> None:
    items = [RetainItem("tea"), FIRST, RetainItem("jam"), AGAIN, RetainItem("ham")]
    keys = ["1", "2", None, "4", None]
    results = good(await gate.call(ME, StreamRetain("b", items, request_ids=keys)))
    assert interference.commits == [4]
    assert [result.position for result in results] == [1, 2, 3, 0, 4]
    assert (results[3].stored, results[3].memory_id) == (False, results[1].memory_id)
    # Each request got an answer of its own, the one that stored nothing too.
    assert [await gate.call(ME, Retain("b", items[place], request_id=keys[place])) for place in (0, 1, 3)] == [
        results[place] for place in (0, 1, 3)
    ]
    assert await contents(gate) == ["tea", FIRST.content, "jam", "ham"]


async def test_a_request_id_twice_in_one_call(gate: Gate) -> None:
    items = [RetainItem("tea"), RetainItem("jam"), RetainItem("tea"), RetainItem("ham")]
    results = await gate.call(ME, StreamRetain("b", items, request_ids=["1", None, "1", "1"]))
    assert results[0] == results[2]
    assert isinstance(results[3], RequestIdReused)
    assert await contents(gate) == ["tea", "jam"]


async def test_a_request_that_is_answered_between_look_and_commit(gate: Gate, interference: Interference) -> None:
    await gate.call(ME, Retain("b", RetainItem("jam")))
    earlier: list[RetainResult] = []

    async def retain_the_same() -> None:
        earlier.append(await gate.call(ME, Retain("b", RetainItem("tea"), request_id="1")))

    interference.before.append(retain_the_same)
    items = [RetainItem("tea"), RetainItem("ham")]
    results = await gate.call(ME, StreamRetain("b", items, request_ids=["1", "2"]))
    assert results[0] == earlier[0]
    assert [result.stored for result in good(results)] == [True, True]
    interference.before.append(retain_the_same)
    again = await gate.call(ME, Retain("b", RetainItem("tea"), request_id="1"))
    assert again == earlier[0]
    assert await contents(gate) == ["jam", "tea", "ham"]


async def test_the_same_request_twice_at_once(gate: Gate) -> None:
    results = await asyncio.gather(*(gate.call(ME, BatchRetain("b", [FIRST, AGAIN], request_id="1")) for _ in range(4)))
    assert results[0][0].stored
    assert results == [results[0]] * 4


@pytest.mark.parametrize("error", [Conflict("lost"), MemoryNotFound("mem_x", "b")])
async def test_items_that_cannot_go_together_go_alone(gate: Gate, interference: Interference, error: Exception) -> None:
    await gate.call(ME, Retain("b", RetainItem("jam")))

    async def fail() -> None:
        if interference.commits[-1] > 1:
            raise error

    interference.before = [fail] * 100
    items = [RetainItem("tea"), RetainItem("ham"), RetainItem("rum")]
    results = good(await gate.call(ME, StreamRetain("b", items, request_ids=["1", None, "3"])))
    assert [result.position for result in results] == [2, 3, 4]


async def test_what_fails_for_all_is_not_tried_one_by_one(gate: Gate, interference: Interference) -> None:
    await gate.call(ME, Retain("b", RetainItem("jam")))

    async def fail() -> None:
        raise DiskFull("full")

    interference.before.append(fail)
    results = await gate.call(ME, StreamRetain("b", [RetainItem("tea"), RetainItem("ham")]))
    assert [type(result) for result in results] == [DiskFull, DiskFull]


async def test_the_first_batch_of_a_bank_is_prepared_once(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    drafted = []
    draft = DraftBuilder.draft

    def drafting(self: DraftBuilder, bank: Any, item: RetainItem, at: str = "") -> Any:
        drafted.append(item.content)
        return draft(self, bank, item, at)

    monkeypatch.setattr(DraftBuilder, "draft", drafting)
    await gate.call(ME, BatchRetain("b", [RetainItem("tea"), RetainItem("ham")]))
    assert drafted == ["tea", "ham"]


async def test_the_memories_that_a_batch_may_repeat_are_read_at_once(
    gate: Gate, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [replace(FIRST, content=f"{FIRST.content} in the town of {town}") for town in ("Ghent", "Brest", "Turin")]
    await gate.call(ME, BatchRetain("b", [FIRST, *others]))
    store: Any = app.storage.store
    reads: list[int] = []
    current_versions = store.current_versions

    def counted(bank: Any, memory_ids: Sequence[str]) -> Any:
        reads.append(len(memory_ids))
        return current_versions(bank, memory_ids)

    monkeypatch.setattr(store, "current_versions", counted)
    again = [replace(one, content=f"{one.content}!") for one in (FIRST, *others)]
    results = good(await gate.call(ME, BatchRetain("b", again)))
    assert [one.retention_action for one in results] == ["skipped"] * 4
    assert reads == [4]
