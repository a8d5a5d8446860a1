"""The ledger of `ledger` over several processes that share their memories: one goes, the others go on."""

from __future__ import annotations

import asyncio
import random
import time
from abc import abstractmethod
from pathlib import Path

from astrocyte.client import RemoteBackend
from ledger import EARLIEST, PATIENCE, Client, Run, Server

# What the others go on for after the kill, and what their last calls take to end.
SECONDS_AFTER = 0.2
SECONDS_TO_END = 0.5


class SeveralRun(Run):
    """Each client writes to one process, and recalls from it or another one.

    Args:
        folder: Of the processes.
        seed: Of the choices.
        latest: Latest strike after the first answer, in seconds.
        crossed: Clients recall from the process after that which they write to.
        patient: Clients go on after UNAVAILABLE.
    """

    def __init__(self, folder: Path, *, seed: int, latest: float, crossed: bool = False, patient: bool = False) -> None:
        super().__init__(folder, seed=seed, latest=latest)
        self._crossed = crossed
        self._patient = patient

    @property
    @abstractmethod
    def addresses(self) -> list[str]:
        """Of the processes that run."""

    @abstractmethod
    async def strike(self) -> None:
        """Kill what is to be killed; return when the clients may end."""

    async def load_and_kill(self, server: Server) -> tuple[float, int]:
        del server
        backends = [RemoteBackend(address) for address in self.addresses]
        before = self._book.acknowledged
        self._book.answered.clear()
        tasks = [asyncio.create_task(self._client(backends, place).run()) for place in range(self._clients)]
        async with asyncio.timeout(PATIENCE):
            await self._book.answered.wait()
        first = time.monotonic()
        await asyncio.sleep(self._chosen.uniform(EARLIEST, self._latest))
        seconds, calls = time.monotonic() - first, self._book.acknowledged - before
        await self.strike()
        await asyncio.sleep(SECONDS_AFTER)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(SECONDS_TO_END)
        for backend in backends:
            await backend.close()
        self.report.unknown += len(self._book.unknown)
        return seconds, calls

    def _client(self, backends: list[RemoteBackend], place: int) -> Client:
        chosen = random.Random(self._chosen.getrandbits(64))
        own = backends[place % len(backends)]
        reader = backends[(place + self._crossed) % len(backends)]
        return Client(own, self._book, chosen, self.report, reader=reader, patient=self._patient)
