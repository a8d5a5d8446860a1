"""The fusion of several banks by the core: against its equal in plain Python, and against what it promises."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from astrocyte.core import Hit
from astrocyte.model import FusionMethod
from astrocyte.pipelines.multi_bank.fusion import BankArm, BankList, Candidate, Fusion, fuse, share
from oracles import plain_fusion
from oracles.plain_fusion import Offered, PlainArm, PlainList

ARMS = ("semantic", "keyword", "temporal")
WEIGHTS = (0.8, 1.0, 1.0)
RANK_CONSTANT = 60.0
Banks = tuple[PlainList, ...]
Sizes = list[tuple[int, int]]
scores = st.floats(-5.0, 50.0, width=32)


@st.composite
def a_bank(draw: st.DrawFn, number: int) -> PlainList:
    hits = []
    for place in range(draw(st.integers(0, 6))):
        arms = tuple((arm, place + 1, draw(scores)) for arm in range(3) if draw(st.booleans()))
        content = bytes([draw(st.integers(0, 8))]) * 16
        memory_id = bytes([number, place]) * 8
        hits.append(Offered(number << 8 | place, memory_id, content, arms, draw(st.integers(1, 50))))
    # The same content twice in one bank is folded by the core.
    distinct = {hit.content_hash: hit for hit in reversed(hits)}
    kept = tuple(hit for hit in hits if distinct[hit.content_hash] is hit)
    spreads = [(draw(st.integers(1, 100)), draw(scores), draw(st.floats(0.0, 20.0))) for _ in ARMS]
    return PlainList(
        draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])),
        kept,
        tuple(PlainArm(name, weight, *spread) for name, weight, spread in zip(ARMS, WEIGHTS, spreads, strict=True)),
        draw(st.sampled_from("ab")),
        group=draw(st.sampled_from([-1, *range(number)])),
    )


@st.composite
def a_bank_with_more(draw: st.DrawFn, number: int) -> PlainList:
    """As `a_bank`, with what stages added to its hits, and an arm that other banks have not."""
    bank = draw(a_bank(number))
    extra = PlainArm("theirs", draw(st.sampled_from([0.0, 0.7])), 1, 0.0, 1 / 3)
    lifts = tuple(draw(scores) for _ in bank.hits) if draw(st.booleans()) else ()
    return replace(bank, lifts=lifts, arms=(*bank.arms, extra) if draw(st.booleans()) else bank.arms)


banks = st.integers(1, 4).flatmap(lambda count: st.tuples(*(a_bank(number) for number in range(count))))
richer = st.integers(0, 4).flatmap(lambda count: st.tuples(*(a_bank_with_more(number) for number in range(count))))


def of_core(bank: PlainList) -> BankList:
    """The list as the core takes it."""
    hits = [Hit(one.key, one.memory_id, one.content_hash, one.arms, tokens=one.tokens) for one in bank.hits]
    arms = [BankArm(one.name, one.weight, one.memories, one.mean, one.deviation) for one in bank.arms]
    return BankList(bank.weight, hits, arms, bank.space, bank.lifts, bank.group)


def joined_by_core(
    lists: Banks,
    method: FusionMethod,
    *,
    dedup: bool,
    most: int = 1_000,
    budget: int | None = None,
    gone: frozenset[tuple[int, int, int]] = frozenset(),
) -> Fusion:
    return fuse(
        [of_core(one) for one in lists],
        weights=WEIGHTS,
        method=method,
        rank_constant=RANK_CONSTANT,
        dedup=dedup,
        most=most,
        budget=budget,
        gone=gone,
    )


def fused_by_core(lists: Banks, method: FusionMethod, *, dedup: bool) -> list[Candidate]:
    return joined_by_core(lists, method, dedup=dedup).candidates


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
                count = sum(other.arms[arm].memories for other in peers)
                mean = sum(other.arms[arm].memories * other.arms[arm].mean for other in peers) / count
                squares = sum(
                    other.arms[arm].memories * (other.arms[arm].deviation ** 2 + other.arms[arm].mean ** 2)
                    for other in peers
                )
                variance = squares / count - mean * mean
                if variance <= 0.0:
                    continue
                score = given_scores.get(arm, one.arms[arm].mean)
                z = (score - mean) / math.sqrt(variance)
                value += WEIGHTS[arm] * (min(z, plain_fusion.TEMPORAL_CAP) if name == "temporal" else z)
            values[hit.memory_id] = value
        together.setdefault(bank if one.group < 0 else one.group, []).extend(values.values())
        found |= {(bank, memory_id): value for memory_id, value in values.items()}
    for bank, memory_id in found:
        group = lists[bank].group
        best = sorted(together[bank if group < 0 else group], reverse=True)[: plain_fusion.LEADERS]
        found[bank, memory_id] += plain_fusion.LEADERS_WEIGHT * sum(best) / len(best)
    return found


@given(banks, st.sampled_from(FusionMethod), st.booleans())
def test_every_content_comes_once_from_the_bank_where_it_is_worth_most(
    lists: Banks, method: FusionMethod, dedup: bool
) -> None:
    fused = fused_by_core(lists, method, dedup=dedup)
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
        mine = plain_fusion.weighted(one.relevance, lists[one.bank].weight)
        rivals = [hit for bank, hit in offered if hit.content_hash == one.hit.content_hash]
        banks_of = [bank for bank, hit in offered if hit.content_hash == one.hit.content_hash]
        for bank, hit in zip(banks_of, rivals, strict=True):
            assert mine >= plain_fusion.weighted(expected[bank, hit.memory_id], lists[bank].weight) - 1e-6
        assert [one.bank, *one.others] == [one.bank, *(bank for bank in banks_of if bank != one.bank)]


@given(banks, st.booleans())
def test_the_order_is_that_of_the_method_and_each_bank_keeps_its_own(lists: Banks, dedup: bool) -> None:
    by_rank = fused_by_core(lists, FusionMethod.RRF, dedup=dedup)
    places: dict[int, int] = {}
    for one in sorted(by_rank, key=lambda one: (one.bank, one.rank)):
        places[one.bank] = places.get(one.bank, 0) + 1
        assert one.score == lists[one.bank].weight / (60.0 + places[one.bank])
    by_score = fused_by_core(lists, FusionMethod.DBSF, dedup=dedup)
    by_share = fused_by_core(lists, FusionMethod.RELATIVE_SCORE, dedup=dedup)
    for one in by_share:
        assert 0.0 <= one.score <= lists[one.bank].weight
    for fused in (by_rank, by_score, by_share):
        keys = [(-one.score, -one.relevance, one.hit.memory_id, one.bank) for one in fused]
        assert keys == sorted(keys)
    assert all(one.score == plain_fusion.weighted(one.relevance, lists[one.bank].weight) for one in by_score)


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

    before = above(fused_by_core(lists, method, dedup=False))
    after = above(fused_by_core((*lists[:chosen], heavier, *lists[chosen + 1 :]), method, dedup=False))
    assert all(after[memory_id] <= count for memory_id, count in before.items())


@given(richer, st.sampled_from(FusionMethod), st.booleans(), st.integers(1, 200), st.integers(1, 12), st.data())
def test_the_core_equals_plain_python_to_the_bit(
    lists: Banks, method: FusionMethod, dedup: bool, budget: int, most: int, data: st.DataObject
) -> None:
    places = [(bank, hit.key, -1) for bank, one in enumerate(lists) for hit in one.hits]
    gone = frozenset(data.draw(st.lists(st.sampled_from(places), max_size=3)) if places else ())
    left = [_without(one, number, gone) for number, one in enumerate(lists)]
    expected = plain_fusion.fuse(left, method, RANK_CONSTANT, dedup=dedup)
    all_of_core = joined_by_core(lists, method, dedup=dedup, most=most, gone=gone)
    assert list(map(_told, all_of_core.candidates)) == list(map(_told, expected[:most]))
    assert all_of_core[1:] == (False, False, [])
    groups = [number if one.group < 0 else one.group for number, one in enumerate(lists)]
    sizes = [(groups[one.bank], one.hit.tokens) for one in expected]
    if any(lists[bank].weight == 0.0 for bank, _ in sizes):
        # A part of a bank's answer counts as its bank does; where it does not, there is nothing to share by.
        return
    by_budget = joined_by_core(lists, method, dedup=dedup, most=most, budget=budget, gone=gone)
    shared = plain_fusion.split_budget(sizes, [one.weight for one in lists], budget, most)
    assert list(map(_told, by_budget.candidates)) == [_told(expected[place]) for place in shared.places]
    assert by_budget[1:] == shared[1:]


def _without(bank: PlainList, number: int, gone: frozenset[tuple[int, int, int]]) -> PlainList:
    stay = [place for place, hit in enumerate(bank.hits) if (number, hit.key, -1) not in gone]
    lifts = tuple(bank.lifts[place] for place in stay) if bank.lifts else ()
    return replace(bank, hits=tuple(bank.hits[place] for place in stay), lifts=lifts)


def _told(one: Candidate | plain_fusion.PlainHit) -> tuple[object, ...]:
    """A hit by its values, floats as they are written: 0 and -0 are two."""
    return (one.bank, one.rank, one.hit.memory_id, one.relevance.hex(), one.score.hex(), list(one.others))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=20), st.integers(1, 200), st.integers(1, 12))
def test_titles_share_the_budget_as_hits_do(sizes: Sizes, budget: int, most: int) -> None:
    weights = [0.3, 1.0, 1.7, 5.0]
    assert tuple(share(sizes, weights, budget, most)) == tuple(plain_fusion.split_budget(sizes, weights, budget, most))


sizes = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 50)), max_size=20)


@given(sizes, st.lists(st.floats(0.1, 5.0), min_size=4, max_size=4), st.integers(1, 200), st.integers(1, 12))
def test_the_budget_holds_and_nothing_that_fits_is_left_out(
    sizes: Sizes, weights: list[float], budget: int, most: int
) -> None:
    shared = share(sizes, weights, budget, most)
    taken = sum(sizes[place][1] for place in shared.places)
    assert shared.places == sorted(set(shared.places))
    assert len(shared.places) <= most
    assert sum(shared.parts) <= budget
    if not sizes:
        assert shared == ([], False, False, [0] * 4)
        return
    assert shared.places[0] == 0
    assert shared.cut == (sizes[0][1] > budget)
    if shared.cut:
        assert shared.places == [0]
        assert shared.truncated
        return
    assert taken <= budget
    left_out = [place for place in range(len(sizes)) if place not in shared.places]
    if len(shared.places) < most:
        # Whatever was left out would have broken the budget when its turn came, and none is left out unsaid.
        assert shared.truncated == bool(left_out)
        assert all(sizes[place][1] > budget - taken for place in left_out)
    if sum(size for _, size in sizes) <= budget:
        assert shared.truncated is False or len(sizes) > most


@given(sizes.filter(bool), st.lists(st.floats(0.1, 5.0), min_size=4, max_size=4), st.integers(1, 200))
def test_no_bank_takes_of_anothers_part_what_that_one_could_use(
    sizes: Sizes, weights: list[float], budget: int
) -> None:
    shared = share(sizes, weights, budget, len(sizes))
    if shared.cut or sizes[0][1] > shared.parts[sizes[0][0]]:
        return
    for bank in range(4):
        own = [size for place, (each, size) in enumerate(sizes) if each == bank]
        if own and sum(own) <= shared.parts[bank]:
            assert [p for p in shared.places if sizes[p][0] == bank] == [
                place for place, (each, _) in enumerate(sizes) if each == bank
            ]
