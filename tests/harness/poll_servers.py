"""The product with poll sources, in a process of its own that can be killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

PATIENCE_SECONDS = 120


@dataclass(frozen=True)
class Gateway:
    """The gateway of a server that runs."""

    url: str
    process: subprocess.Popen[str]

    def memories(self, bank_id: str) -> list[dict[str, Any]]:
        """All memories of a bank; none before there is one."""
        found: list[dict[str, Any]] = []
        token = ""
        while True:
            parameters: dict[str, str | int] = {"page_size": 1_000, "page_token": token}
            answer = httpx.get(f"{self.url}/v1/banks/{bank_id}/memories", params=parameters, timeout=30)
            if answer.status_code == httpx.codes.NOT_FOUND:
                return []
            page = answer.json()
            found += page["memories"]
            token = page.get("next_page_token", "")
            if not token:
                return found

    def contents(self, bank_id: str) -> list[str]:
        return [memory["content"] for memory in self.memories(bank_id)]

    def source(self, source_id: str) -> dict[str, Any]:
        sources = httpx.get(f"{self.url}/v1/sources", timeout=30).json()["sources"]
        return next(source for source in sources if source["source_id"] == source_id)

    def kill(self) -> None:
        """End the process as kill -9 does."""
        self.process.kill()
        self.process.wait()


@contextmanager
def polling_server(folder: Path, sources: Mapping[str, Any]) -> Iterator[Gateway]:
    """Serve on a data directory of the folder; the process is killed in the end."""
    config = folder / "astrocyte.yaml"
    config.write_text(yaml.safe_dump({"sources": dict(sources), "gateway": {"port": 0}}), encoding="utf-8")
    command = [sys.executable, "-m", "astrocyte", "--config", str(config), "--data-dir", str(folder / "data")]
    command += ["serve", "--port", "0"]
    log = folder / "server.log"
    with log.open("a") as events, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=events, text=True) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            gateway = server.stdout.readline().split()
            assert gateway, log.read_text()
            yield Gateway(gateway[-1], server)
        finally:
            server.kill()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is true; fails after two minutes."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
