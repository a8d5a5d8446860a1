"""The supervisor of the workers: it owns the data directory and the port, and keeps so many processes running.

It answers no call. The lock on the data directory is passed on to the workers, so that nobody else gets the directory
before the last of them has ended, however this process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import pickle
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence

import structlog

from astrocyte.config import Settings
from astrocyte.errors import ConfigError, FailedPrecondition
from astrocyte.server import check_exposure, check_webhooks
from astrocyte.stores.sqlite.engine.data_directory import DirectoryLock
from astrocyte.wiring.storage import prepare_directory
from astrocyte.workers.checks import check_workers
from astrocyte.workers.order import MODULE, Order

# A worker that dies is started again after this, twice as late each time in a row, up to the longest.
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 10.0
# One that lived so long has not failed in a row.
SETTLED_SECONDS = 30.0
# Time for a worker to listen: it loads the extension and opens the store.
START_SECONDS = 60.0
# What a worker may take to close beyond the time to drain: checkpoints of large banks are written then.
CLOSE_SECONDS = 30.0

log = structlog.get_logger("astrocyte.supervisor")


class _Worker:
    """One place, with the process that has it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: asyncio.subprocess.Process | None = None
        self.failures = 0

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)


class Supervisor:
    """Runs `server.workers` processes until SIGTERM or SIGINT.

    Args:
        settings: Of the server.
        announce: Called with each address once all workers listen.
    """

    def __init__(self, settings: Settings, announce: Callable[[str], None] | None = None) -> None:
        self._settings = settings
        self._announce = announce
        self._workers = [_Worker(number) for number in range(1, settings.server.workers + 1)]
        self._stopping = asyncio.Event()

    @property
    def pids(self) -> list[int]:
        """The processes of the workers that run."""
        return [
            worker.process.pid
            for worker in self._workers
            if worker.process is not None and worker.process.returncode is None
        ]

    async def run(self) -> None:
        """Serve.

        Raises:
            ConfigError: The settings are not for several processes, or the address cannot be bound.
            StoreError: The data directory cannot be opened; `StoreLocked` when another process has it.
            FailedPrecondition: A worker does not start.
        """
        settings = self._settings
        check_exposure(settings)
        check_webhooks(settings)
        check_workers(settings)
        lock = prepare_directory(settings)
        loop = asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        reserved: list[socket.socket] = []
        try:
            settings = _with_ports(settings, reserved)
            for number in signals:
                loop.add_signal_handler(number, self._stopping.set)
            keepers = await self._start(settings, lock)
            await self._stopping.wait()
            log.info("draining", seconds=settings.server.drain_seconds)
            await self._stop(keepers)
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
            for one in reserved:
                one.close()
            for worker in self._workers:
                worker.signal(signal.SIGKILL)
            lock.release()
        log.info("stopped")

    async def _start(self, settings: Settings, lock: DirectoryLock) -> list[asyncio.Task[None]]:
        """Start all workers; once they listen, keep each running."""
        starts = [self._listening(worker, settings, lock) for worker in self._workers]
        results = await asyncio.gather(*starts, return_exceptions=True)
        failure = next((one for one in results if isinstance(one, BaseException)), None)
        if failure is not None:
            await self._stop([])
            raise failure
        addresses = results[0]
        log.info("serving", workers=len(self._workers), addresses=addresses)
        if self._announce is not None and not isinstance(addresses, BaseException):
            for address in addresses:
                self._announce(address)
        return [asyncio.create_task(self._keep(worker, settings, lock)) for worker in self._workers]

    async def _listening(self, worker: _Worker, settings: Settings, lock: DirectoryLock) -> list[str]:
        """Start the process of a worker; returns the addresses at which it listens.

        Raises:
            FailedPrecondition: It ended before, or takes too long.
        """
        worker.process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=lock.descriptors,
        )
        assert process.stdin is not None  # noqa: S101 - for the type checker: both are pipes
        assert process.stdout is not None  # noqa: S101 - as above
        own = _own_settings(settings, worker.number)
        process.stdin.write(pickle.dumps(Order(worker.number, own)))
        said: dict[str, object] = {}
        with contextlib.suppress(TimeoutError, ConnectionError, json.JSONDecodeError):
            async with asyncio.timeout(START_SECONDS):
                await process.stdin.drain()
                said = json.loads(await process.stdout.readline() or b"{}")
        addresses = said.get("addresses")
        if not isinstance(addresses, list):
            worker.signal(signal.SIGKILL)
            code = await process.wait()
            raise FailedPrecondition(
                f"worker {worker.number}: {said.get('error', f'it ended with code {code} before it listened')}",
                metadata={"worker": str(worker.number)},
            )
        log.info("worker_started", number=worker.number, pid=process.pid)
        return addresses

    async def _keep(self, worker: _Worker, settings: Settings, lock: DirectoryLock) -> None:
        """Start a worker again whenever it has ended, until the server is to stop."""
        while not self._stopping.is_set() and worker.process is not None:
            began = time.monotonic()
            code = await worker.process.wait()
            if self._stopping.is_set():
                return
            worker.failures = 0 if time.monotonic() - began > SETTLED_SECONDS else worker.failures + 1
            pause = min(FIRST_PAUSE_SECONDS * 2 ** max(0, worker.failures - 1), LONGEST_PAUSE_SECONDS)
            log.error("worker_ended", number=worker.number, code=code, again_in_seconds=pause)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stopping.wait()
                    return
            try:
                await self._listening(worker, settings, lock)
            except FailedPrecondition as error:
                log.error("worker_failed", number=worker.number, reason=error.message)  # noqa: TRY400 - said in full

    async def _stop(self, keepers: Sequence[asyncio.Task[None]]) -> None:
        """Let every worker drain; kill those that take too long."""
        self._stopping.set()
        for worker in self._workers:
            worker.signal(signal.SIGTERM)
        running = [worker.process.wait() for worker in self._workers if worker.process is not None]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.server.drain_seconds + CLOSE_SECONDS):
                await asyncio.gather(*running, *keepers)
        for worker in self._workers:
            if worker.process is not None and worker.process.returncode is None:
                log.error("worker_killed", number=worker.number, cause="it did not end in time")
                worker.signal(signal.SIGKILL)
        for task in keepers:
            task.cancel()


