"""The fusion of several banks against a plain restatement of what it promises."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from astrocyte.model import FusionMethod
from astrocyte.pipelines.bank_fusion import (
    LEADERS,
    LEADERS_WEIGHT,
    TEMPORAL_CAP,
    BankList,
    Candidate,
    Spread,
    fuse,
    split_budget,
)

ARMS = ("semantic", "keyword", "temporal")
WEIGHTS = (0.8, 1.0, 1.0)
Banks = tuple[BankList, ...]
Sizes = list[tuple[int, int]]
scores = st.floats(-5.0, 50.0, width=32)


@dataclass(frozen=True)
class Offered:
    """What fusion reads of the core's hits."""

    memory_id: bytes
    content_hash: bytes
    arms: tuple[tuple[int, int, float], ...]


@st.composite
def a_bank(draw: st.DrawFn, number: int) -> BankList:
    hits = []
    for place in range(draw(st.integers(0, 6))):
        arms = tuple((arm, place + 1, draw(scores)) for arm in range(3) if draw(st.booleans()))
        content = bytes([draw(st.integers(0, 8))]) * 16
        hits.append(Offered(bytes([number, place]) * 8, content, arms))
    # The same content twice in one bank is folded by the core.
    distinct = {hit.content_hash: hit for hit in reversed(hits)}
    spreads = [Spread(draw(st.integers(1, 100)), draw(scores), draw(st.floats(0.0, 20.0))) for _ in ARMS]
    weight = draw(st.sampled_from([0.0, 0.5, 1.0, 2.0]))
    kept = [hit for hit in hits if distinct[hit.content_hash] is hit]
    return BankList(
        weight,
        cast(list[Any], kept),
        ARMS,
        WEIGHTS,
        spreads,
        draw(st.sampled_from("ab")),
        group=draw(st.sampled_from([-1, *range(number)])),
    )


banks = st.integers(1, 4).flatmap(lambda count: st.tuples(*(a_bank(number) for number in range(count))))


def relevances(lists: Banks) -> dict[tuple[int, bytes], float]:
    """Relevance by (bank, memory id), said again in the plainest way."""
    found: dict[tuple[int, bytes], float] = {}
    together: dict[int, list[float]] = {}
    for bank, one in enumerate(lists):
        values: dict[bytes, float] = {}
        for hit in one.hits:
            given_scores = {arm: score for arm, _, score in hit.arms}
            value = 0.0
            for arm, name in enumerate(ARMS):
                peers = [other for other in lists if name != "semantic" or other.space == one.space]
                count = sum(other.spreads[arm].memories for other in peers)
                mean = sum(other.spreads[arm].memories * other.spreads[arm].mean for other in peers) / count
                squares = sum(
                    other.spreads[arm].memories * (other.spreads[arm].deviation ** 2 + other.spreads[arm].mean ** 2)
                    for other in peers
                )
                variance = squares / count - mean * mean
                if variance <= 0.0:
                    continue
                score = given_scores.get(arm, one.spreads[arm].mean)
                z = (score - mean) / math.sqrt(variance)
                value += WEIGHTS[arm] * (min(z, TEMPORAL_CAP) if name == "temporal" else z)
            values[hit.memory_id] = value
        together.setdefault(bank if one.group < 0 else one.group, []).extend(values.values())
        found |= {(bank, memory_id): value for memory_id, value in values.items()}
    for bank, memory_id in found:
        group = lists[bank].group
        best = sorted(together[bank if group < 0 else group], reverse=True)[:LEADERS]
        found[bank, memory_id] += LEADERS_WEIGHT * sum(best) / len(best)
    return found


def weighted(value: float, weight: float) -> float:
    return value * weight if value >= 0 else value / weight


@given(banks, st.sampled_from(FusionMethod), st.booleans())
def test_every_content_comes_once_from_the_bank_where_it_is_worth_most(
    lists: Banks, method: FusionMethod, dedup: bool
) -> None:
    fused = fuse(lists, method, 60.0, dedup=dedup)
    expected = relevances(lists)
    offered = [(bank, hit) for bank, one in enumerate(lists) if one.weight > 0 for hit in one.hits]
    for one in fused:
        assert math.isclose(one.relevance, expected[one.bank, one.hit.memory_id], rel_tol=1e-6, abs_tol=1e-6)
    if not dedup:
        assert sorted((one.bank, one.hit.memory_id) for one in fused) == sorted(
            (bank, hit.memory_id) for bank, hit in offered
        )
        assert not any(one.others for one in fused)
        return
    holders: dict[bytes, list[int]] = {}
    for bank, hit in offered:
        holders.setdefault(hit.content_hash, []).append(bank)
    assert sorted(one.hit.content_hash for one in fused) == sorted(holders)
    for one in fused:
        mine = weighted(one.relevance, lists[one.bank].weight)
        rivals = [hit for bank, hit in offered if hit.content_hash == one.hit.content_hash]
        banks_of = [bank for bank, hit in offered if hit.content_hash == one.hit.content_hash]
        for bank, hit in zip(banks_of, rivals, strict=True):
            assert mine >= weighted(expected[bank, hit.memory_id], lists[bank].weight) - 1e-6
        assert [one.bank, *one.others] == [one.bank, *(bank for bank in banks_of if bank != one.bank)]


