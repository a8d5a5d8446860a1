"""Runs the sources that are read: one task each, which rests after a failure and begins again."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Mapping
from typing import Protocol

import structlog

from astrocyte.errors import AstrocyteError, RateLimited, frames
from astrocyte.ingest.board import SourceBoard
from astrocyte.model import SourceState

# A rest after a failure doubles with each further one. The first is short, since most failures pass at once.
FIRST_REST_SECONDS, LONGEST_REST_SECONDS = 0.5, 60.0
# Of a rest, so that sources that failed together do not come back together.
JITTER = 0.25

log = structlog.get_logger("astrocyte.ingest")


class Consumer(Protocol):
    """A source that is read step by step."""

    async def open(self) -> None:
        """Connect."""

    async def step(self) -> None:
        """Do the next piece of work; raises where it is to be repeated after a rest."""

    async def close(self) -> None:
        """Disconnect."""


class Supervisor:
    """Runs consumers until it is stopped.

    Args:
        consumers: By the id of their source.
        board: States and health.
    """

    def __init__(self, consumers: Mapping[str, Consumer], board: SourceBoard) -> None:
        self._consumers = consumers
        self._board = board
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all of them on the running loop; a second call does nothing."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._run(source_id, consumer), name=f"astrocyte-source-{source_id}")
                for source_id, consumer in self._consumers.items()
            ]

    async def stop(self) -> None:
        """Stop all of them. What is not acknowledged is delivered again at the next start."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self, source_id: str, consumer: Consumer) -> None:
        failures, opened = 0, False
        log.info("source_started", source=source_id)
        try:
            while True:
                try:
                    if not opened:
                        await consumer.open()
                        opened = True
                    await consumer.step()
                    failures = 0
                except Exception as error:  # noqa: BLE001 - whatever it is, the source is tried again
                    failures += 1
                    self._report(source_id, error)
                    if not isinstance(error, AstrocyteError):
                        # The source itself failed: what it was told is told again.
                        opened = False
                        await _closed(consumer)
                    self._board.now(source_id, SourceState.RESTING)
                    await asyncio.sleep(rest_after(failures, error))
        finally:
            await _closed(consumer)
            self._board.now(source_id, SourceState.STOPPED)
            log.info("source_stopped", source=source_id)

    def _report(self, source_id: str, error: Exception) -> None:
        self._board.failed(source_id, error)
        if isinstance(error, (AstrocyteError, OSError)):
            reason = error.reason if isinstance(error, AstrocyteError) else type(error).__name__
            # The status of a service that was asked over HTTP.
            metadata = error.metadata if isinstance(error, AstrocyteError) else {}
            told = {"status": metadata["status"]} if "status" in metadata else {}
            log.warning("source_failed", source=source_id, reason=reason, **told)
        else:
            # No traceback: it could show the values of variables, which are content.
            log.error("source_failed", source=source_id, error=type(error).__name__, frames=frames(error))


def rest_after(failures: int, error: Exception) -> float:
    """Seconds until the next attempt: what the error asks for, else more after each failure in a row."""
    if isinstance(error, RateLimited):
        return min(max(error.retry_after, 0.01), LONGEST_REST_SECONDS)
    rest = min(FIRST_REST_SECONDS * 2.0 ** min(failures - 1, 16), LONGEST_REST_SECONDS)
    return rest * (1.0 - JITTER * random.random())  # noqa: S311 - no secret


async def _closed(consumer: Consumer) -> None:
    """Disconnect; a connection that is broken is given up."""
    with contextlib.suppress(Exception):
        await consumer.close()
