"""Relative dates count from the clock or the caller's date, in the zone of the request, the bank or the server."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from astrocyte.api.requests import BatchRecall, Recall, Reflect, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.config.loading.time_zone import zone_of
from astrocyte.errors import ConfigError, ValidationError
from astrocyte.model import Caller, RecallQuery, RecallResult, ReflectQuery, RetainItem
from astrocyte.pipelines.query.time_windows import to_ms

ME = Caller()
# 23:30 in London, and the next day east of it.
NOW = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
DAY = timedelta(days=1)
TOKYO = timezone(timedelta(hours=9))


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return to_ms(self.now)


@asynccontextmanager
async def opened(clock: Callable[[], int] | None = None, **settings: Any) -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"vector_store": "in_memory", **settings}), clock=clock or Clock())
    try:
        for days in range(5):
            await app.gate.call(
                ME, Retain("b", RetainItem(f"Walk number {days} by the lake.", occurred_at=NOW - days * DAY))
            )
        yield app
    finally:
        await app.close()


async def window(app: App, text: str = "what walk yesterday?", **options: Any) -> tuple[str, str]:
    """Start and end of the only window, both in UTC."""
    found = (await app.gate.call(ME, Recall(RecallQuery(text, "b", **options)))).trace
    assert found is not None
    (one,) = found.time_windows
    assert one.start is not None
    assert one.end is not None
    return one.start.isoformat(timespec="minutes")[:16], one.end.isoformat(timespec="minutes")[:16]


async def test_a_memory_of_the_future_does_not_move_yesterday() -> None:
    async with opened() as app:
        await app.gate.call(ME, Retain("b", RetainItem("The dentist expects me.", occurred_at=NOW + 60 * DAY)))
        assert await window(app) == ("2026-11-19T00:00", "2026-11-19T23:59")


async def test_nor_does_an_old_newest_memory() -> None:
    clock = Clock()
    async with opened(clock) as app:
        clock.now = NOW + 30 * DAY
        assert await window(app) == ("2026-12-19T00:00", "2026-12-19T23:59")


async def test_the_callers_date_goes_before_the_clock() -> None:
    async with opened() as app:
        assert await window(app, query_reference_date=datetime(2025, 3, 2, tzinfo=UTC)) == (
            "2025-03-01T00:00",
            "2025-03-01T23:59",
        )


TOKYO_DAY = ("2026-11-19T15:00", "2026-11-20T14:59")
UTC_DAY = ("2026-11-19T00:00", "2026-11-19T23:59")


@pytest.mark.parametrize(
    ("settings", "options", "expected"),
    [
        ({}, {"time_zone": "Asia/Tokyo"}, TOKYO_DAY),
        ({}, {"time_zone": "+09:00"}, TOKYO_DAY),
        ({"time_zone": "Asia/Tokyo"}, {}, TOKYO_DAY),
        ({"banks": {"b": {"time_zone": "Asia/Tokyo"}}}, {}, TOKYO_DAY),
        ({"time_zone": "Asia/Tokyo", "banks": {"b": {"time_zone": "UTC"}}}, {}, UTC_DAY),
        ({"time_zone": "Asia/Tokyo", "banks": {"b": {"profile": "personal"}}}, {}, TOKYO_DAY),
        ({"time_zone": "Asia/Tokyo", "banks": {"c": {"time_zone": "UTC"}}}, {}, TOKYO_DAY),
        ({"banks": {"b": {"time_zone": "America/Lima"}}}, {"time_zone": "Asia/Tokyo"}, TOKYO_DAY),
        # The offset of the reference is where its day is.
        ({}, {"query_reference_date": NOW.astimezone(TOKYO)}, TOKYO_DAY),
        ({"time_zone": "America/Lima"}, {"query_reference_date": NOW.astimezone(TOKYO)}, TOKYO_DAY),
        ({}, {"query_reference_date": NOW.astimezone(TOKYO), "time_zone": "UTC"}, UTC_DAY),
        # UTC says nothing of where the caller is.
        ({"time_zone": "Asia/Tokyo"}, {"query_reference_date": NOW}, TOKYO_DAY),
    ],
)
async def test_days_are_those_of_the_nearest_zone(
    settings: dict[str, Any], options: dict[str, Any], expected: tuple[str, str]
) -> None:
    async with opened(**settings) as app:
        assert await window(app, **options) == expected


async def test_banks_of_a_template_have_its_zone() -> None:
    templates = {"people": {"name_pattern": "user-{user_id}", "time_zone": "Asia/Tokyo", "auto_create": True}}
    settings: dict[str, Any] = {
        "bank_templates": templates,
        "banks": {"user-lima": {"time_zone": "America/Lima"}, "user-plain": {}},
    }
    async with opened(**settings) as app:
        found = {}
        for bank in ("user-ann", "user-plain", "user-lima"):
            await app.gate.call(ME, Retain(bank, RetainItem("A walk.", occurred_at=NOW)))
            trace = (await app.gate.call(ME, Recall(RecallQuery("what walk yesterday?", bank)))).trace
            assert trace is not None
            found[bank] = trace.time_windows[0].start
    assert found["user-ann"] == found["user-plain"] == datetime(2026, 11, 19, 15, tzinfo=UTC)
    assert found["user-lima"] == datetime(2026, 11, 19, 5, tzinfo=UTC)


async def test_a_day_on_which_clocks_change_has_its_own_length() -> None:
    async with opened(time_zone="Europe/Berlin") as app:
        assert await window(app, "what walk on 25 October 2026?") == ("2026-10-24T22:00", "2026-10-25T22:59")
        assert await window(app, "what walk on 29 March 2026?") == ("2026-03-28T23:00", "2026-03-29T21:59")


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "", "+25:00", "../../etc/passwd", "Europe/Berlin\0", "x" * 10_000, "+1:99"]
)
async def test_an_unknown_zone_is_refused_with_its_field(zone: str) -> None:
    async with opened() as app:
        with pytest.raises(ValidationError) as refused:
            await app.gate.call(ME, Recall(RecallQuery("a walk", "b", time_zone=zone)))
        assert refused.value.metadata["field"] == "time_zone"
        with pytest.raises(ValidationError) as refused:
            await app.gate.call(ME, Reflect(ReflectQuery("a walk", "b", time_zone=zone)))
        assert refused.value.metadata["field"] == "time_zone"
        with pytest.raises(ValidationError) as refused:
            await app.gate.call(
                ME, BatchRecall([RecallQuery("a walk", "b"), RecallQuery("a walk", "b", time_zone=zone)])
            )
        assert refused.value.metadata["field"] == "queries[1].time_zone"


@pytest.mark.parametrize(
    "settings",
    [
        {"time_zone": "Mars/Olympus"},
        {"banks": {"b": {"time_zone": "+99:00"}}},
        {"bank_templates": {"people": {"name_pattern": "user-{user_id}", "time_zone": "Nowhere"}}},
    ],
)
def test_an_unknown_zone_in_settings_is_refused_with_its_key(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="time_zone"):
        Settings.from_mapping({"vector_store": "in_memory", **settings})


def test_zones_by_name_and_by_offset() -> None:
    assert zone_of("UTC") is UTC
    assert zone_of("Europe/Berlin") == ZoneInfo("Europe/Berlin")
    for name, minutes in (("+02:00", 120), ("-0330", -210), ("UTC+2", 120), ("+5:45", 345)):
        assert zone_of(name).utcoffset(None) == timedelta(minutes=minutes)


async def asked(app: App, text: str, **options: Any) -> RecallResult:
    return await app.gate.call(ME, Recall(RecallQuery(text, "b", **options)))


@pytest.mark.parametrize(
    ("text", "later", "kept"),
    [
        ("what walk yesterday?", timedelta(minutes=20), True),
        ("what walk yesterday?", timedelta(minutes=40), False),
        ("what walk in the last two hours?", timedelta(minutes=5), False),
        ("what walk by the lake?", 30 * DAY, True),
    ],
)
async def test_a_kept_answer_does_not_outlive_its_day(text: str, later: timedelta, *, kept: bool) -> None:
    clock = Clock()
    async with opened(clock, recall={"cache_bytes": 1 << 20}) as app:
        await asked(app, text)
        again = await asked(app, text)
        assert again.trace is not None
        assert again.trace.cache_hit
        clock.now = NOW + later
        third = await asked(app, text)
        assert third.trace is not None
        assert third.trace.cache_hit is kept
        # The caller's own date never passes.
        given = {"query_reference_date": NOW}
        await asked(app, text, **given)
        clock.now += 90 * DAY
        fourth = await asked(app, text, **given)
        assert fourth.trace is not None
        assert fourth.trace.cache_hit


async def test_the_day_changes_where_the_request_is() -> None:
    clock = Clock()
    async with opened(clock, recall={"cache_bytes": 1 << 20}) as app:
        clock.now = datetime(2026, 11, 20, 14, 50, tzinfo=UTC)
        await asked(app, "what walk yesterday?", time_zone="Asia/Tokyo")
        clock.now += timedelta(minutes=20)
        result = await asked(app, "what walk yesterday?", time_zone="Asia/Tokyo")
        assert result.trace is not None
        assert not result.trace.cache_hit
        assert result.trace.time_windows[0].start == datetime(2026, 11, 19, 15, tzinfo=UTC)


async def test_an_impossible_date_is_told_in_the_trace() -> None:
    async with opened() as app:
        trace = (await asked(app, "what walk on 30 February?")).trace
        assert trace is not None
        assert trace.time_windows == ()
        assert trace.date_warnings == ("30 February is no date of the calendar",)
        assert "temporal" not in (trace.strategies_used or ())
        await app.gate.call(ME, Retain("c", RetainItem("A walk.")))
        several = await app.gate.call(ME, Recall(RecallQuery("what walk on 30 February?", banks=("b", "c"))))
        assert several.trace is not None
        assert several.trace.date_warnings == ("30 February is no date of the calendar",)


async def test_a_side_of_a_date_outweighs_the_words_of_the_date() -> None:
    """The memory that names the missing year comes after the earlier ones."""
    async with opened() as app:
        for year, what in ((2021, "a tent"), (2022, "a canoe"), (2023, "a stove"), (2024, "a kettle")):
            for month in (3, 8):
                when = datetime(year, month, 5, tzinfo=UTC)
                item = RetainItem(f"Bought {what}, receipt {month}/{year}.", occurred_at=when)
                await app.gate.call(ME, Retain("trips", item))
        for text, years in (
            ("what did we buy before 2023?", {2021, 2022}),
            ("what did we buy after 2022?", {2023, 2024}),
            ("what did we buy since 2023?", {2023, 2024}),
            ("what did we buy until August 2022?", {2021, 2022}),
            ("what did we buy between 2022 and 2023?", {2022, 2023}),
        ):
            hits = (await app.gate.call(ME, Recall(RecallQuery(text, "trips", max_results=4)))).hits
            assert {hit.occurred_at.year for hit in hits if hit.occurred_at} == years, text
