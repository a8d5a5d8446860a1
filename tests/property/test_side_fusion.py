"""The answer of several sides against a plain restatement: fusion, weights, repeats, count and budget."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from astrocyte.core import count_tokens
from astrocyte.model import FusionMethod, MemoryHit
from astrocyte.pipelines.multi_bank.engine_fusion import SideList, fuse_sides
from astrocyte.pipelines.recall.external_context import within

K = 60.0
# Engines score by scales of their own, so that their deviations say nothing.
METHODS = (FusionMethod.RRF, FusionMethod.RELATIVE_SCORE)
BANKS = ("a", "b")
WORDS = ("tea", "coffee", "milk", "bread and butter", "a much longer text that says nothing in particular at all")
weights = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@st.composite
def a_side(draw: st.DrawFn, number: int) -> SideList:
    engine = f"engine-{number}" if number else ""
    scores = sorted(draw(st.lists(st.floats(-5.0, 50.0), max_size=6)), reverse=True)
    hits = []
    for place, score in enumerate(scores):
        text = draw(st.sampled_from(WORDS))
        hits.append(
            MemoryHit(
                text,
                score if engine else 0.5,
                fused_score=None if engine else score,
                memory_id=f"{number}-{place}",
                bank_id=draw(st.sampled_from(BANKS)),
                engine=engine,
                token_count=count_tokens(text),
            )
        )
    return SideList(engine, tuple(hits), {bank: draw(weights) for bank in BANKS if draw(st.booleans())})


sides = st.integers(1, 3).flatmap(lambda count: st.tuples(*(a_side(number) for number in range(count))))


def worth(sides: Sequence[SideList], method: FusionMethod) -> dict[tuple[str, str], list[tuple[float, int, int]]]:
    """By bank and text: what each side gives it, with the side and its rank there; said again in the plainest way."""
    found: dict[tuple[str, str], list[tuple[float, int, int]]] = {}
    for number, side in enumerate(sides):
        scores = [hit.score if hit.fused_score is None else hit.fused_score for hit in side.hits]
        best, worst = max(scores, default=0), min(scores, default=0)
        for rank, (hit, score) in enumerate(zip(side.hits, scores, strict=True), 1):
            weight = side.weights.get(str(hit.bank_id), 1.0)
            if weight == 0:
                continue
            share = 1.0 if best == worst else (score - worst) / (best - worst)
            value = weight / (K + rank) if method is FusionMethod.RRF else weight * share
            found.setdefault((str(hit.bank_id), hit.text), []).append((value, number, rank))
    return found


@given(sides, st.sampled_from(METHODS))
def test_each_text_of_a_bank_comes_once_for_what_it_is_worth_most(
    sides: tuple[SideList, ...], method: FusionMethod
) -> None:
    fused = fuse_sides(sides, method, K, query="tea or coffee")
    assert all(0.0 <= hit.score <= 1.0 for hit in fused)
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
    expected = worth(sides, method)
    assert sorted((str(hit.bank_id), hit.text) for hit in fused) == sorted(expected)
    for hit in fused:
        offers = expected[str(hit.bank_id), hit.text]
        assert math.isclose(hit.fused_score or 0.0, max(value for value, _, _ in offers), rel_tol=1e-9, abs_tol=1e-12)
        # Of equals the pipeline's own is shown, for the database knows it; each engine that has it is named.
        first = min(number for _, number, _ in offers)
        assert hit.engine == sides[first].engine
        assert {arm.arm for arm in hit.arms} == {
            f"engine:{sides[number].engine}" for _, number, _ in offers if sides[number].engine
        }
    order = [
        (-(hit.fused_score or 0.0), min(expected[str(hit.bank_id), hit.text], key=lambda one: one[1])[1:])
        for hit in fused
    ]
    assert [key[0] for key in order] == sorted(key[0] for key in order)


@given(sides, st.sampled_from(METHODS))
def test_a_side_of_no_weight_changes_nothing_and_one_alone_keeps_its_order(
    sides: tuple[SideList, ...], method: FusionMethod
) -> None:
    silent = SideList("silent", sides[0].hits, dict.fromkeys(BANKS, 0.0))
    assert fuse_sides([*sides, silent], method, K) == fuse_sides(sides, method, K)
    alone = SideList("one", sides[0].hits)
    texts = list(dict.fromkeys((hit.bank_id, hit.text) for hit in alone.hits))
    assert [(hit.bank_id, hit.text) for hit in fuse_sides([alone], method, K)] == texts


@given(sides, st.integers(1, 40), st.integers(1, 8))
def test_count_and_budget_hold_and_nothing_that_fits_is_left_out(
    sides: tuple[SideList, ...], budget: int, most: int
) -> None:
    ranked = fuse_sides(sides, FusionMethod.RRF, K)[:most]
    kept, truncated = within(ranked, budget)
    assert sum(hit.token_count for hit in kept) <= budget
    assert len(kept) <= most
    assert truncated == (len(kept) < len(ranked) or any(hit.text not in WORDS for hit in kept))
    left = budget
    expected = []
    for place, hit in enumerate(ranked):
        if hit.token_count <= left:
            left -= hit.token_count
            expected.append(hit.text)
        elif place == 0:
            left -= kept[0].token_count
            expected.append(kept[0].text)
    assert [hit.text for hit in kept] == expected
