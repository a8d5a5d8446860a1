"""Questions that ask for a list of things of a kind, and the things that a text names."""

from importlib.resources import files

import pytest

from astrocyte.pipelines.recall.asked_kinds import LISTED, TITLED, asked_kinds, lexicon, named_things

DATA = files("astrocyte.pipelines.recall").joinpath("data")


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("What instruments does Ole play?", {"instruments"}),
        ("What kind of healthy meals did Mara start to cook?", {"meals"}),
        ("what are the hobbies of Ole?", {"hobbies"}),
        ("Which cities has Mara been to?", {"cities"}),
        ("List the books that Mara has read.", {"books"}),
        ("Name all dishes", {"dishes"}),
        ("Which dishes went cold?", {"dishes"}),
        ("Which foods or drinks does Ole like?", {"foods"}),
        # One thing, not a list.
        ("What instrument does Ole play?", set()),
        ("What book is about boats?", set()),
        # The kind is not the noun that is asked for.
        ("Which sports teams won?", set()),
        ("What game tournaments did Ole plan?", set()),
        ("What is on the shelf with the books?", set()),
        ("Ole plays instruments.", set()),
        ("", set()),
    ],
)
def test_kinds_of_a_question(question: str, kinds: set[str]) -> None:
    assert asked_kinds(question) == kinds


@pytest.mark.parametrize(
    ("text", "kind", "things"),
    [
        ("I play the violin and two French horns.", "instruments", {"violin", "french horn"}),
        ("We painted in New York\u2019s parks.", "hobbies", {"painting"}),
        ("We painted in New York\u2019s parks.", "cities", {"new york"}),
        ("Strawberries and apples, every day.", "fruits", {"strawberry", "apple"}),
        ("Two radishes.", "vegetables", {"radish"}),
        ('She read "The Old Boat" twice.', "books", {"the old boat"}),
        ("She read \u201cThe Old Boat\u201d twice.", "books", {"the old boat"}),
        ('She said "yes".', "books", set()),
        ("", "instruments", set()),
    ],
)
def test_things_of_a_text(text: str, kind: str, things: set[str]) -> None:
    assert named_things(text, frozenset({kind})) == things


def test_every_kind_has_members_or_titles() -> None:
    found = lexicon()
    assert set(found) == LISTED | TITLED
    assert {kind for kind, members in found.items() if not members.names} == TITLED
    assert all(len(name.split()) <= 3 for members in found.values() for name in members.names)


def test_notice_names_every_file() -> None:
    notice = DATA.joinpath("NOTICE").read_text(encoding="utf-8")
    assert all(one.name == "NOTICE" or one.name in notice for one in DATA.iterdir())
