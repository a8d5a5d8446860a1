"""The parser against a reference grammar that shares no code with it (tests/date_grammars)."""

from datetime import date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from astrocyte.pipelines.query.calendar import Calendar
from astrocyte.pipelines.query.date_parser import may_name_time, read_dates
from astrocyte.pipelines.query.spans import OPEN_END, OPEN_START
from astrocyte.pipelines.query.time_windows import EARLIEST_MS, LATEST_MS, question_times
from date_grammars import WHOLE, Case, World, case_of

TEMPLATES = 60
# Offsets of both signs, with half hours, and clocks that change in both hemispheres.
ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Sydney",
    "Pacific/Auckland",
    "America/Lima",
]
MINUTES_OF_YEAR = 527_040


def random_world(random: Random) -> World:
    first = datetime(random.randint(2015, 2030), 1, 1)  # noqa: DTZ001 - local time
    now = first + timedelta(minutes=random.randrange(MINUTES_OF_YEAR))
    return World(random, now, range(now.year - random.randint(0, 3), now.year + 1))


def wrong(random: Random) -> Case | None:
    """A case that the parser does not read as the grammar means it."""
    world = random_world(random)
    case = case_of(world)
    bank = Calendar.of(date(world.years[0], 1, 1), date(world.years[-1], 12, 31), world.now)
    found = [
        (None if start == OPEN_START else start, None if end == OPEN_END else end)
        for start, end in read_dates(case.phrase, bank).spans
    ]
    hinted = may_name_time(case.phrase) or not case.windows
    return None if sorted(found, key=str) == case.windows and hinted else case


def test_the_grammar_has_many_forms() -> None:
    random = Random(3)
    seen = {case_of(random_world(random)).template for _ in range(5_000)}
    assert len(seen) == len(set(WHOLE)) >= TEMPLATES


@pytest.mark.parametrize("seed", range(4))
def test_random_phrases_mean_what_the_grammar_says(seed: int) -> None:
    random = Random(seed)
    assert [case for _ in range(2_500) if (case := wrong(random)) is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_great_many_random_phrases_mean_what_the_grammar_says(seed: int) -> None:
    random = Random(seed)
    assert [case for _ in range(20_000) if (case := wrong(random)) is not None] == []


@pytest.mark.parametrize("zone", ZONES)
def test_windows_are_of_the_zone_of_the_reference(zone: str) -> None:
    """Days begin and end when they do there, also where clocks change."""
    random, there = Random(zone), ZoneInfo(zone)
    for _ in range(400):
        world = random_world(random)
        case = case_of(world)
        if "hour" in case.phrase or "minute" in case.phrase:
            # Local arithmetic of the grammar is no measure where clocks change.
            continue
        first, last = (
            int(datetime(year, 6, 1, tzinfo=there).timestamp() * 1e3) for year in (world.years[0], world.years[-1])
        )
        times = question_times(case.phrase, first=first, last=last, reference=world.now.replace(tzinfo=there))
        expected = [
            (
                EARLIEST_MS if start is None else round(start.replace(tzinfo=there).timestamp() * 1e3),
                LATEST_MS if end is None else round(end.replace(tzinfo=there).timestamp() * 1e3) - 1,
            )
            for start, end in case.windows
        ]
        assert sorted(times.windows) == sorted(expected), case
