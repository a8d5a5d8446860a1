"""The breaker against a model, and what counts as a failure."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence

import pytest

from astrocyte.config import CircuitBreakerSettings
from astrocyte.errors import CircuitOpen, ProviderUnavailable
from astrocyte.providers.circuit_breaker import NANOSECONDS, Breaker, State
from astrocyte.providers.guarded import GuardedEmbedder

SETTINGS = CircuitBreakerSettings(failure_threshold=3, recovery_timeout_seconds=10, half_open_max_calls=2)


class Clock:
    def __init__(self) -> None:
        self.now = 5 * NANOSECONDS

    def __call__(self) -> int:
        return self.now


class Model:
    """The expected behaviour of the breaker, computed from the list of events: slow, and plain to read.

    Events since the state began: calls that passed, and what became of each.
    """

    def __init__(self) -> None:
        self.state, self.began, self.began_at = "closed", 0, 0
        self.results: list[str] = []
        self.passed: list[int] = []
        self.given_up = 0

    def enter(self, state: str, now: int) -> None:
        self.state, self.began, self.began_at = state, self.began + 1, now
        self.results, self.passed, self.given_up = [], [], 0

    def may(self, now: int) -> bool:
        if self.state == "open" and now >= self.began_at + 10 * NANOSECONDS:
            self.enter("half_open", now)
        return self.state == "closed" or (self.state == "half_open" and len(self.passed) - self.given_up < 2)

    def ended(self, call: tuple[int, int], result: str, now: int) -> None:
        if call[0] != self.began:
            return
        if result == "given up":
            self.given_up += 1
            return
        self.results.append(result)
        ends = {"closed": ["failure"] * 3, "half_open": ["failure"], "open": ["nothing"]}[self.state]
        if self.results[-len(ends) :] == ends:
            self.enter("open", now)
        elif self.state == "half_open" and self.results == ["success"] * 2:
            self.enter("closed", now)


class Running:
    """A call that has begun and has not ended."""

    def __init__(self, breaker: Breaker) -> None:
        self.guard = breaker.call()
        self.guard.__enter__()

    def end(self, result: str) -> None:
        errors = {"failure": ProviderUnavailable("down"), "given up": asyncio.CancelledError(), "success": None}
        error = errors[result]
        with contextlib.suppress(ProviderUnavailable, asyncio.CancelledError):
            self.guard.__exit__(type(error) if error else None, error, None)


def begin(breaker: Breaker) -> Running | CircuitOpen:
    try:
        return Running(breaker)
    except CircuitOpen as refusal:
        return refusal


def simulate(steps: int, seed: int) -> dict[State, int]:
    """The number of times that each state was met in a run in which breaker and model agreed at every step."""
    dice = random.Random(seed)
    clock, model = Clock(), Model()
    breaker = Breaker("p", SETTINGS, clock)
    running: list[tuple[Running, tuple[int, int]]] = []
    met = dict.fromkeys(State, 0)
    health = 0.5
    for step in range(steps):
        clock.now += dice.choice([0, 1, NANOSECONDS // 3, 3 * NANOSECONDS])
        if step % 500 == 0:
            health = dice.choice([0.1, 0.5, 0.95])
        if dice.random() < 0.5 or not running:
            expected = model.may(clock.now)
            begun = begin(breaker)
            assert isinstance(begun, Running) == expected
            if isinstance(begun, Running):
                model.passed.append(step)
                running.append((begun, (model.began, step)))
            elif model.state == "open":
                left = model.began_at + 10 * NANOSECONDS - clock.now
                assert begun.retry_after == left / NANOSECONDS
        else:
            call, ticket = running.pop(dice.randrange(len(running)))
            result = dice.choices(["success", "failure", "given up"], [health, 1 - health, 0.05])[0]
            call.end(result)
            model.ended(ticket, result, clock.now)
        assert breaker.state == model.state
        met[breaker.state] += 1
    return met


def test_the_breaker_equals_the_model() -> None:
    met = simulate(100_000, 1)
    assert min(met.values()) > 1_000


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_the_breaker_equals_the_model_over_a_million_steps() -> None:
    met = simulate(1_000_000, 2)
    assert min(met.values()) > 10_000


class Remote:
    """An embedder that does what it is told."""

    model_id, dimensions, local = "remote", 2, False

    def __init__(self) -> None:
        self.calls = 0
        self.answer: object = [bytes(8)]

    def embed_now(self, texts: Sequence[str]) -> list[bytes]:
        raise AssertionError("an embedder far away is never asked at once")

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return self.answer * len(texts) if isinstance(self.answer, list) else [b"\0"]

    async def close(self) -> None:
        self.calls = -1


def guarded(timeout_seconds: float = 5.0) -> tuple[Remote, Breaker, GuardedEmbedder, Clock]:
    remote, clock = Remote(), Clock()
    breaker = Breaker("remote", SETTINGS, clock)
    return remote, breaker, GuardedEmbedder(remote, breaker, timeout_seconds), clock


@pytest.mark.parametrize(
    "answer", [ProviderUnavailable("down"), RuntimeError("a text that was sent"), "too short", [], None]
)
async def test_whatever_goes_wrong_is_a_failure_of_the_provider(answer: object) -> None:
    remote, breaker, embedder, _ = guarded(timeout_seconds=0.01)
    remote.answer = answer
    for _ in range(3):
        assert breaker.state is State.CLOSED
        with pytest.raises(ProviderUnavailable) as caught:
            await embedder.embed(["tea"])
        assert not isinstance(caught.value, CircuitOpen)
        assert "a text that was sent" not in str(caught.value)
    assert breaker.state is State.OPEN
    with pytest.raises(CircuitOpen) as caught:
        await embedder.embed(["tea"])
    assert caught.value.metadata == {"provider": "remote", "retry_after_seconds": "10.000"}
    assert remote.calls == 3


async def test_a_call_that_the_caller_gave_up_does_not_count_and_gives_its_trial_back() -> None:
    remote, breaker, embedder, clock = guarded()
    remote.answer = ProviderUnavailable("down")
    for _ in range(3):
        with pytest.raises(ProviderUnavailable):
            await embedder.embed(["tea"])
    clock.now += 10 * NANOSECONDS
    remote.answer = None
    for _ in range(5):
        task = asyncio.create_task(embedder.embed(["tea"]))
        await asyncio.sleep(0)
        assert breaker.state is State.HALF_OPEN
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    remote.answer = [bytes(8)]
    assert await embedder.embed(["tea"]) == [bytes(8)]
    assert breaker.state is State.HALF_OPEN
    await embedder.embed(["tea", "jam"])
    assert str(breaker.state) == "closed"
    await embedder.close()
    assert remote.calls == -1
