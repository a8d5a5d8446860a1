"""Limits at the gate: which calls count, for whom, and what a refusal says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api import LimitKind
from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    Forget,
    History,
    ListMemories,
    Recall,
    Retain,
    StreamRetain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, LimitReached, QuotaExceeded, RateLimited, ValidationError
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.policy.gate import Gate
from astrocyte.policy.limits.daily_quotas import Quotas
from astrocyte.policy.limits.rate_limits import Demand, Limits
from astrocyte.policy.limits.token_bucket import NANOSECONDS
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.stores.sqlite.tables.quotas import SqliteQuotaBook

ME, OTHER = Caller(), Caller(tenant="other")
QUERY = RecallQuery("tea", "b")


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def app(homeostasis: dict[str, Any], banks: dict[str, Any] | None = None, **more: Any) -> App:
    values = {"vector_store": "in_memory", "homeostasis": homeostasis, "banks": banks or {}, **more}
    return App(Settings.from_mapping(values))


def limits(homeostasis: dict[str, Any], banks: dict[str, Any] | None = None) -> tuple[Limits, Clock]:
    settings = Settings.from_mapping({"homeostasis": homeostasis, "banks": banks or {}})
    clock = Clock()
    return Limits(settings, Overrides(settings), None, clock), clock


def recalls(*banks: str, amount: int = 1) -> list[Demand]:
    return [Demand("default", bank, LimitKind.RECALL, amount) for bank in banks]


async def test_a_call_on_several_banks_is_admitted_by_all_or_by_none() -> None:
    held, clock = limits({"rate_limits": {"recall_per_minute": 2}}, {"c": {"homeostasis": {"recall_per_minute": 1}}})
    await held.admit(recalls("c"))
    for _ in range(5):
        with pytest.raises(LimitReached, match="limit of 1 a minute for recall in bank 'c'") as caught:
            await held.admit(recalls("a", "b", "c"))
        assert caught.value.retry_after == 60.0
        assert caught.value.metadata["bank_id"] == "c"
    await held.admit(recalls("a", "b"))
    await held.admit(recalls("a", "b"))
    with pytest.raises(LimitReached) as caught:
        await held.admit(recalls("b", "a"))
    clock.now += round(caught.value.retry_after * NANOSECONDS)
    await held.admit(recalls("b", "a"))
    # The same bank twice takes two.
    clock.now += 30 * NANOSECONDS
    with pytest.raises(LimitReached):
        await held.admit(recalls("a", "a"))


async def test_buckets_are_per_tenant_bank_and_operation_and_one_is_for_all() -> None:
    held, _ = limits({"rate_limits": {"recall_per_minute": 1, "retain_per_minute": 1, "global_per_minute": 5}})
    demands = [
        Demand(tenant, bank, operation)
        for tenant in ("t", "u")
        for bank in ("a", "b")
        for operation in (LimitKind.RETAIN, LimitKind.RECALL)
    ]
    for demand in demands[:5]:
        await held.admit([demand])
    with pytest.raises(LimitReached, match="this server") as caught:
        await held.admit([demands[5]])
    assert caught.value.metadata["bank_id"] == ""
    assert caught.value.retry_after == 12.0


@pytest.mark.parametrize(
    ("homeostasis", "banks"),
    [
        ({}, {"c": {"homeostasis": {"recall_per_minute": 1}}}),
        ({"rate_limits": {"recall_per_minute": 1}}, {"a": {"homeostasis": {"recall_max_tokens": 100}}}),
        ({"rate_limits": {"global_per_minute": 3}}, {}),
    ],
)
async def test_one_bank_with_a_limit_is_enough_to_count(homeostasis: dict[str, Any], banks: dict[str, Any]) -> None:
    held, _ = limits(homeostasis, banks)
    await held.admit_each("default", ("a", "b", "c"), LimitKind.RECALL)
    with pytest.raises(LimitReached):
        await held.admit_each("default", ("a", "b", "c"), LimitKind.RECALL)


async def test_without_limits_nothing_is_counted() -> None:
    held, _ = limits({})
    for _ in range(1_000):
        await held.admit(recalls("a", amount=256))


async def pass_until(call: Callable[[], Awaitable[object]], most: int = 50) -> int:
    """The number of calls that pass before one is refused for its number."""
    for count in range(most):
        try:
            await call()
        except LimitReached:
            return count
        except AstrocyteError:
            continue
    return most


async def test_every_way_to_recall_counts_as_one() -> None:
    built = app({"rate_limits": {"recall_per_minute": 10}}, {"quick": {"homeostasis": {"recall_per_minute": 40}}})
    gate = built.gate
    await gate.call(ME, Retain("b", RetainItem("tea")))
    await gate.call(ME, Recall(QUERY))
    await gate.call(ME, BatchRecall([QUERY] * 3))
    await gate.call(ME, History(replace(QUERY, as_of=datetime(2030, 1, 1, tzinfo=UTC))))
    # The limit comes before the look at the query, so a wrong one counts too.
    with pytest.raises(ValidationError):
        await gate.call(ME, Recall(replace(QUERY, max_results=0)))
    with pytest.raises(RateLimited):
        await gate.call(ME, BatchRecall([QUERY] * 5))
    assert await pass_until(lambda: gate.call(ME, Recall(QUERY))) == 4
    assert await pass_until(lambda: gate.call(OTHER, Recall(QUERY))) == 10
    assert await pass_until(lambda: gate.call(ME, Recall(replace(QUERY, bank_id="quick")))) == 40
    await built.close()


async def test_every_memory_that_is_sent_counts_as_one() -> None:
    built = app({"rate_limits": {"retain_per_minute": 10}})
    gate = built.gate
    stored = await gate.call(ME, Retain("b", RetainItem("tea")))
    await gate.call(ME, BatchRetain("b", [RetainItem(f"note {n}") for n in range(3)]))
    update = MemoryUpdate(stored.memory_id or "", frozenset({"content"}), content="green tea")
    await gate.call(ME, UpdateMemory("b", update))
    results = await gate.call(ME, StreamRetain("b", [RetainItem(f"more {n}") for n in range(7)]))
    assert [isinstance(result, LimitReached) for result in results] == [False] * 5 + [True] * 2
    for refused in (gate.call(ME, Retain("b", RetainItem("x"))), gate.call(ME, UpdateMemory("b", update))):
        with pytest.raises(LimitReached):
            await refused
    # Forgetting is never held up.
    await gate.call(ME, Forget("b", ForgetSelector(scope="all")))
    await built.close()


async def test_a_daily_quota_survives_a_restart(tmp_path: Path) -> None:
    values = {"data_dir": str(tmp_path), "homeostasis": {"quotas": {"retain_per_day": 20}}}
    passed = 0
    for most in (8, 50):
        built = App(Settings.from_mapping(values), clock=lambda: 1_700_000_000_000)
        passed += await pass_until(lambda: built.gate.call(ME, Retain("b", RetainItem("tea"))), most)  # noqa: B023
        await built.close()
        await built.close()
    assert passed == 20
    built = App(Settings.from_mapping(values), clock=lambda: 1_700_000_000_000)
    with pytest.raises(LimitReached, match="20 a day") as caught:
        await built.gate.call(ME, Retain("b", RetainItem("tea")))
    assert caught.value.retry_after == 86_400 - 1_700_000_000 % 86_400
    await built.close()


async def test_a_rate_that_refuses_gives_the_quota_back() -> None:
    settings = Settings.from_mapping(
        {"homeostasis": {"rate_limits": {"retain_per_minute": 3}, "quotas": {"retain_per_day": 10}}}
    )
    clock = Clock()
    quotas = Quotas(SqliteQuotaBook(None), lambda: 0, ThreadPoolExecutor(1))
    held = Limits(settings, Overrides(settings), quotas, clock)
    demands = [Demand("default", "b", LimitKind.RETAIN)]
    passed = []
    for _ in range(5):
        # All of them see a full bucket, wait for the quota, and find the bucket empty.
        answers = await asyncio.gather(*(held.admit(demands) for _ in range(8)), return_exceptions=True)
        assert {type(answer) for answer in answers} <= {type(None), LimitReached}
        passed.append(answers.count(None))
        clock.now += 60 * NANOSECONDS
    assert passed == [3, 3, 3, 1, 0]
    await held.close()


async def stored_bytes(gate: Gate) -> int:
    page = await gate.call(ME, ListMemories("b"))
    return sum(len(memory.content.encode()) for memory in page.memories)


async def test_a_bank_holds_no_more_than_it_may() -> None:
    built = app({"quotas": {"storage_bytes_per_bank": 100}}, {"wide": {"homeostasis": {"quotas": {}}}})
    gate = built.gate
    first = await gate.call(ME, Retain("b", RetainItem("a" * 59 + "é")))
    with pytest.raises(QuotaExceeded, match="holds 61 of the 100") as caught:
        await gate.call(ME, Retain("b", RetainItem("b" * 40)))
    assert caught.value.metadata == {"kind": "storage_bytes", "limit": "100", "bank_id": "b"}
    await gate.call(ME, Retain("b", RetainItem("b" * 39)))
    assert await stored_bytes(gate) == 100
    with pytest.raises(QuotaExceeded):
        await gate.call(ME, BatchRetain("b", [RetainItem("c"), RetainItem("d")]))
    grown = MemoryUpdate(first.memory_id or "", frozenset({"content"}), content="e" * 62)
    with pytest.raises(QuotaExceeded):
        await gate.call(ME, UpdateMemory("b", grown))
    await gate.call(ME, UpdateMemory("b", replace(grown, content="e" * 31)))
    await gate.call(ME, UpdateMemory("b", MemoryUpdate(first.memory_id or "", frozenset({"tags"}), tags=("t",))))
    await gate.call(ME, Retain("b", RetainItem("f" * 30)))
    # Other tenants and banks have room of their own; what is forgotten makes room.
    await gate.call(OTHER, Retain("b", RetainItem("g" * 100)))
    await gate.call(ME, Forget("b", ForgetSelector(scope="all")))
    await gate.call(ME, Retain("b", RetainItem("h" * 100)))
    await built.close()


async def test_writes_at_once_do_not_take_the_same_room() -> None:
    built = app({"quotas": {"storage_bytes_per_bank": 50}})
    await built.gate.call(ME, Retain("b", RetainItem("0" * 10)))
    items = [RetainItem(str(n) * 10) for n in range(1, 9)]
    answers = await asyncio.gather(*(fits(built.gate, item) for item in items))
    assert sum(answers) == 4
    assert await stored_bytes(built.gate) == 50
    await built.close()


async def fits(gate: Gate, item: RetainItem) -> bool:
    try:
        await gate.call(ME, Retain("b", item))
    except QuotaExceeded:
        return False
    return True
