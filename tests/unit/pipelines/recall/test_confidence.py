"""How sure several answers are together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from astrocyte.pipelines.recall.result_assembly import confidence_of, most_confidence

SCORES = st.tuples(st.floats(-1.0, 1.0), st.floats(0.0, 100.0))


@given(st.lists(SCORES, min_size=1))
def test_of_several_answers_the_surest_counts(scores: list[tuple[float, float]]) -> None:
    assert most_confidence(scores) == max(confidence_of(*one) for one in scores)


def test_no_answer_is_no_confidence() -> None:
    assert most_confidence([]) == 0.0
