"""The sides of a comparison are the words next to what joins them."""

from __future__ import annotations

import pytest

from astrocyte.pipelines.graph.comparison import MOST_CHARS, sides


@pytest.mark.parametrize(
    ("question", "left", "right"),
    [
        ("compare Alice Smith and Bob Miller", "Alice Smith", "Bob Miller"),
        ("Compare Kyoto with Osaka.", "Kyoto", "Osaka."),
        ("Comparing the Atlas project to Borealis, please", "the Atlas project", "Borealis, please"),
        ("comparison of Lisbon and Porto in spring", "Lisbon", "Porto in spring"),
        ("Alice Smith vs Bob Miller: who is older?", "Alice Smith", "Bob Miller: who is"),
        ("Lisbon versus Porto", "Lisbon", "Porto"),
        ("What is the difference between Atlas and Borealis?", "Atlas", "Borealis?"),
        ("How does Alice differ from Bob?", "How does Alice", "Bob?"),
        ("Is Lisbon larger than Porto?", "Is Lisbon", "Porto?"),
        ("What do Alice and Bob have in common?", "Alice", "Bob"),
        ("Who came first, Alice Smith or Bob Miller?", "came first, Alice Smith", "Bob Miller?"),
        ("Atlas or Borealis", "Atlas", "Borealis"),
    ],
)
def test_sides(question: str, left: str, right: str) -> None:
    assert sides(question) == (left, right)


@pytest.mark.parametrize(
    "question",
    ["", "where is the key?", "Alice and Bob went to Porto", "more or", "compare", "the difference", "organise a vsop"],
)
def test_no_sides(question: str) -> None:
    assert sides(question) is None


def test_a_long_question_is_read_at_its_head() -> None:
    assert sides("Alice or " + "x" * 100_000) == ("Alice", "x" * (MOST_CHARS - 9))
    assert sides("x" * 100_000 + " Alice or Bob") is None
    # No shape takes more than linear time of what it does not match.
    assert sides("compare " + "a and " * 100_000) is not None
