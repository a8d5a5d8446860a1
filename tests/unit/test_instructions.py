"""Failures of the comparison of instruction counts (benches/instructions.py)."""

import pytest

from benches.instructions import compare

STORED = {"scan": 1_000_000, "fusion": 2_000_000}


@pytest.mark.parametrize(
    ("counted", "slower"),
    [
        ({"scan": 1_000_000, "fusion": 2_000_000}, []),
        ({"scan": 1_030_000, "fusion": 1_000_000}, []),
        ({"scan": 1_030_001, "fusion": 2_000_000}, ["scan"]),
        ({"scan": 2_000_000, "fusion": 4_000_000}, ["scan", "fusion"]),
        ({"scan": 1_000_000, "filter": 1}, ["filter"]),
    ],
    ids=["equal", "within the tolerance", "just beyond it", "twice", "a kernel that is not stored"],
)
def test_more_than_the_tolerance_is_too_many(counted: dict[str, int], slower: list[str]) -> None:
    assert compare(STORED, counted) == slower
