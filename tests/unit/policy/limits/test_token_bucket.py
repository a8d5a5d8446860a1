"""Buckets against a model with fractions, over random time."""

from __future__ import annotations

import random
from collections.abc import Hashable
from fractions import Fraction

import pytest

from astrocyte.policy.limits.token_bucket import FIRST_SWEEP, NANOSECONDS, Buckets, Draw

MINUTE = 60 * NANOSECONDS


class Clock:
    def __init__(self) -> None:
        self.now = 10**15

    def __call__(self) -> int:
        return self.now


class Model:
    """Tokens as fractions, every bucket kept for ever."""

    def __init__(self) -> None:
        self.tokens: dict[Hashable, tuple[Fraction, int]] = {}

    def level(self, draw: Draw, now: int) -> Fraction:
        tokens, at = self.tokens.get(draw.key, (Fraction(draw.per_minute), now))
        return min(Fraction(draw.per_minute), tokens + Fraction((now - at) * draw.per_minute, MINUTE))

    def wait(self, draw: Draw, now: int) -> Fraction:
        missing = min(draw.tokens, draw.per_minute) - self.level(draw, now)
        return max(Fraction(0), missing * MINUTE / draw.per_minute)

    def take(self, draws: list[Draw], now: int) -> Fraction:
        longest = max(self.wait(draw, now) for draw in draws)
        if not longest:
            for draw in draws:
                self.tokens[draw.key] = (self.level(draw, now) - draw.tokens, now)
        return longest


def simulate(steps: int, seed: int) -> tuple[int, int]:
    """Admitted and refused calls of a run in which buckets and model agreed at every step."""
    dice = random.Random(seed)
    clock, model = Clock(), Model()
    buckets = Buckets(clock)
    rates = {key: dice.choice([1, 7, 60, 300, 100_000]) for key in range(12)}
    admitted = refused = 0
    for _ in range(steps):
        clock.now += dice.choice([0, 1, 999, 10**6, 10**9, 7 * 10**9])
        keys = dice.sample(sorted(rates), dice.choice([1, 1, 1, 2, 4]))
        draws = [Draw(key, rates[key], dice.choice([1, 1, 1, 3, 100])) for key in keys]
        expected = model.take(draws, clock.now)
        got = buckets.take({draw.key: draw for draw in draws})
        assert (got is None) == (expected == 0)
        if got is None:
            admitted += 1
            continue
        refused += 1
        # To the nanosecond, and never too early.
        assert expected <= got[1] < expected + 1
    return admitted, refused


def test_buckets_equal_the_model() -> None:
    for seed in range(4):
        admitted, refused = simulate(25_000, seed)
        assert min(admitted, refused) > 1_000


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_buckets_equal_the_model_over_a_million_steps() -> None:
    admitted, refused = simulate(1_000_000, 7)
    assert min(admitted, refused) > 10_000


def draw(key: Hashable, tokens: int = 1, per_minute: int = 60) -> dict[Hashable, Draw]:
    return {key: Draw(key, per_minute, tokens)}


def test_all_or_none() -> None:
    clock = Clock()
    buckets = Buckets(clock)
    assert buckets.take(draw("a", 60)) is None
    refused = buckets.take(draw("a") | draw("b"))
    assert refused is not None
    assert refused[0].key == "a"
    assert refused[1] == NANOSECONDS
    # Nothing was taken of b.
    assert buckets.take(draw("b", 60)) is None


def test_a_batch_larger_than_the_bucket_waits_for_a_full_one_and_leaves_a_debt() -> None:
    clock = Clock()
    buckets = Buckets(clock)
    assert buckets.take(draw("a", 90)) is None
    refused = buckets.take(draw("a"))
    assert refused is not None
    assert refused[1] == 31 * NANOSECONDS
    clock.now += 31 * NANOSECONDS
    assert buckets.take(draw("a")) is None
    clock.now += 59 * NANOSECONDS
    assert buckets.take(draw("a", 90)) is not None
    clock.now += NANOSECONDS
    assert buckets.take(draw("a", 90)) is None


def test_full_buckets_are_dropped_and_others_are_not() -> None:
    clock = Clock()
    buckets = Buckets(clock)
    assert buckets.take(draw("spent", 60)) is None
    for round_ in range(50):
        # A second gives back what each of these took.
        clock.now += NANOSECONDS
        for number in range(FIRST_SWEEP):
            assert buckets.take(draw((round_, number))) is None
    assert len(buckets) <= 2 * FIRST_SWEEP + 1
    refused = buckets.take(draw("spent", 60))
    assert refused is not None
    assert refused[1] == 10 * NANOSECONDS
