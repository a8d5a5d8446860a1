"""The Python API beyond the reference's own examples."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import astrocyte
from astrocyte import Astrocyte, RecallQuery, RetainItem, make_embedding
from astrocyte.api.requests import Forget, GetBankStats, Retain, UndeleteMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError, MemoryNotFound, StoreLocked, ValidationError
from astrocyte.facade.keywords import RecallOptions
from astrocyte.model import Caller, ForgetSelector


@pytest.fixture
async def brain() -> AsyncIterator[Astrocyte]:
    async with Astrocyte.from_config_dict({"vector_store": "in_memory"}) as brain:
        yield brain


async def test_retain_many_takes_items_and_keywords(brain: Astrocyte) -> None:
    results = await brain.retain_many(
        [
            RetainItem("green tea", tags=("x",)),
            {"content": "black tea", "tags": ["x", "y"], "speaker": "Ann", "session_id": None},
            {"content": "", "tags": None},
        ],
        "b",
    )
    assert [result.retention_action for result in results] == ["created", "created", "rejected"]
    assert results[2].error == "content: is empty; send text to store"
    page = await brain.list("b", tags=["y"])
    assert [(memory.content, memory.speaker) for memory in page.memories] == [("black tea", "Ann")]


async def test_many_more_items_than_a_commit_takes(brain: Astrocyte) -> None:
    results = await brain.retain_many([{"content": f"note {n} of many"} for n in range(600)], "b")
    assert [result.position for result in results] == list(range(1, 601))


@pytest.mark.parametrize(
    "call",
    [
        lambda brain: brain.retain("x", "b", tags="x"),
        lambda brain: brain.retain_many([{"contents": "x"}], "b"),
        lambda brain: brain.retain("x", "b", dedup_action="merge"),
        lambda brain: brain.recall("x", "b", detail_level="all"),
        lambda brain: brain.recall("x", "b", tag_match="most"),
        lambda brain: brain.recall("x", "b", fusion_method="sum"),
        lambda brain: brain.recall("x", "b", time_range=datetime.now(UTC)),
        lambda brain: brain.recall("x", "b", memory_ids="mem_1"),
        lambda brain: brain.forget("b", memory_ids="mem_1"),
        lambda brain: brain.update("mem_1", "b"),
        lambda brain: brain.retain("x", "b", occurred_at="2024-01-01"),
        lambda brain: brain.retain("x", "b", metadata=[1]),
        lambda brain: brain.retain("x", "b", tags=3),
        lambda brain: brain.retain("x", "b", content_type="conversatoin"),
        lambda brain: brain.retain_many(["x"], "b"),
        lambda brain: brain.retain_many([{"content": "x"}, {"tags": ["x"]}], "b"),
        lambda brain: brain.recall("x", "b", as_of="2024"),
        lambda brain: brain.recall("x", "b", tags="abc"),
        lambda brain: brain.recall("x", "b", tag_match="all"),
        lambda brain: brain.recall("x", "b", weights=[1]),
        lambda brain: brain.history("x", "b", as_of="2024"),
        lambda brain: brain.forget("b", before_date="2024"),
        lambda brain: brain.update("mem_1", "b", occurred_at="2024"),
        lambda brain: brain.update("mem_1", "b", metadata=[1]),
    ],
)
async def test_mistakes_are_named(brain: Astrocyte, call: Any) -> None:
    with pytest.raises(ValidationError):
        await call(brain)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda brain: brain.recall("x", "b", bogus=1), r"Astrocyte\.recall\(\) got .* 'bogus'"),
        (lambda brain: brain.recall("x", "b", sesion_id="s"), r"'sesion_id'\. Did you mean 'session_id'\?"),
        (lambda brain: brain.retain("x", "b", bogus=1), r"Astrocyte\.retain\(\) got .* 'bogus'"),
        (lambda brain: brain.update("m", "b", bogus=1), r"Astrocyte\.update\(\) got .* 'bogus'"),
    ],
)
async def test_strange_keywords_are_named_with_their_method(brain: Astrocyte, call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        await call(brain)


async def test_options_that_are_none_are_left_out(brain: Astrocyte) -> None:
    await brain.retain("tea", "b")
    options = dict.fromkeys(RecallOptions.__annotations__)
    assert len((await brain.recall("tea", "b", **options)).hits) == 1  # type: ignore[arg-type] # what None allows


async def test_a_life(brain: Astrocyte) -> None:
    bank = await brain.create_bank("b", display_name="Tea")
    assert bank.display_name == "Tea"
    made = await brain.retain("tea at noon", "b", session_id="s", speaker="Ann", dedup_action="warn")
    memory_id = made.memory_id or ""
    assert (await brain.get(memory_id, "b")).session_id == "s"
    assert (await brain.update(memory_id, "b", tags=["x"], source="me")).tags == ("x",)
    assert (await brain.update(memory_id, "b", tags=None)).tags == ()
    hits = (await brain.recall("tea", "b", session_id="s", tag_match="none", tags=["x"], weights={"keyword": 2})).hits
    assert [hit.memory_id for hit in hits] == [memory_id]
    (first, second) = await brain.recall_many([RecallQuery("tea", "b"), RecallQuery("noon", "b")])
    assert first.hits[0].memory_id == second.hits[0].memory_id
    assert (await brain.forget("b", scope="all", dry_run=True)).deleted_count == 1
    await brain.forget("b", memory_ids=[memory_id])
    assert (await brain.undelete(memory_id, "b")).memory_id == memory_id
    kinds = []
    async for change in brain.watch("b", after=0):
        kinds.append(change.kind.value)
        if len(kinds) == 5:
            break
    assert kinds == ["created", "updated", "updated", "forgotten", "undeleted"]
    assert (await brain.update_bank("b", description="all about tea")).description == "all about tea"
    assert [bank.bank_id for bank in (await brain.list_banks()).banks] == ["b"]
    assert (await brain.bank_stats("b")).memory_count == 1
    assert (await brain.get_bank("b")).position == 5
    assert (await brain.server_info()).version
    assert await brain.delete_bank("b") == 1


async def test_vectors_of_ones_own(brain: Astrocyte) -> None:
    await brain.create_bank("own", embedding_model="mine", dimensions=2)
    await brain.retain("tea", "own", embedding=make_embedding("mine", [1.0, 0.0]))
    await brain.retain("jam", "own", embedding=make_embedding("mine", [0.0, 1.0]))
    result = await brain.recall("", "own", embedding=make_embedding("mine", [0.1, 1.0]))
    assert [hit.text for hit in result.hits] == ["jam", "tea"]
    with pytest.raises(ValidationError):
        make_embedding("mine", ["x"])  # type: ignore[list-item] # the point


async def test_one_owner_of_a_directory(tmp_path: Path) -> None:
    config = {"vector_store": "sqlite", "data_dir": str(tmp_path)}
    async with Astrocyte.from_config_dict(config) as brain:
        await brain.retain("tea", "b")
        with pytest.raises(StoreLocked):
            Astrocyte.from_config_dict(config)
        await brain.close()
        await brain.close()
    async with Astrocyte.from_config_dict(config) as brain:
        assert len((await brain.recall("tea", "b")).hits) == 1


def test_mistakes_in_the_configuration_open_nothing(tmp_path: Path) -> None:
    config = {"data_dir": str(tmp_path / "data"), "embedding": {"provider": "statik"}}
    with pytest.raises(ConfigError, match="did you mean 'static'"):
        Astrocyte.from_config_dict(config)
    assert not (tmp_path / "data").exists()


async def test_what_is_due_is_erased_in_the_background() -> None:
    now = 1_700_000_000_000
    settings = {"vector_store": "in_memory", "forget": {"purge_after_days": 1, "purge_interval_seconds": 0.01}}
    app = App(Settings.from_mapping(settings), clock=lambda: now)
    me = Caller()
    memory_id = (await app.gate.call(me, Retain("b", RetainItem("tea")))).memory_id or ""
    await app.gate.call(me, Forget("b", ForgetSelector(scope="all")))
    await asyncio.sleep(0.05)
    assert (await app.gate.call(me, GetBankStats("b"))).forgotten_count == 1
    now += 86_400_001
    for _ in range(200):
        await asyncio.sleep(0.01)
        if (await app.gate.call(me, GetBankStats("b"))).forgotten_count == 0:
            break
    with pytest.raises(MemoryNotFound):
        await app.gate.call(me, UndeleteMemory("b", memory_id))
    await app.close()


def test_connect_is_the_clients() -> None:
    from astrocyte.client import connect

    assert astrocyte.connect is connect
    with pytest.raises(AttributeError, match="no attribute"):
        _ = astrocyte.nothing_of_the_kind
