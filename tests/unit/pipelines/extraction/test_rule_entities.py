"""Entities by rules: what is a name and what only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.pipelines.extraction.rule_entities import entities
from oracles.growth import takes_less


def named(text: str) -> set[str]:
    return {f"{entity.entity_type} {entity.name}" for entity in entities(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mara has a brother in Porto.", {"NAME Mara", "NAME Porto"}),
        ("We met Mara Silva at the University of Coimbra.", {"NAME Mara Silva", "NAME University of Coimbra"}),
        ("Running is fun. Tea helps.", set()),
        ("We love Tea House. Tea helps, and Tea House is near.", {"NAME Tea House"}),
        ("I'm going on Monday in May with NASA.", {"NAME NASA"}),
        ("When Ann's dog ran, I laughed.", {"NAME Ann"}),
        ("Write to Ana.Lopes@Example.org now", {"EMAIL ana.lopes@example.org"}),
        ("ship it #release-2 not #42", {"HASHTAG release-2"}),
        ("we met on 8 May 2023, then March 3rd, 2024 and 2024-02-30",
         {"DATE 2023-05-08", "DATE 2024-03-03"}),
        ("call parse_args() in readConfig with `x.y`", {"CODE parse_args", "CODE readConfig", "CODE x.y"}),
        ("Ада живёт в Лондоне", {"NAME Лондоне"}),
        ("we met Łukasz, Şebnem and Žofia", {"NAME Łukasz", "NAME Şebnem", "NAME Žofia"}),
        ("他在东京见了玛拉", set()),
        ("", set()),
    ],
)  # fmt: skip
def test_names(text: str, expected: set[str]) -> None:
    assert named(text) == expected


@given(st.text(st.sampled_from("aAÉ. '-_`#@&\n1of(){}[]:"), max_size=400))
def test_any_text_is_read(text: str) -> None:
    for entity in entities(text):
        assert entity.name
        assert len(entity.name) <= 330


@pytest.mark.parametrize("part", ["A ", "A of ", "a@", "#a ", "Aa", "a_", "aA", "`a", "1 May ", "Aa. "])
def test_long_texts_take_little_time(part: str) -> None:
    assert takes_less(2, lambda: list(entities(part * 50_000)))
