"""Names in a text: their types, places and spellings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.pipelines.graph.extraction import LONGEST_NAME, MOST_MENTIONS, READ_CHARS, extract


def named(text: str, speaker: str | None = None) -> set[str]:
    return {f"{one.entity_type} {one.name}" for one in extract(text, speaker=speaker).mentions}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice Smith works at Acme GmbH in Porto.", {"PERSON Alice Smith", "ORG Acme GmbH", "PLACE Porto"}),
        ("Łukasz Nowak and Ngozi Okafor met.", {"PERSON Łukasz Nowak", "PERSON Ngozi Okafor"}),
        ("We use PostgreSQL on Project Aurora.", {"PRODUCT PostgreSQL", "PROJECT Project Aurora"}),
        ("She spoke at PyCon 2024.", {"EVENT PyCon 2024"}),
        ("I asked Dr. Ruiz about it.", {"PERSON Ruiz"}),
        ("He studied at the University of Coimbra.", {"ORG University of Coimbra"}),
        ("They live near St. Mary's Hospital in New York.", {"ORG St. Mary's Hospital", "PLACE New York"}),
        ("Fatima bint Ali knows Ludwig van Beethoven.", {"PERSON Fatima bint Ali", "PERSON Ludwig van Beethoven"}),
        ("Johnson & Johnson hired him.", {"ORG Johnson & Johnson"}),
        ("The WHO is in Geneva.", {"ORG WHO", "PLACE Geneva"}),
        ("Lord of the Rings is long.", {"NAME Lord of the Rings"}),
    ],
)
def test_types(text: str, expected: set[str]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Running is fun. Homework is due on Tuesday.",
        "You've been there. How's it going? I'm SO HAPPY.",
        "In March and on Monday we speak French.",
        "it is all in lower case",
        "",
        "Yesterday. Nothing. Everyone.",
    ],
)
def test_no_names(text: str) -> None:
    assert named(text) == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Will Smith and May Chen left.", {"PERSON Will Smith", "PERSON May Chen"}),
        ("Lately I've been here. Yeah, Here's one. Doctors said so. Fully agreed!", set()),
        ("Yesterday I asked Will.", {"PERSON Will"}),
        ("Will Alice come?", {"PERSON Alice"}),
        ("Awesome John, thanks!", {"PERSON John"}),
        ("Yesterday Kwame called.", {"PERSON Kwame"}),
        ("The novel that Tim is writing", {"PERSON Tim"}),
    ],
)
def test_words_that_open_sentences(text: str, expected: set[str]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("write to ana.lopes@example.org", {"PERSON Ana Lopes"}),
        ("write to info@example.org or to @channel", set()),
        ("thanks @priya_raman and @zz9", {"PERSON Priya Raman", "PERSON @zz9"}),
    ],
)
def test_addresses_and_handles(text: str, expected: set[str]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("田中さんは東京に行った", {"PERSON 田中"}),
        ("وليد يعمل هنا", {"PERSON وليد"}),
        ("Ада живёт в Лондоне", {"Ада", "Лондоне"}),
    ],
)
def test_other_scripts(text: str, expected: set[str]) -> None:
    found = named(text)
    assert found == expected or {one.partition(" ")[2] for one in found} == expected


def test_place_of_a_mention_holds_its_words() -> None:
    text = "Mara met Kenji Tanaka. Tanaka left, and Mara's dog barked."
    found = extract(text)
    assert [text[one.start : one.end] for one in found.mentions] == ["Mara", "Kenji Tanaka", "Tanaka", "Mara"]
    assert [one.name for one in found.mentions] == ["Mara", "Kenji Tanaka", "Kenji Tanaka", "Mara"]


def test_short_name_of_two_people_stays_short() -> None:
    names = [one.name for one in extract("Alice Smith met Alice Jones. Then Alice left.").mentions]
    assert names == ["Alice Smith", "Alice Jones", "Alice"]


def test_speaker_is_a_mention_without_a_place() -> None:
    speaker, *rest = extract("I went home.", speaker="  Mara   Silva ").mentions
    assert (speaker.name, speaker.entity_type, speaker.start, speaker.end) == ("Mara Silva", "PERSON", -1, -1)
    assert rest == []
    assert extract("Hi.", speaker="assistant").mentions[0].entity_type == "NAME"
    assert extract("Hi.", speaker="x" * (LONGEST_NAME + 1)).mentions == ()
    assert extract("Hi.", speaker="\x00").mentions == ()


def test_bounds() -> None:
    assert len(extract("Ana met Bo. " * 5_000).mentions) == MOST_MENTIONS
    assert extract(" " * READ_CHARS + "Ana met Kenji.").mentions == ()


@given(st.text(st.sampled_from("Anabo Éz. '-_`#@&\n1of(){}[]:,\u2019山さ"), max_size=400))
def test_any_text_is_read(text: str) -> None:
    found = extract(text, speaker="Zoe")
    names = {one.name for one in found.mentions}
    kinds = {(one.name, one.entity_type) for one in found.mentions}
    assert len(kinds) == len(names)
    assert found == extract(text, speaker="Zoe")
    for one in found.mentions:
        assert 0 < len(one.name) <= LONGEST_NAME
        assert 0 <= one.confidence <= 1
        assert one.start == one.end == -1 or 0 <= one.start < one.end <= len(text)
    for relation in found.relations:
        assert {relation.source_name, relation.target_name} <= names
        assert relation.source_name != relation.target_name
        assert 0 <= relation.start < relation.end <= len(text)
        assert 0 <= relation.confidence <= 1
