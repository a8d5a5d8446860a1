"""Worker processes on one data directory, each at a port of its own, so that a test chooses which one it calls."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.model import Caller
from astrocyte.wiring.storage import prepare_directory
from astrocyte.workers.order import MODULE, Order

ME = Caller("default")
# Seconds in which a worker that is stopped must have ended.
PATIENCE = 20.0


class Workers:
    """Plays the supervisor, which restarts nobody. Workers are numbered from 1."""

    def __init__(self, folder: Path, **sections: Any) -> None:
        self.data_dir = folder / "data"
        server = {"port": 0, "workers": 2, **sections.pop("server", {})}
        self.settings = Settings.from_mapping({"data_dir": str(self.data_dir), "server": server, **sections})
        self._lock = prepare_directory(self.settings)
        self._log = (folder / "workers.log").open("a")
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.backends: dict[int, RemoteBackend] = {}
        self.addresses: dict[int, str] = {}

    def start(self, number: int) -> RemoteBackend:
        """Start a worker, or start it again; returns a client of it."""
        self.backends[number] = RemoteBackend(self.spawn(number))
        return self.backends[number]

    def spawn(self, number: int) -> str:
        """Start a worker; returns its address."""
        process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            pass_fds=self._lock.descriptors,
        )
        self.processes[number] = process
        stdin, stdout = _pipes(process)
        stdin.write(pickle.dumps(Order(number, self.settings)))
        stdin.flush()
        said = json.loads(stdout.readline() or b"{}")
        assert "addresses" in said, (said, Path(self._log.name).read_text())
        self.addresses[number] = said["addresses"][0]
        return self.addresses[number]

    async def kill(self, number: int) -> None:
        """SIGKILL a worker, and wait until it is gone."""
        process = self.processes.pop(number)
        process.kill()
        process.wait()
        self._close_pipes(process)
        backend = self.backends.pop(number, None)
        if backend is not None:
            await backend.close()

    def pause(self, number: int) -> None:
        """Stop a worker without ending it."""
        os.kill(self.processes[number].pid, signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Let a paused worker go on."""
        os.kill(self.processes[number].pid, signal.SIGCONT)

    @staticmethod
    def _close_pipes(process: subprocess.Popen[bytes]) -> None:
        for pipe in _pipes(process):
            pipe.close()

    async def close(self) -> dict[int, int]:
        """End all in order; returns their exit codes."""
        for backend in self.backends.values():
            await backend.close()
        for process in self.processes.values():
            process.terminate()
            process.send_signal(signal.SIGCONT)
        codes = {}
        for number, process in self.processes.items():
            try:
                codes[number] = process.wait(PATIENCE)
            finally:
                process.kill()
                process.wait()
                self._close_pipes(process)
        self._lock.release()
        self._log.close()
        return codes


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


@asynccontextmanager
async def two_workers(folder: Path, **sections: Any) -> AsyncIterator[tuple[RemoteBackend, RemoteBackend, Workers]]:
    """Clients of two workers, and the workers."""
    workers = Workers(folder, **sections)
    try:
        first, second = workers.start(1), workers.start(2)
        yield first, second, workers
    finally:
        await workers.close()
