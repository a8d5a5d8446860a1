"""Shared by the tests of all stream drivers: messages, a server that reads them, and one that is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from astrocyte.api.requests import ListMemories, ListSources
from astrocyte.model import Caller, SourceInfo
from harness.serving import Served, serving

# For what happens at once on a machine that has nothing else to do.
PATIENCE_SECONDS = 120
COLOURS = ("red", "blue", "green", "white", "black", "grey", "pink", "brown", "gold", "violet", "orange", "cyan")


def text(number: int) -> str:
    """The content of a message."""
    return f"Ship {number} is {COLOURS[number % len(COLOURS)]}."


@asynccontextmanager
async def ingesting(source: dict[str, Any], sections: dict[str, Any] | None = None) -> AsyncIterator[Served]:
    """A server that reads the source."""
    async with serving(sources={"ships": source}, **(sections or {})) as served:
        served.app.sources.start()
        yield served


async def until(condition: Callable[[], bool]) -> None:
    """Wait until another program has done its part."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


def wait_until(condition: Callable[[], bool], patience: float = PATIENCE_SECONDS, every: float = 0.005) -> None:
    """Wait until another program has done its part, at most so many seconds; it is asked again after some."""
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end
        time.sleep(every)


async def contents(served: Served, bank_id: str = "ships") -> list[str]:
    """The contents of a bank, in the order in which they were stored."""
    page = await served.app.gate.call(Caller(), ListMemories(bank_id, page_size=1_000))
    return [memory.content for memory in page.memories]


async def info_of(served: Served) -> SourceInfo:
    """The state of the only source."""
    (info,) = await served.app.gate.call(Caller(), ListSources())
    return info


@contextmanager
def killed_server(folder: Path, source: dict[str, Any]) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server with the source on a data directory; yields the URL of its gateway, and is killed."""
    config = folder / "astrocyte.yaml"
    settings = {"sources": {"ships": source}, "gateway": {"port": 0}}
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    command = [sys.executable, "-m", "astrocyte", "--config", str(config), "--data-dir", str(folder / "data")]
    command += ["serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            yield server.stdout.readline().split()[-1], server
        finally:
            server.kill()


def stored(gateway: str) -> list[str]:
    """The contents of the bank of a server, in the order in which they were stored."""
    found: list[str] = []
    token = ""
    while True:
        page = httpx.get(
            f"{gateway}/v1/banks/ships/memories", params={"page_size": 1_000, "page_token": token}, timeout=30
        ).json()
        found += [memory["content"] for memory in page["memories"]]
        token = page.get("next_page_token", "")
        if not token:
            return found
