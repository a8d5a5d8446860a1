"""Guarded calls to custom steps: a call ends in time, and a failure is a value, never an exception."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, NamedTuple, TypeVar

from astrocyte.deadlines import seconds_left
from astrocyte.errors import AstrocyteError, CircuitOpen
from astrocyte.providers.circuit_breaker import Breaker

T = TypeVar("T")
# Of the time that is left, for what comes after.
KEPT_SECONDS = 0.02
# Calls that were given up and still go on, since they do not let themselves be cancelled; with more the step is not
# asked.
MOST_STUCK = 32
# Who hears that a step was left out: the operation, the bank, the step, and why.
Note = Callable[[str, str, str, str], None]


class UnusableError(ValueError):
    """The result of a step is not of the type that it has to return."""


class Outcome(NamedTuple, Generic[T]):
    """The outcome of a call; None with the reason in ``problem``. ``millis`` is its duration."""

    value: T | None
    problem: str
    millis: float


class BoundedStage:
    """Calls a step.

    Args:
        stage: What traces and events call it.
        operation: The operation that it is part of.
        seconds: How long a call may take.
        breaker: Leaves the step alone for a while when it fails again and again.
        note: Hears of every call that gave nothing.
    """

    def __init__(self, stage: str, operation: str, seconds: float, breaker: Breaker, note: Note) -> None:
        self.stage = stage
        self._operation = operation
        self._seconds = seconds
        self._breaker = breaker
        self._note = note
        self._stuck: set[asyncio.Task[Any]] = set()

    async def call(
        self,
        bank_id: str,
        work: Callable[[float], Coroutine[Any, Any, object]],
        read: Callable[[Any], T],
        *,
        until: float | None = None,
    ) -> Outcome[T]:
        """The outcome of the step, as ``read`` takes it.

        Args:
            bank_id: For which bank, for whoever is told of a failure.
            work: Calls the step, with the instant of `time.monotonic` at which it is given up.
            read: Makes of its answer what is used, or raises where it is not usable.
            until: An earlier such instant.
        """
        start = time.monotonic()
        wait = self._wait(start, until)
        value: T | None = None
        try:
            if wait <= 0.0:
                problem = "too_little_time"
            elif len(self._stuck) >= MOST_STUCK:
                problem = "stuck"
            else:
                with self._breaker.call():
                    value = read(await self._within(wait, work(start + wait)))
                problem = ""
        except TimeoutError:
            problem = "timeout"
        except CircuitOpen:
            problem = "circuit_open"
        except UnusableError:
            problem = "invalid_answer"
        except AstrocyteError as error:
            problem = error.reason.lower()
        except Exception as error:  # noqa: BLE001 - others wrote it, and its message could hold content
            problem = type(error).__name__
        if problem:
            self._note(self._operation, bank_id, self.stage, problem)
        return Outcome(value, problem, (time.monotonic() - start) * 1e3)

    def told(self, problem: str) -> str:
        """The note in a trace about a failed call."""
        return f"{self.stage} ({problem})"

    def _wait(self, now: float, until: float | None) -> float:
        left = seconds_left()
        waits = [self._seconds]
        if left is not None:
            waits.append(left - KEPT_SECONDS)
        if until is not None:
            waits.append(until - now)
        return min(waits)

    async def _within(self, seconds: float, work: Coroutine[Any, Any, object]) -> object:
        """The result, or `TimeoutError`, even if the work ignores its cancellation."""
        task = asyncio.get_running_loop().create_task(work, name=f"astrocyte-stage-{self.stage}")
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
        finally:
            if not task.done():
                self._stuck.add(task)
                task.add_done_callback(self._ended)
                task.cancel()
        if not done:
            raise TimeoutError
        return task.result()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._stuck.discard(task)
        if not task.cancelled():
            # Nobody waits for it any more; read, so that nobody is told that it was not.
            task.exception()
