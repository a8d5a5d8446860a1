"""The simulation of a fleet: its queues against queueing theory, its hashing, and its search for a size."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace

import numpy as np
import pytest

from benches.fleet.__main__ import costs_of
from benches.fleet.model import Costs, Fleet, Ring, Traffic, mixed, rates_of, waits

CALLS = 400_000
# Round numbers, from which the expected ones follow.
COSTS = Costs(
    recall_ms=1.0,
    retain_ms=1.0,
    recall_statements=3.0,
    retain_statements=30.0,
    statement_ms=0.1,
    retain_database_ms=3.0,
    load_ms=5.0,
    bank_kb=100.0,
    process_mb=150.0,
    variation=0.5,
)


def erlang_c(channels: int, offered: float) -> float:
    """The probability that a call waits in M/M/c (Erlang 1917)."""
    full = offered**channels / math.factorial(channels) / (1 - offered / channels)
    return full / (sum(offered**k / math.factorial(k) for k in range(channels)) + full)


@pytest.mark.parametrize(("channels", "load"), [(1, 0.5), (1, 0.8), (2, 0.7), (8, 0.8)])
def test_calls_wait_as_in_m_m_c(channels: int, load: float) -> None:
    chosen = np.random.default_rng(1)
    arrivals = np.cumsum(chosen.exponential(1 / (load * channels), CALLS))
    found = waits(arrivals, chosen.exponential(1.0, CALLS), channels)
    probability = erlang_c(channels, load * channels)
    assert np.mean(found > 0) == pytest.approx(probability, rel=0.03)
    assert found.mean() == pytest.approx(probability / (channels * (1 - load)), rel=0.08)


def test_calls_wait_half_as_long_where_all_take_the_same_time() -> None:
    chosen = np.random.default_rng(2)
    arrivals = np.cumsum(chosen.exponential(1 / 0.8, CALLS))
    # Pollaczek and Khinchine: M/D/1.
    assert waits(arrivals, np.ones(CALLS)).mean() == pytest.approx(0.8 / (2 * 0.2), rel=0.05)


def test_one_channel_is_computed_as_several_are() -> None:
    chosen = np.random.default_rng(3)
    arrivals, services = np.cumsum(chosen.exponential(1.2, 500)), chosen.exponential(1.0, 500)
    free = 0.0
    for place, (arrival, service) in enumerate(zip(arrivals, services, strict=True)):
        assert waits(arrivals, services)[place] == pytest.approx(max(0.0, free - arrival), abs=1e-9)
        free = max(free, arrival) + service


def test_keys_are_divided_evenly_and_a_lost_server_moves_its_own_only() -> None:
    hashes = mixed(np.arange(200_000, dtype=np.uint64))
    before = Ring(np.arange(10)).owners(hashes)
    counts = np.bincount(before, minlength=10)
    assert counts.min() > 200_000 / 10 * 0.75
    assert counts.max() < 200_000 / 10 * 1.25
    after = Ring(np.delete(np.arange(10), 3)).owners(hashes)
    assert not np.any(after == 3)
    assert np.array_equal(before[before != 3], after[before != 3])
    # Those of the lost one go to all others.
    assert len(np.unique(after[before == 3])) == 9


def test_traffic_follows_zipf_and_the_hot_banks_get_their_share() -> None:
    traffic = Traffic(1_000.0, banks=10_000, hot_banks=5, hot_share=0.2)
    rates = rates_of(traffic, 7)
    assert rates.sum() == pytest.approx(1_000)
    plain = rates_of(Traffic(1_000.0, banks=10_000, hot_banks=5, hot_share=0.0), 7)
    assert plain[0] / plain[9] == pytest.approx(10)
    assert np.count_nonzero(rates > plain) == 5
    assert np.array_equal(rates, rates_of(traffic, 7))


def test_a_plan_keeps_to_its_limits_and_a_hot_bank_has_several_servers() -> None:
    # One bank gets half of what takes twenty processors.
    traffic = Traffic(20_000.0, banks=5_000, hot_banks=1, hot_share=0.5)
    fleet = Fleet(COSTS, traffic, 5)
    plan = fleet.plan(0.6, 0.8)
    assert plan == Fleet(COSTS, traffic, 5).plan(0.6, 0.8)
    assert plan.busiest <= 0.6
    assert plan.busiest_after_loss <= 0.8
    assert 22_000 / 1_000 / 0.6 < plan.servers < 22_000 / 1_000 / 0.6 * 2
    assert plan.p50_ms < plan.p99_ms <= plan.p99_after_loss_ms
    assert plan.statements == pytest.approx(20_000 * 3 + 2_000 * 30)
    assert 0 < plan.moved < 0.5


def test_a_server_waits_as_its_load_says() -> None:
    fleet = Fleet(replace(COSTS, variation=1.0, load_ms=0.0), Traffic(1.0, retain_share=0.0, banks=100), 5)
    # M/M/1 at 600 calls a second of 1 ms each: the time of a call is exponential with 1 / (1000 - 600) s.
    found = fleet.seconds_of(600.0)
    assert found.mean() == pytest.approx(1 / 400, rel=0.08)
    assert np.percentile(found, 99) == pytest.approx(math.log(100) / 400, rel=0.1)


def test_costs_are_read_and_changed_by_name() -> None:
    text = json.dumps(asdict(COSTS))
    assert costs_of(text, ["load_ms=7"]) == replace(COSTS, load_ms=7.0)
    for given, changes, told in (
        (text, ["recal_ms=1"], "no cost is named recal_ms"),
        (text, ["recall_ms=x"], "no number"),
        ("{}", ["recall_ms=1"], "load_ms, .* are missing"),
    ):
        with pytest.raises(SystemExit, match=told):
            costs_of(given, changes)
