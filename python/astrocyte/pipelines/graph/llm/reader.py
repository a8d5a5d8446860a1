"""Lets a language model read the memories of banks whose entity graphs it extends, within a daily budget of each.

What waits, what was spent and what was found is in the database: a crash loses no memory, repeats at most the call that
it interrupted, and gives no budget back.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Executor
from functools import partial
from typing import TypeVar

import structlog

from astrocyte.config import GraphExtractionSettings
from astrocyte.errors import AstrocyteError, DeadlineExceeded, ProviderUnavailable, frames
from astrocyte.model import GraphReading
from astrocyte.pipelines.graph.derivation import derive_or_none
from astrocyte.pipelines.graph.llm.extraction import prompt_of, read_graph
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.pipelines.text.model_answers import UnusableAnswer
from astrocyte.pipelines.text.model_calls import MOST_ATTEMPTS, RENEWAL_SECONDS, Withheld, rest_seconds
from astrocyte.providers.protocols import LanguageModel
from astrocyte.stores.graph.entity_graph import SourceVersion
from astrocyte.stores.graph.readings import GraphReadings

log = structlog.get_logger(__name__)

T = TypeVar("T")


class ModelReader:
    """Reads memories one by one, banks in turn, the newest memory of a bank first.

    Args:
        readings: What waits, and what was found.
        model: The language model.
        settings: Mode, budget and thresholds of a bank, by its id.
        withheld: Removes what must not leave from texts.
        executor: Runs reads of the database and rules, which would hold the event loop.
        clock: Milliseconds since the epoch.
    """

    def __init__(
        self,
        readings: GraphReadings,
        model: LanguageModel,
        settings: Callable[[str], GraphExtractionSettings],
        withheld: Withheld,
        executor: Executor,
        clock: Callable[[], int],
    ) -> None:
        self._readings = readings
        self._model = model
        self._settings = settings
        self._withheld = withheld
        self._executor = executor
        self._clock = clock
        self._changed = asyncio.Event()
        self._failures = 0
        # Key of the bank that was served last.
        self._served = 0
        self._task: asyncio.Task[None] | None = None

    def reads(self, bank_id: str) -> bool:
        """True if the model reads the memories of this bank."""
        return self._settings(bank_id).mode == "llm"

    def wants(self, source: SourceVersion) -> bool:
        """True if the model has not read the version yet, and its bank wants it."""
        return self.reads(source.bank_id) and source.read_by != self._model.model_id and bool(source.content.strip())

    def count(self, bank_key: int) -> int:
        """Number of a bank's versions that wait; reads the store."""
        return self._readings.count(bank_key)

    def start(self, done: Callable[[], None]) -> None:
        """Start in the background of the running loop; ``done`` is called after each stored reading."""
        self._task = asyncio.create_task(self._read_for_ever(done), name="astrocyte-graph-reader")

    async def close(self) -> None:
        """Stop; the next process goes on where this one stopped."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._task = None

    def notify(self) -> None:
        """Look for versions that wait."""
        self._changed.set()

    async def _read_for_ever(self, done: Callable[[], None]) -> None:
        while True:
            try:
                self._changed.clear()
                while await self._read_next():
                    self._failures = 0
                    done()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RENEWAL_SECONDS):
                        await self._changed.wait()
                continue
            except AstrocyteError as error:
                rest = self._rest(error)
                log.warning("entity_graph_not_read", reason=error.reason, rest_seconds=rest)
            except Exception as error:  # noqa: BLE001 - what was not read still waits
                # No traceback: it could show the values of variables, which are content.
                rest = self._rest(error)
                log.error("entity_graph_not_read", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            await asyncio.sleep(rest)

    def _rest(self, error: Exception) -> float:
        self._failures += 1
        return rest_seconds(self._failures - 1, error)

    async def _read_next(self) -> bool:
        """Read a version; False if none waits in a bank with a budget left.

        Raises:
            ProviderUnavailable: The model failed, or its answer is unusable.
            DeadlineExceeded: It did not answer in time.
        """
        day = self._clock() // DAY_MS
        waiting = await self._run(partial(self._readings.waiting, day))
        for bank in sorted(waiting, key=lambda one: (one.bank_key <= self._served, one.bank_key)):
            own = self._settings(bank.bank_id)
            if own.mode != "llm" or bank.calls >= own.calls_per_day or bank.tokens >= own.tokens_per_day:
                continue
            source = await self._run(partial(self._readings.next, bank.bank_key))
            if source is None:
                continue
            self._served = bank.bank_key
            if await self._readings.reserve(source, day, own.calls_per_day, own.tokens_per_day):
                await self._read(source, own)
            return True
        return False

    async def _read(self, source: SourceVersion, own: GraphExtractionSettings) -> None:
        shown, speaker = self._withheld(source.bank_id, [source.content, source.speaker or ""])
        tokens = 0
        try:
            deadline = time.monotonic() + own.deadline_seconds
            completion = await self._model.complete(prompt_of(shown, speaker or None), deadline=deadline)
            tokens = completion.usage.total
            reading = read_graph(completion, source.content, source.speaker, own.least_confidence)
        except (UnusableAnswer, DeadlineExceeded):
            await self._readings.fail(source, tokens, MOST_ATTEMPTS)
            raise
        except ProviderUnavailable:
            await self._readings.give_back(source)
            raise
        derived = None
        if reading != (source.reading or GraphReading()):
            derived = await self._run(partial(derive_or_none, source._replace(reading=reading)))
        await self._readings.finish(source, reading, self._model.model_id, derived, tokens)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
