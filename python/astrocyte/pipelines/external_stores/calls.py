"""Calls of a follower to the external store and the primary one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from typing import ParamSpec, TypeVar

from astrocyte.pipelines.external_stores.adapters import Guarded

P = ParamSpec("P")
T = TypeVar("T")


class Calls:
    """Calls of one external store, and reads of the primary one.

    Args:
        store: Who is called.
        seconds: How long a call may take.
        executor: Where the primary store is read.
    """

    def __init__(self, store: Guarded, seconds: float, executor: Executor) -> None:
        self._store = store
        self._seconds = seconds
        self._executor = executor

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of a call to the external store.

        Raises:
            CircuitOpen: It failed so often that it was not asked.
            ProviderUnavailable: It failed, or did not answer in time.
        """
        return await self._store.call(work, self._seconds)

    async def read(self, read: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Read the primary store in the executor: vectors of many memories take long."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(read, *arguments, **named))
