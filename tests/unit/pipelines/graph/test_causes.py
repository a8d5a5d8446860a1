"""Causes and effects that a text states."""

import pytest

from astrocyte.pipelines.graph.causes import MOST_CAUSES, causal_pairs
from astrocyte.pipelines.graph.extraction import extract


@pytest.mark.parametrize(
    ("text", "cause", "effect"),
    [
        ("The launch slipped because the parts were late.", "the parts were late", "The launch slipped"),
        ("Because the parts were late, the launch slipped.", "the parts were late", "the launch slipped"),
        ("The strike led to losses.", "The strike", "losses"),
        ("He saved money so that they could travel.", "He saved money", "they could travel"),
        ("The delay was due to rain.", "rain", "The delay was"),
    ],
)
def test_pairs(text: str, cause: str, effect: str) -> None:
    (pair,) = causal_pairs(text)
    assert text[slice(*pair.cause)].strip() == cause
    assert text[slice(*pair.effect)].strip() == effect


@pytest.mark.parametrize("text", ["", "It rained.", "Did it slip because of rain?", "Because. So"])
def test_no_pairs(text: str) -> None:
    assert causal_pairs(text) == []


def test_number_of_pairs_is_bounded() -> None:
    assert len(causal_pairs("It fell because it rained. " * 50)) == MOST_CAUSES


def test_relation_goes_from_the_effect_to_the_cause() -> None:
    found = extract("Project Aurora slipped because Siemens delivered late.").relations
    assert [(one.source_name, one.link_type, one.target_name) for one in found] == [
        ("Project Aurora", "caused_by", "Siemens")
    ]
