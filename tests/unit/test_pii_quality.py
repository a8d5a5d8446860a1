"""Recall and precision of personal data on templates that no rule was made for, with lower bounds."""

from __future__ import annotations

import pytest

from benches.pii.__main__ import scanner
from benches.pii.documents import Score, measure
from benches.pii.scripts import SCRIPTS
from benches.pii.scripts import negatives as hard_of
from benches.pii.scripts import positives as documents_of
from benches.pii.values import CHECKSUMMED, MAKERS

# Documents of each type, and hard ones: a slip of one in a hundred shows.
EACH = 200
HARD = 4_000


@pytest.fixture(scope="module")
def score() -> Score:
    return measure(scanner(), "held_out", each=EACH, hard=HARD)


def test_types_with_checksums_are_found_and_nothing_else_is_taken_for_them(score: Score) -> None:
    for name in CHECKSUMMED:
        assert score.recall((name,)) >= 0.95, name
        assert score.precision((name,)) >= 0.95, name
    assert score.recall(CHECKSUMMED) >= 0.98
    assert score.precision(CHECKSUMMED) >= 0.98


def test_phone_numbers_are_found(score: Score) -> None:
    assert score.recall(("phone",)) >= 0.85
    assert score.precision(("phone",)) >= 0.90


def test_other_types_are_found(score: Score) -> None:
    others = [name for name in MAKERS if name not in {*CHECKSUMMED, "phone"}]
    for name in others:
        assert score.recall((name,)) >= 0.90, name
        assert score.precision((name,)) >= 0.90, name


def test_numbers_of_things_hashes_and_code_raise_no_alarm(score: Score) -> None:
    assert score.negatives == HARD
    assert score.false_alarms <= 0.005


@pytest.mark.parametrize("script", SCRIPTS)
def test_values_right_beside_the_letters_of_a_script_are_found(script: str) -> None:
    scan, score = scanner(), Score()
    for document in documents_of(script, 60):
        score.add(document, set(scan(document.text)))
    names = tuple(score.there)
    assert score.recall(names) >= 0.95
    assert score.precision(names) >= 0.95
    alarms = sum(any(scan(document.text)) for document in hard_of(script, 1_000))
    assert alarms <= 5


def test_the_measure_sees_a_scanner_that_finds_nothing_or_too_much() -> None:
    blind = measure(lambda _: (), "held_out", each=2, hard=10)
    assert blind.recall(("email",)) == 0
    assert blind.false_alarms == 0
    eager = measure(lambda text: (("email", 0, len(text)),), "held_out", each=2, hard=10)
    assert eager.precision(("email",)) < 0.1
    assert eager.false_alarms == 1
