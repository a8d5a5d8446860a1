"""A Redis server for tests, in a process of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from external.ports import free_port

# On a machine of CI it is there, or something is wrong.
needs_redis = pytest.mark.skipif(
    shutil.which("redis-server") is None and "CI" not in os.environ, reason="redis-server is not installed"
)
START_SECONDS = 30


@contextmanager
def redis_server(folder: Path, port: int | None = None) -> Iterator[str]:
    """A server that keeps its data in a folder; yields its URL."""
    port = port or free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    command += ["--appendonly", "yes", "--appendfsync", "everysec", "--save", "", "--loglevel", "warning"]
    with (folder / "redis.log").open("a") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            url = f"redis://127.0.0.1:{port}"
            wait_for(url)
            yield url
        finally:
            server.kill()


def wait_for(url: str) -> None:
    end = time.monotonic() + START_SECONDS
    with redis.Redis.from_url(url) as client:
        while True:
            try:
                client.ping()
            except redis.ConnectionError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
            else:
                return
