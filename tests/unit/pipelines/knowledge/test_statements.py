"""Statements are found by rules: told in the third person, and never alike where they differ in what matters."""

from __future__ import annotations

import random

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
        ("My rent is 850 pounds a month now.", "Sam", "Sam's rent is 850 pounds a month.", ObservationKind.STATE),
        ("Our team has grown to 12 people since May.", None, "Our team has grown to 12 people.", ObservationKind.STATE),
        (
            "Mara's salary rose to 42,000.50 euros!",
            None,
            "Mara's salary rose to 42,000.50 euros.",
            ObservationKind.STATE,
        ),
        ("I'm 34 now, by the way.", "Sam", "Sam's age is 34.", ObservationKind.STATE),
        ("I'm 34 and I live in Leeds.", "Sam", "Sam's age is 34.", ObservationKind.STATE),
        ("Ann Li is 8 years old.", None, "Ann Li's age is 8.", ObservationKind.STATE),
        ("I just turned 35 last week!", None, "My age is 35.", ObservationKind.STATE),
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
        "My flight is 3 December.",
        "My alarm is 7:30.",
        "My rent is due on the 1st.",
        "My rent was 850 pounds.",
        "Today's temperature is 20 degrees.",
        "If my rent is 900 pounds, I move.",
        "Is my rent 900 pounds?",
        "I am 34 weeks pregnant.",
        "I'm 5 minutes away.",
        "I was 34 years old.",
        "I turned 35 pages.",
        "Room is 34.",
        "She is 34 years old.",
        "I'm 0.",
        "I am 12 on the waiting list.",
        "I am 2 and a half hours late.",
        "Tea.",
        "",
        "I like " + "very " * 20 + "old tea.",
    ],
)
def test_what_is_no_statement_of_somebody_is_left_alone(text: str) -> None:
    assert statements(text, None) == []


@pytest.mark.parametrize(
    ("earlier", "later", "contradicts"),
    [
        ("My rent is 850 pounds a month.", "My rent went up to 900 pounds a month.", True),
        ("My weight is 71.5 kg.", "My weight has dropped to 69 kg, finally.", True),
        ("My rent is 850 pounds a month.", "My rent is 850 pounds a month, still.", False),
        # Other units, another attribute, another owner.
        ("My height is 180 cm.", "My height is 6 feet.", False),
        ("My rent is 850 pounds.", "My loan is 900 pounds.", False),
        ("My rent is 850 pounds.", "Ann's rent is 900 pounds.", False),
        # Two things, or two times of day.
        ("My hotel room is 90 euros a night in Lyon.", "My hotel room is 140 euros a night in Rome.", False),
        ("My dose is 5 mg in the morning.", "My dose is 10 mg in the evening.", False),
        ("My pass is 20 euros from York.", "My pass is 30 euros from Leeds.", False),
        ("My ticket is 20 euros.", "My ticket is 35 euros.", False),
        ("My younger son is 8 years old.", "My younger son is 12 years old.", False),
        ("My rent is 850 pounds.", "My rent is 900 pounds from June.", True),
        ("My rent is 850 pounds in 2024.", "My rent is 900 pounds in total.", True),
        ("I'm 34.", "I turned 35 yesterday.", True),
        ("I'm 34.", "I'm still 34. I am 34 years old.", False),
        ("Ann is 34 years old.", "I'm 35.", False),
        ("I am 34.", "Mel turned 35 in May.", True),
    ],
)
def test_there_is_one_amount_at_a_time(earlier: str, later: str, contradicts: bool) -> None:
    said = [(before, after) for before in statements(earlier, "Mel") for after in statements(later, "Mel")]
    assert any(after.contradicts(before) for before, after in said) is contradicts


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
        ("Mara eats meat.", "Mara eats no meat."),
        ("Mara drinks tea before lunch.", "Mara drinks tea after lunch."),
        ("Mara drinks tea with sugar.", "Mara drinks tea with no sugar."),
        ("Mara likes all dogs.", "Mara likes some dogs."),
        ("Mara owns few books.", "Mara owns many books."),
        ("Mara owns few books.", "Mara owns a few books."),
        ("Mara likes tea and jam.", "Mara likes tea or jam."),
        ("Mara likes walking up hills.", "Mara likes walking down hills."),
        ("Mara owns a may tree.", "Mara owns a tree."),
        ("Mara drinks 2 cups.", "Mara drinks more than 2 cups."),
        ("Mara needs more sleep.", "Mara needs less sleep."),
        ("Mara always eats meat.", "Mara often eats meat."),
        ("Mara eats anything but meat.", "Mara eats anything but fish."),
        ("Mara likes people who listen.", "Mara likes people who sing."),
        ("Mara works at Acme since 2019.", "Mara works at Acme since 2020."),
        ("Mara eats meat.", "Mara doesn't always eat meat."),
    ],
)
def test_statements_that_differ_in_what_matters_never_meet(left: str, right: str) -> None:
    first, second = one(left), one(right)
    assert first.topic != second.topic or (not first.agrees(second) and not first.contradicts(second))


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ("Mara moved to York last weekend.", "Mara lives in Leeds."),
        ("Mara moved to Clevedon in May 2026 for work.", "Mara lives in Leeds."),
        ("Mara moved to York.", "Mara moved to Leeds in March."),
        ("Mara started working at Acme Corp two weeks ago.", "Mara works for Globex."),
        ("Mara moved to York.", "Mara no longer lives in York."),
    ],
)
def test_an_event_contradicts_the_state_that_it_ends(event: str, state: str) -> None:
    assert one(event).contradicts(one(state))
    assert not one(event).agrees(one(state))


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ("Mara moved to Sales.", "Mara lives in Leeds."),
        ("Mara moved to England.", "Mara lives in Leeds."),
        ("Mara moved to a flat.", "Mara lives in Leeds."),
        ("Mara never moved to York.", "Mara lives in Leeds."),
        ("Mara started working at night.", "Mara works for Globex."),
        ("Mara moved to York in May.", "Mara lives in York."),
    ],
)
def test_an_event_leaves_other_states_alone(event: str, state: str) -> None:
    assert not one(event).contradicts(one(state))
    assert not one(event).agrees(one(state))