def _own_settings(settings: Settings, number: int) -> Settings:
    """The settings of one worker: each has a port of metrics of its own, one after the other."""
    metrics = settings.observability
    if not metrics.metrics_port:
        return settings
    own = metrics.model_copy(update={"metrics_port": metrics.metrics_port + number - 1})
    return settings.model_copy(update={"observability": own})


def _with_ports(settings: Settings, reserved: list[socket.socket]) -> Settings:
    """The settings with ports that are free; ``reserved`` gets the sockets that hold them.

    Raises:
        ConfigError: An address cannot be bound.
    """
    server, gateway = settings.server, settings.gateway
    port = _reserve(server.host, server.port, reserved)
    settings = settings.model_copy(update={"server": server.model_copy(update={"port": port})})
    if gateway.port is not None:
        port = _reserve(gateway.host, gateway.port, reserved)
        settings = settings.model_copy(update={"gateway": gateway.model_copy(update={"port": port})})
    return settings


def _reserve(host: str, port: int, reserved: list[socket.socket]) -> int:
    """Bind a port for sockets that share it; returns its number."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            place = (address[0], port or address[1], *address[2:])
            with socket.socket(family, kind, protocol) as alone:
                # Another server whose workers share this port would get part of the calls.
                alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                alone.bind(place)
                port = alone.getsockname()[1]
            shared = socket.socket(family, kind, protocol)
            reserved.append(shared)
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            shared.bind((place[0], port, *place[2:]))
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror or error}", metadata={"address": f"{host}:{port}"}
        ) from error
    return port


async def supervise(settings: Settings, announce: Callable[[str], None] | None = None) -> None:
    """Serve by several processes; see `Supervisor.run`."""
    await Supervisor(settings, announce).run()
