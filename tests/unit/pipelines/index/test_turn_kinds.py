"""Kinds of turns by their words."""

import pytest

from astrocyte.pipelines.index.turn_kinds import SHORT, is_address, is_question, is_role


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How was it?", True),
        ('She asked "how was it?" ', True),
        ("\u3069\u3046\u3067\u3057\u305f\u304b\uff1f", True),
        ("How was it? Fine.", False),
        ("", False),
        ("a" * (SHORT - 1) + "?", True),
        ("a" * SHORT + "?", False),
    ],
)
def test_questions(text: str, expected: bool) -> None:
    assert is_question(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Your dog is lovely.", True),
        ("You've won the race!", True),
        ("I like your dog.", False),
        ("You and us", False),
        ("The dog is lovely.", False),
        ("youth", False),
    ],
)
def test_addresses(text: str, expected: bool) -> None:
    assert is_address(text) is expected


def test_roles() -> None:
    assert is_role("Assistant")
    assert not is_role("Mara")