def test_an_event_without_circumstances_agrees_with_the_state_that_it_begins() -> None:
    assert one("Mara moved to York.").agrees(one("Mara lives in York."))


NAMES = ("Mara", "Tara", "Ann Lee", "Bo")
VERBS = ("likes", "eats", "drinks", "needs", "uses", "owns", "bought", "avoids", "loves")
PARTS = {
    "amount": ("", "no ", "all ", "some ", "few ", "a few ", "many ", "2 ", "3 ", "two ", "more than 2 ", "half "),
    "thing": ("tea", "meat", "bread", "apples", "wool", "rice"),
    "other": ("", " and jam", " or jam", " without jam", " with jam", " with no jam"),
    "place": ("", " in Oslo", " in Rome", " from Ann", " to Ann", " up hills", " down hills", " near Rome"),
    "time": ("", " before lunch", " after lunch", " on Monday", " on Tuesday", " in May", " in June", " since 2019"),
}  # fmt: skip


def test_of_generated_pairs_that_differ_in_one_part_none_agrees_or_contradicts() -> None:
    source = random.Random(30)
    compared = 0
    while compared < 10_000:
        name, verb = source.choice(NAMES), source.choice(VERBS)
        parts = {part: source.choice(values) for part, values in PARTS.items()}
        changed = source.choice(list(PARTS))
        other = {**parts, changed: source.choice(PARTS[changed])}
        if other == parts:
            continue
        compared += 1
        left, right = (f"{name} {verb} {''.join(said.values())}." for said in (parts, other))
        first, second = one(left), one(right)
        assert not first.agrees(second), (left, right)
        assert not first.contradicts(second), (left, right)


def test_a_denial_contradicts_and_a_double_denial_agrees() -> None:
    likes, denies = one("Mara likes nuts."), one("Mara doesn't like nuts.")
    assert likes.topic == denies.topic
    assert likes.contradicts(denies)
    assert one("Mara hates nuts.").agrees(denies)


def test_of_one_home_at_a_time_another_contradicts() -> None:
    brno, oslo = one("Mara lives in Brno."), one("Mara lives in Oslo.")
    assert brno.topic == oslo.topic
    assert brno.contradicts(oslo)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Mara lives in Brno.", "Mara lives in Oslo now."),
        ("Mara lives in Sweden.", "Mara lives in Norway."),
        ("Mara works for Acme.", "Mara works at Globex."),
        ("Mara is from Rome.", "Mara is from Milan."),
        ("Mara is married to Bo.", "Mara is married to Cy."),
        ("Mara always eats meat.", "Mara doesn't eat meat."),
        ("Mara lives in Oslo.", "Mara no longer lives in Oslo."),
    ],
)
def test_another_name_contradicts_where_one_holds_at_a_time(left: str, right: str) -> None:
    assert one(left).contradicts(one(right))
    assert one(right).contradicts(one(left))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Mara works for Acme.", "Mara works at night."),
        ("Mara works for Acme.", "Mara works at Christmas."),
        ("Mara works for Acme.", "Mara works for a large company."),
        ("Mara works as a nurse.", "Mara works as a translator."),
        ("Mara lives in Brno.", "Mara lives in a flat."),
        ("Mara lives in Brno on weekdays.", "Mara lives in Oslo at weekends."),
        ("Mara lives in Oslo.", "Mara lives in Norway."),
        ("Mara lives in California.", "Mara lives in the United States."),
        ("Mara lives in New York.", "Mara lives in New York City."),
        ("Mara lives in Oslo.", "Mara doesn't live in Brno."),
        ("Mara doesn't live in Oslo.", "Mara doesn't live in Brno."),
    ],
)
def test_what_can_hold_at_the_same_time_does_not_contradict(left: str, right: str) -> None:
    first, second = one(left), one(right)
    assert not first.contradicts(second)
    assert not second.contradicts(first)
    assert not first.agrees(second)


def test_a_present_home_agrees_with_the_home() -> None:
    assert one("Mara lives in Oslo now.").agrees(one("Mara lives in Oslo."))


@pytest.mark.parametrize(
    "text", ["Mara likes dogs, except poodles.", "Mara eats meat, but only on Sundays.", "Mara eats fish when ill."]
)
def test_an_exception_makes_no_statement(text: str) -> None:
    assert statements(text, None) == []


def test_a_memory_says_the_same_once() -> None:
    assert len(statements("Mara likes tea. Mara likes tea! Mara likes coffee.", None)) == 2
