"""Who is alone, and who was not a moment ago."""

from __future__ import annotations

from astrocyte.services.company import MET_SECONDS, WAITED_SECONDS, Company


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_one_call_after_the_other_is_alone() -> None:
    company = Company(Clock())
    assert not company.alone()
    for _ in range(3):
        company.came(WAITED_SECONDS / 2)
        assert company.alone()
        company.left()


def test_two_that_meet_are_not_alone_for_a_while() -> None:
    clock = Clock()
    company = Company(clock)
    company.came(0.0)
    company.came(0.0)
    assert not company.alone()
    company.left()
    clock.now += MET_SECONDS * 0.9
    assert not company.alone()
    clock.now += MET_SECONDS * 0.2
    assert company.alone()


def test_one_that_waited_for_the_loop_has_met_who_held_it() -> None:
    clock = Clock()
    company = Company(clock)
    company.came(WAITED_SECONDS * 2)
    assert not company.alone()
    company.left()
    clock.now += MET_SECONDS * 1.1
    company.came(0.0)
    assert company.alone()


def test_beside_a_stream_that_stirs_nobody_is_alone_for_a_while() -> None:
    clock = Clock()
    company = Company(clock)
    company.came(0.0)
    company.stirred()
    assert not company.alone()
    clock.now += MET_SECONDS * 1.1
    assert company.alone()


def test_the_only_call_is_so_whatever_was_before() -> None:
    company = Company(Clock())
    company.came(WAITED_SECONDS * 2)
    assert company.only()
    company.came(0.0)
    assert not company.only()
    company.left()
    assert company.only()
