"""Every guard of an invariant has a test that fails without it."""

from __future__ import annotations

import pytest

import guards
from guard_lists import Guard

QUICK = [guard for guard in guards.GUARDS if not guard.slow]


@pytest.mark.process
@pytest.mark.timeout(guards.TIMEOUT_SECONDS)
@pytest.mark.parametrize("guard", QUICK, ids=lambda guard: guard.name)
def test_without_its_guard_an_invariant_does_not_hold(guard: Guard) -> None:
    assert guards.holds(guard) is None


def test_a_guard_that_is_gone_is_told() -> None:
    gone = Guard("gone", "errors.py", "no such text", "", ("tests/unit",))
    assert guards.holds(gone) == "gone: its text stands 0 times in errors.py, not once"
