"""A worker: a server process that its supervisor starts as ``python -m astrocyte.cli.worker``.

Standard input brings the order, and stays open as long as the supervisor lives. Standard output takes one line of JSON:
the addresses once the worker listens, or why it does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import pickle
import sys

import structlog

from astrocyte.app import App
from astrocyte.cli.failures import exit_code, explain
from astrocyte.cli.logs import to_standard_error
from astrocyte.server import serve
from astrocyte.workers.order import Order

# How often a worker looks whether its store still takes writes.
HEALTH_SECONDS = 0.25
# A worker whose store failed: the next one reads what is on the disk.
UNHEALTHY = 3

log = structlog.get_logger("astrocyte.worker")


def main() -> int:
    """Serve until the supervisor says so or dies; returns the exit code."""
    # Nobody else can write into this pipe.
    order: Order = pickle.load(sys.stdin.buffer)  # noqa: S301
    level = order.settings.observability.log_level.upper()
    to_standard_error(logging.getLevelNamesMapping()[level])
    structlog.contextvars.bind_contextvars(worker=order.number)
    try:
        return asyncio.run(_run(order))
    except Exception as error:  # noqa: BLE001 - the supervisor tells it
        _say({"error": explain(error), "code": exit_code(error)})
        return exit_code(error)


async def _run(order: Order) -> int:
    app = App(order.settings, worker=order.number)
    app.start_purging()
    stopped = asyncio.Event()
    watching = asyncio.create_task(_watch(app, stopped), name="astrocyte-worker")
    addresses: list[str] = []

    def announce(address: str) -> None:
        addresses.append(address)
        if len(addresses) == 1 + (order.settings.gateway.port is not None):
            _say({"addresses": addresses})

    try:
        await serve(app, announce=announce, stopped=stopped)
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    return 0 if app.healthy else UNHEALTHY


async def _watch(app: App, stopped: asyncio.Event) -> None:
    """Set ``stopped`` when the supervisor is gone, another process took this one's work, or the store failed."""
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()

    def readable() -> None:
        if not os.read(sys.stdin.fileno(), 1):
            loop.remove_reader(sys.stdin.fileno())
            gone.set()

    loop.add_reader(sys.stdin.fileno(), readable)
    while True:
        if gone.is_set():
            log.error("supervisor_gone")
            break
        if not app.healthy:
            log.error("store_failed")
            break
        if app.follower is not None and app.follower.lost.is_set():
            break
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEALTH_SECONDS):
                await gone.wait()
    stopped.set()


def _say(message: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