@given(banks, st.booleans())
def test_the_order_is_that_of_the_method_and_each_bank_keeps_its_own(lists: Banks, dedup: bool) -> None:
    by_rank = fuse(lists, FusionMethod.RRF, 60.0, dedup=dedup)
    places: dict[int, int] = {}
    for one in sorted(by_rank, key=lambda one: (one.bank, one.rank)):
        places[one.bank] = places.get(one.bank, 0) + 1
        assert one.score == lists[one.bank].weight / (60.0 + places[one.bank])
    by_score = fuse(lists, FusionMethod.RELATIVE_SCORE, 60.0, dedup=dedup)
    for fused in (by_rank, by_score):
        keys = [(-one.score, -one.relevance, one.hit.memory_id, one.bank) for one in fused]
        assert keys == sorted(keys)
    assert all(one.score == weighted(one.relevance, lists[one.bank].weight) for one in by_score)


@given(banks, st.integers(0, 3), st.sampled_from(FusionMethod))
def test_a_greater_weight_never_moves_a_bank_down(lists: Banks, chosen: int, method: FusionMethod) -> None:
    chosen %= len(lists)
    one = lists[chosen]
    heavier = replace(one, weight=one.weight * 2)

    def above(fused: list[Candidate]) -> dict[bytes, int]:
        """Per hit of the bank, how many of other banks come before it."""
        others, counts = 0, {}
        for each in fused:
            if each.bank == chosen:
                counts[each.hit.memory_id] = others
            else:
                others += 1
        return counts

    before = above(fuse(lists, method, 60.0, dedup=False))
    after = above(fuse([*lists[:chosen], heavier, *lists[chosen + 1 :]], method, 60.0, dedup=False))
    assert all(after[memory_id] <= count for memory_id, count in before.items())


sizes = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=20)


@given(sizes, st.lists(st.floats(0.1, 5.0), min_size=4, max_size=4), st.integers(1, 200), st.integers(1, 12))
def test_the_budget_holds_and_nothing_that_fits_is_left_out(
    sizes: Sizes, weights: list[float], budget: int, most: int
) -> None:
    share = split_budget(sizes, weights, budget, most)
    taken = sum(sizes[place][1] for place in share.places)
    assert share.places == sorted(set(share.places))
    assert len(share.places) <= most
    assert sum(share.parts) <= budget
    if not sizes:
        assert share == ([], False, False, [0] * 4)
        return
    assert share.places[0] == 0
    assert share.cut == (sizes[0][1] > budget)
    if share.cut:
        assert share.places == [0]
        assert share.truncated
        return
    assert taken <= budget
    left_out = [place for place in range(len(sizes)) if place not in share.places]
    if len(share.places) < most:
        # Whatever was left out would have broken the budget when its turn came, and none is left out unsaid.
        assert share.truncated == bool(left_out)
        assert all(sizes[place][1] > budget - taken for place in left_out)
    if sum(size for _, size in sizes) <= budget:
        assert share.truncated is False or len(sizes) > most


@given(sizes.filter(bool), st.lists(st.floats(0.1, 5.0), min_size=4, max_size=4), st.integers(1, 200))
def test_no_bank_takes_of_anothers_part_what_that_one_could_use(
    sizes: Sizes, weights: list[float], budget: int
) -> None:
    share = split_budget(sizes, weights, budget, len(sizes))
    if share.cut or sizes[0][1] > share.parts[sizes[0][0]]:
        return
    for bank in range(4):
        own = [size for place, (each, size) in enumerate(sizes) if each == bank]
        if own and sum(own) <= share.parts[bank]:
            assert [p for p in share.places if sizes[p][0] == bank] == [
                place for place, (each, _) in enumerate(sizes) if each == bank
            ]
