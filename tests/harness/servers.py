"""`astrocyte serve` processes on one PostgreSQL database, each at a port of its own."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from ledger import Place, Server


class Servers:
    """Servers by number, from 1; plays what starts them again.

    Args:
        folder: Gets a folder for each, with its log.
        dsns: Connection string of each.
        variables: Environment of all, in addition.
        places: Network namespaces of some.
    """

    def __init__(
        self,
        folder: Path,
        dsns: Mapping[int, str],
        variables: Mapping[str, str] | None = None,
        places: Mapping[int, Place] | None = None,
    ) -> None:
        self._folder = folder
        self._places = dict(places or {})
        self._dsns = dict(dsns)
        self._variables = {"ASTROCYTE_STORE__BACKEND": "postgres", **(variables or {})}
        self.running: dict[int, Server] = {}
        # Clients that find one gone and the test start and kill them from several threads.
        self._changing = threading.RLock()

    @property
    def numbers(self) -> list[int]:
        """Of all, whether they run or not."""
        return list(self._dsns)

    @property
    def addresses(self) -> dict[int, str]:
        """Of those that run, by their numbers."""
        return {number: server.address for number, server in sorted(dict(self.running).items())}

    def start(self) -> list[int]:
        """Start all that do not run; returns their numbers."""
        with self._changing:
            for number in [number for number, server in self.running.items() if server.ended]:
                self.kill(number)
            missing = [number for number in self._dsns if number not in self.running]
            for number in missing:
                folder = self._folder / f"server-{number}"
                folder.mkdir(exist_ok=True)
                variables = {**self._variables, "ASTROCYTE_STORE__DSN": self._dsns[number]}
                self.running[number] = Server(folder, variables, self._places.get(number))
            return missing

    def kill(self, number: int) -> None:
        """SIGKILL a server, and wait until it is gone."""
        with self._changing:
            self.running.pop(number).kill()

    def close(self) -> None:
        """Kill all."""
        for number in list(self.running):
            self.kill(number)
