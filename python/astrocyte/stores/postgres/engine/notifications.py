"""NOTIFY: a server that waits for the commits of others asks nothing while nobody commits."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any

import psycopg
import structlog

from astrocyte.errors import AstrocyteError

log = structlog.get_logger(__name__)

# Of the database; the payload names the schema, since each schema has servers of its own.
CHANNEL = "astrocyte"
# A connection may be lost without a word, so a server looks by itself now and then, and more often while none listens.
LISTENING_SECONDS = 1.0
DEAF_SECONDS = 0.05
# Commits that come within it are looked at together.
GATHER_SECONDS = 0.002
# Between two looks whether the store was closed, and between two attempts to connect.
PAUSE_SECONDS = 0.2


class Notifications:
    """Listens on a thread and a connection of its own.

    Args:
        connect: Makes the connection.
        schema: Schema of the servers that are listened to.
        worker: Number of this server, which needs no news of itself.
    """

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]], schema: str, worker: int) -> None:
        self._connect = connect
        self._schema = schema
        self._own = payload(schema, worker)
        self._closed = threading.Event()
        self._listening = False
        # The loop that waits, and what wakes it.
        self._waiting: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None
        self._thread = threading.Thread(target=self._listen_for_ever, name="astrocyte-listen", daemon=True)

    def start(self) -> None:
        """Begin to listen; a second call does nothing."""
        if self._thread.ident is None:
            self._thread.start()

    async def wait(self) -> None:
        """Return when another server may have committed; at the latest after `LISTENING_SECONDS`."""
        loop = asyncio.get_running_loop()
        if self._waiting is None or self._waiting[0] is not loop:
            self._waiting = (loop, asyncio.Event())
            self.start()
        event = self._waiting[1]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LISTENING_SECONDS if self._listening else DEAF_SECONDS):
                await event.wait()
        await asyncio.sleep(GATHER_SECONDS)
        # Before the caller looks: what is committed from here on wakes it again.
        event.clear()

    def close(self) -> None:
        """Stop to listen."""
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _listen_for_ever(self) -> None:
        while not self._closed.is_set():
            try:
                with contextlib.closing(self._connect()) as driver:
                    driver.execute(f"LISTEN {CHANNEL}")
                    self._listening = True
                    # For commits before it listened.
                    self._wake()
                    while not self._closed.is_set():
                        for told in driver.notifies(timeout=PAUSE_SECONDS, stop_after=1):
                            if told.payload != self._own and told.payload.startswith(f"{self._schema} "):
                                self._wake()
            except (psycopg.Error, AstrocyteError) as error:
                log.warning("listening_failed", error=type(error).__name__)
            finally:
                self._listening = False
            self._closed.wait(PAUSE_SECONDS)

    def _wake(self) -> None:
        waiting = self._waiting
        if waiting is not None:
            # A loop that has ended waits for nothing.
            with contextlib.suppress(RuntimeError):
                waiting[0].call_soon_threadsafe(waiting[1].set)


def payload(schema: str, worker: int) -> str:
    """The text by which a server of a schema says that it has committed."""
    return f"{schema} {worker}"
