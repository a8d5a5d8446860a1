"""Objects of frozen dataclasses that are made fast are those that their own `__init__` makes."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from astrocyte.model import DetailLevel, RecallQuery
from astrocyte.model.building import maker

make = maker(RecallQuery)


@pytest.mark.parametrize(
    "values",
    [
        {"query": "tea"},
        {"query": "tea", "bank_id": "b", "max_results": 3, "detail_level": DetailLevel.FULL},
        {"weights": {"semantic": 0.0}, "metadata": {"a": 1}, "query": "tea", "tags": ("x",), "strategy": None},
    ],
)
def test_what_is_given_and_defaults_for_the_rest(values: dict[str, object]) -> None:
    made = make(values)
    assert made == RecallQuery(**values)  # type: ignore[arg-type]  # fields of any type
    assert type(made) is RecallQuery
    with pytest.raises(FrozenInstanceError):
        made.query = "another"  # type: ignore[misc]  # it is frozen


def test_defaults_that_are_made_are_made_anew() -> None:
    assert make({"query": "tea"}).metadata is not make({"query": "tea"}).metadata


@pytest.mark.parametrize("values", [{}, {"query": "tea", "colour": "green"}])
def test_a_field_that_is_missing_or_unknown_is_an_error(values: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        make(values)
