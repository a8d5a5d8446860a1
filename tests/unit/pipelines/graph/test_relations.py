"""Relations that a text states, their direction and their passages."""

from itertools import pairwise
from time import thread_time

import pytest

from astrocyte.pipelines.graph.extraction import extract
from astrocyte.pipelines.graph.relations import MOST_RELATIONS


def stated(text: str, speaker: str | None = "Nadia") -> set[str]:
    return {f"{one.source_name} {one.link_type} {one.target_name}" for one in extract(text, speaker=speaker).relations}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tom works at Siemens.", {"Tom works_at Siemens"}),
        ("Tom has worked part-time for Siemens since May.", {"Tom works_at Siemens"}),
        ("Tom works at Siemens and lives in Porto.", {"Tom works_at Siemens", "Tom lives_in Porto"}),
        ("Tom and Ana work at Siemens.", {"Tom works_at Siemens", "Ana works_at Siemens"}),
        ("Tom, CEO of Siemens, lives in Porto.", {"Tom leads Siemens", "Tom lives_in Porto"}),
        ("Alice Smith (formerly Alice Johnson) joined us.", {"Alice Johnson alias_of Alice Smith"}),
        ("Alice Smith, aka Ally Smith, sings.", {"Ally Smith alias_of Alice Smith"}),
        ("The World Health Organization (WHO) met.", {"WHO alias_of World Health Organization"}),
        ("Tom is Ana's brother.", {"Tom brother_of Ana"}),
        ("Ana's brother Tom called.", {"Tom brother_of Ana"}),
        ("Tom is the brother of Ana.", {"Tom brother_of Ana"}),
        ("Tom and Ana are cousins.", {"Tom cousin_of Ana"}),
        ("Siemens was founded by Tom and Ana.", {"Tom founded Siemens", "Ana founded Siemens"}),
        ("Tom moved from Porto to Kyoto.", {"Tom lives_in Kyoto"}),
        ("Tom reports to Ana.", {"Tom reports_to Ana"}),
        ("Siemens acquired Bosch.", {"Siemens acquired Bosch"}),
        ("Bosch was acquired by Siemens.", {"Siemens acquired Bosch"}),
    ],
)
def test_statements(text: str, expected: set[str]) -> None:
    assert stated(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I work at Siemens.", {"Nadia works_at Siemens"}),
        ("My sister Ana lives in Porto.", {"Ana sister_of Nadia", "Ana lives_in Porto"}),
        ("Tom is a baker. He lives in Porto.", {"Tom lives_in Porto"}),
        ("Tom and his sister Ana live in Porto.", {"Ana sister_of Tom", "Tom lives_in Porto", "Ana lives_in Porto"}),
    ],
)
def test_pronouns(text: str, expected: set[str]) -> None:
    assert stated(text) == expected


def test_i_is_nobody_without_a_speaker() -> None:
    assert stated("I work at Siemens.", speaker=None) == set()


def test_pronoun_of_two_people_is_nobody() -> None:
    assert stated("Tom met Ana and she lives in Porto.") == {"Tom knows Ana"}


@pytest.mark.parametrize(
    "text",
    [
        "Does Tom work at Siemens?",
        "If Tom works at Siemens, we call him.",
        "Tom never worked at Siemens.",
        "Tom doesn't live in Porto.",
        "Tom might move to Porto.",
        "I doubt that Tom works at Siemens.",
        "The novel by Ana won in Porto.",
        "Tom laughed. Siemens is large.",
    ],
)
def test_questions_conditions_and_negations_state_nothing(text: str) -> None:
    assert stated(text) == set()


def test_passage_holds_the_evidence() -> None:
    text = "Yes: Tom works at Siemens, he says."
    (relation,) = extract(text).relations
    assert text[relation.start : relation.end] == "Tom works at Siemens"
    assert relation.confidence == 0.95


def test_pronouns_lower_the_confidence() -> None:
    (relation,) = extract("Tom is a baker. He lives in Porto.").relations
    assert relation.confidence < 0.75


@pytest.mark.parametrize("between", ["is " * 29, "as a " * 17, "a-b " * 22, "has who that " * 6])
def test_words_that_match_many_patterns_take_little_time(between: str) -> None:
    text = " ".join(f"{('Ana', 'Bob', 'Kenji')[number % 3]} {between}" for number in range(200))
    started = thread_time()
    extract(text)
    assert thread_time() - started < 2.0


def test_number_of_relations_is_bounded() -> None:
    given = ("Ana", "Tom", "Kenji", "Priya", "Omar", "Lena", "Kwame", "Ines", "Maria", "Hugo")
    family = ("Silva", "Tanaka", "Okafor", "Weber", "Rossi", "Novak", "Kim", "Lopez")
    people = [f"{one} {other}" for one in given for other in family]
    text = " ".join(f"{one} married {other}." for one, other in pairwise(people))
    assert len(extract(text).relations) == MOST_RELATIONS
