"""The health of banks: the formula, its issues, what is counted for whom, and its metrics."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    DeleteBank,
    GetBankStats,
    Recall,
    Reflect,
    Retain,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import DiskFull
from astrocyte.model import (
    BankHealth,
    Caller,
    HealthStatus,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
)
from astrocyte.policy.quality import bank_activity
from astrocyte.policy.quality.bank_activity import DAY_MS, BankActivity
from astrocyte.policy.quality.bank_health import assess
from astrocyte.stores.activity import Counts

CALLER = Caller()
FIRST_DAY = 20_000


def health(**counts: Any) -> BankHealth:
    return assess({FIRST_DAY: Counts(**counts)}, FIRST_DAY * DAY_MS)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = App(
        Settings.from_mapping({"vector_store": "in_memory", "observability": {"prometheus_enabled": True}}),
    )
    yield app
    await app.close()


def test_a_bank_without_calls_scores_half_and_has_no_issue() -> None:
    idle = assess({}, FIRST_DAY * DAY_MS)
    assert (idle.score, idle.status, idle.issues, idle.trend) == (0.5, HealthStatus.WARNING, (), ())
    assert idle.metrics.recall_hit_rate is None


def test_the_score_is_the_weighted_sum_of_its_parts() -> None:
    counts = {"retains": 10, "duplicates": 2, "characters": 1_000, "recalls": 10, "recalls_with_hits": 8}
    some = health(**counts, scored=4.0, reflects=4, answered=3)
    assert some.score == pytest.approx(
        0.3 * 0.8 + 0.2 * 0.5 + 0.15 * 0.8 + 0.15 * 0.75 + 0.1 * 0.5 + 0.1 * 0.5, abs=1e-4
    )
    best = health(retains=5, characters=5_000, recalls=50, recalls_with_hits=50, scored=50.0, reflects=3, answered=3)
    assert (best.score, best.status, best.issues) == (1.0, HealthStatus.HEALTHY, ())
    worst = health(retains=20, duplicates=20, recalls=1, reflects=1)
    assert (worst.score, worst.status) == (0.1025, HealthStatus.CRITICAL)


@pytest.mark.parametrize(
    ("counts", "codes"),
    [
        ({"recalls": 4}, []),
        ({"recalls": 5, "recalls_with_hits": 3, "scored": 3.0}, []),
        ({"recalls": 5, "recalls_with_hits": 2}, [("low_hit_rate", "warning")]),
        ({"recalls": 5, "recalls_with_hits": 1}, [("low_hit_rate", "critical")]),
        ({"retains": 9, "duplicates": 9, "characters": 900}, []),
        ({"retains": 10, "duplicates": 5, "characters": 900}, []),
        ({"retains": 10, "duplicates": 6, "characters": 900}, [("high_dedup_rate", "warning")]),
        ({"reflects": 2}, []),
        ({"reflects": 3, "answered": 1}, [("low_reflect_success", "warning")]),
        ({"retains": 4, "characters": 4}, []),
        ({"retains": 5, "characters": 99}, [("short_content", "warning")]),
        ({"retains": 5, "characters": 100}, []),
    ],
)
def test_an_issue_needs_enough_calls(counts: dict[str, Any], codes: list[tuple[str, str]]) -> None:
    assert [(issue.code, str(issue.severity)) for issue in health(**counts).issues] == codes


def test_days_are_kept_for_two_weeks_and_banks_while_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [FIRST_DAY * DAY_MS]
    activity = BankActivity(lambda: now[0])
    for _ in range(bank_activity.KEPT_DAYS + 3):
        activity.recalled("t", "a", RecallResult((), 0, truncated=False))
        now[0] += DAY_MS
    now[0] -= DAY_MS
    assert list(activity.days("t", "a")) == list(range(FIRST_DAY + 3, FIRST_DAY + bank_activity.KEPT_DAYS + 3))
    now[0] += 5 * DAY_MS
    assert len(activity.days("t", "a")) == bank_activity.KEPT_DAYS - 5
    monkeypatch.setattr(bank_activity, "KEPT_BANKS", 2)
    for bank in ("b", "a", "c"):
        activity.reflected("t", bank, ReflectResult(""))
    assert list(activity.recent()) == [("t", "a"), ("t", "c")]
    assert activity.days("other", "a") == {}


async def test_calls_count_for_their_bank_alone(app: App) -> None:
    async def call(request: Any) -> Any:
        return await app.backend.call(CALLER, request)

    text = "Mara is allergic to sesame, not to nuts."
    await call(Retain("a", RetainItem(text)))
    await call(BatchRetain("a", [RetainItem(text), RetainItem("Anders plays the oboe in an orchestra.")]))
    await call(Retain("b", RetainItem("The cat only eats the expensive food.")))
    await call(Recall(RecallQuery("allergic", "a")))
    await call(Recall(RecallQuery("allergic", "a", tags=("none",))))
    await call(BatchRecall([RecallQuery("oboe", "a"), RecallQuery("cat", "b")]))
    await call(Recall(RecallQuery("cat", banks=("a", "b"))))
    await call(Reflect(ReflectQuery("what is Mara allergic to?", "a")))
    found = (await call(GetBankStats("a"))).health
    rates = found.metrics
    assert (rates.retain_count, rates.recall_count, rates.reflect_count) == (3, 3, 1)
    assert rates.dedup_rate == pytest.approx(1 / 3)
    assert rates.recall_hit_rate == pytest.approx(2 / 3)
    assert 0 < rates.avg_recall_score <= 1
    assert rates.recalls_per_retain == 1
    assert [(day.retain_count, day.recall_count) for day in found.trend] == [(3, 3)]
    other = (await call(GetBankStats("b"))).health
    assert (other.metrics.retain_count, other.metrics.recall_count, other.metrics.reflect_count) == (1, 1, 0)
    await call(DeleteBank("a"))
    assert list(app.policies.activity.recent()) == [("default", "b")]


async def test_metrics_tell_the_score_by_bank_and_the_banks_by_issue(app: App) -> None:
    for bank in ("a", "b"):
        await app.backend.call(CALLER, Retain(bank, RetainItem("Mara plays the oboe.")))
        for _ in range(5):
            await app.backend.call(CALLER, Recall(RecallQuery("oboe", bank, tags=() if bank == "a" else ("none",))))
    assert app.telemetry.metrics
    told = generate_latest(app.telemetry.metrics.registry).decode().splitlines()
    scores = {line.split()[0]: float(line.split()[1]) for line in told if line.startswith("astrocyte_bank_health_")}
    assert scores['astrocyte_bank_health_score{bank_id="a"}'] > scores['astrocyte_bank_health_score{bank_id="b"}']
    assert scores['astrocyte_bank_health_issues{issue="low_hit_rate"}'] == 1
    assert scores['astrocyte_bank_health_issues{issue="short_content"}'] == 0


async def test_counts_outlive_a_restart_and_go_with_their_bank(tmp_path: Path) -> None:
    settings = Settings.from_mapping({"data_dir": str(tmp_path)})
    for retains in (1, 2):
        app = App(settings)
        await app.backend.call(CALLER, Retain("a", RetainItem(f"Mara plays the oboe on day {retains}.")))
        assert await retained(app) == retains
        await app.policies.flush()
        # Nothing is counted twice.
        assert await retained(app) == retains
        await app.close()
    app = App(settings)
    assert list(app.policies.activity.recent()) == [("default", "a")]
    await app.backend.call(CALLER, DeleteBank("a"))
    await app.backend.call(CALLER, Retain("a", RetainItem("Another bank of that name.")))
    assert await retained(app) == 1
    await app.close()


async def retained(app: App) -> int:
    """The retains of today that the bank's health is computed of."""
    health = (await app.backend.call(CALLER, GetBankStats("a"))).health
    assert health is not None
    assert [day.retain_count for day in health.trend] == [health.metrics.retain_count]
    return health.metrics.retain_count


