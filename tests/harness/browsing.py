"""A gateway on a loop of its own, for tests that are not asynchronous, and Debian's Chromium."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.serving import Served, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Chromium has no sandbox for root, which is who runs in containers.
ARGUMENTS = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


@contextmanager
def gateway(prepare: Callable[[Served], Awaitable[None]] | None = None, **sections: Any) -> Iterator[str]:
    """The URL of a gateway; ``prepare`` fills it first."""
    started = threading.Event()
    found: list[str] = []
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        try:
            async with serving(gateway={"port": 0}, **sections) as served:
                if prepare is not None:
                    await prepare(served)
                found.append(str(served.server.http_address))
                started.set()
                await stop.wait()
        finally:
            started.set()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    try:
        assert found, "the server did not start; see its error above"
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
