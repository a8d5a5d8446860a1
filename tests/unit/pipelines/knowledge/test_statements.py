"""Statements are found by rules: told in the third person, and never alike where they differ in what matters."""

from __future__ import annotations

import pytest

from astrocyte.model import ObservationKind
from astrocyte.pipelines.knowledge.statements import Statement, statements


def one(text: str, speaker: str | None = None) -> Statement:
    (found,) = statements(text, speaker)
    return found


@pytest.mark.parametrize(
    ("text", "speaker", "told", "kind"),
    [
        ("I love pottery!", "Mel", "Mel loves pottery.", ObservationKind.PREFERENCE),
        (
            "I don't like loud music, because it hurts.",
            "Mel",
            "Mel doesn't like loud music.",
            ObservationKind.PREFERENCE,
        ),
        (
            "Well, I usually drink tea every morning.",
            "Bo",
            "Bo usually drinks tea every morning.",
            ObservationKind.HABIT,
        ),
        ("Mara is allergic to sesame.", None, "Mara is allergic to sesame.", ObservationKind.STATE),
        ("I'm allergic to my own cat.", "Ann", "Ann is allergic to their own cat.", ObservationKind.STATE),
        ("I moved to Oslo last May and I joined a choir.", "Ann", "Ann moved to Oslo last May.", ObservationKind.EVENT),
        ("I never eat meat.", "Cy", "Cy never eats meat.", ObservationKind.STATE),
        ("The user prefers dark mode.", None, "The user prefers dark mode.", ObservationKind.PREFERENCE),
        ("I study law.", "Eve Li", "Eve Li studies law.", ObservationKind.STATE),
    ],
)
def test_a_statement_tells_of_its_subject(text: str, speaker: str | None, told: str, kind: ObservationKind) -> None:
    found = one(text, speaker)
    assert (found.text, found.kind) == (told, kind)


@pytest.mark.parametrize(
    "text",
    [
        "Do you like tea?",
        "I like it.",
        "I'd like to go.",
        "I would love a cat.",
        "He likes tea.",
        "This loves water.",
        "If I like tea, I drink it.",
        "I like my cat.",
        "Sounds like a good plan.",
        "It's like a journey of growth.",
        "Last Friday I went to a meeting.",
        "Just started doing yoga.",
        "Swimming plays a role in health.",
        "Mara loves that you came.",
        "Mara likes those games.",
        "Mara loves talking to you.",
        "I doesn't is from Brno.",
        "Tea.",
        "",
        "I like " + "very " * 20 + "old tea.",
    ],
)
def test_what_is_no_statement_of_somebody_is_left_alone(text: str) -> None:
    assert statements(text, None) == []


def test_the_same_said_in_other_words_agrees() -> None:
    first, second = one("I love pottery.", "Mel"), one("Mel enjoys pottery.")
    assert first.topic == second.topic
    assert first.agrees(second)
    assert not first.contradicts(second)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Mara likes tea.", "Mara likes coffee."),
        ("Mara bought 2 tickets.", "Mara bought 3 tickets."),
        ("Mara moved to Oslo last May.", "Mara moved to Oslo last June."),
        ("Mara likes tea from Assam.", "Mara likes tea from Darjeeling."),
        ("Mara likes tea.", "Tara likes tea."),
    ],
)
def test_statements_that_differ_in_number_date_or_name_never_meet(left: str, right: str) -> None:
    first, second = one(left), one(right)
    assert first.topic != second.topic or (not first.agrees(second) and not first.contradicts(second))


def test_a_denial_contradicts_and_a_double_denial_agrees() -> None:
    likes, denies = one("Mara likes nuts."), one("Mara doesn't like nuts.")
    assert likes.topic == denies.topic
    assert likes.contradicts(denies)
    assert one("Mara hates nuts.").agrees(denies)


def test_of_one_home_at_a_time_another_contradicts() -> None:
    brno, oslo = one("Mara lives in Brno."), one("Mara lives in Oslo.")
    assert brno.topic == oslo.topic
    assert brno.contradicts(oslo)


def test_a_memory_says_the_same_once() -> None:
    assert len(statements("Mara likes tea. Mara likes tea! Mara likes coffee.", None)) == 2