async def test_processes_of_one_store_add_their_counts(tmp_path: Path) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    await app.backend.call(CALLER, Retain("a", RetainItem("Mara plays the oboe.")))
    now = [app.storage.clock()]
    first, second = (BankActivity(lambda: now[0], app.storage.store.activity) for _ in range(2))
    nothing = RecallResult((), 0, truncated=False)
    for activity in (first, second, second):
        activity.recalled("default", "a", nothing)
    await first.flush()
    await second.flush()
    second.recalled("default", "a", nothing)
    (day,) = second.days("default", "a").values()
    assert day.recalls == 4
    # Days that are over are dropped when others are stored.
    now[0] += (bank_activity.KEPT_DAYS + 1) * DAY_MS
    assert first.days("default", "a") == {}
    assert first.recent() == {}
    first.recalled("default", "a", nothing)
    await first.flush()
    assert len(app.storage.store.activity.days(("default", "a"), since=0)) == 1
    await app.close()


async def test_counts_that_cannot_be_stored_are_counted_with_the_next_and_each_once(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bank in ("a", "b"):
        await app.gate.call(CALLER, CreateBank(bank))
    store = app.storage.store.activity
    activity = BankActivity(lambda: FIRST_DAY * DAY_MS, store)
    nothing = RecallResult((), 0, truncated=False)
    inner = store.add

    async def full(*_: Any, **__: Any) -> None:
        # A recall counts meanwhile, and a bank is deleted.
        activity.recalled("default", "a", nothing)
        activity.forget("default", "b")
        raise DiskFull("no room")

    for bank in ("a", "b"):
        activity.recalled("default", bank, nothing)
    monkeypatch.setattr(store, "add", full)
    with pytest.raises(DiskFull):
        await activity.flush()
    monkeypatch.setattr(store, "add", inner)
    await activity.flush()
    await activity.flush()
    assert activity.days("default", "a") == {FIRST_DAY: Counts(recalls=2)}
    assert activity.days("default", "b") == {}


async def test_a_flush_that_is_given_up_counts_each_call_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    await app.gate.call(CALLER, CreateBank("a"))
    store, begun = app.storage.store.activity, asyncio.Event()
    activity = BankActivity(lambda: FIRST_DAY * DAY_MS, store)
    inner = store.add

    async def slow(*given: Any, **named: Any) -> None:
        begun.set()
        await asyncio.sleep(0.05)
        await inner(*given, **named)

    monkeypatch.setattr(store, "add", slow)
    activity.recalled("default", "a", RecallResult((), 0, truncated=False))
    flushing = asyncio.create_task(activity.flush())
    await begun.wait()
    flushing.cancel()
    await activity.flush()
    assert activity.days("default", "a") == {FIRST_DAY: Counts(recalls=1)}
