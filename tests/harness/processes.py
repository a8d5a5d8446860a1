"""The product as a user starts it: a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Seconds in which a server has to drain; it takes a fraction of one.
DRAIN_SECONDS = 20


@contextmanager
def running_server(folder: Path, *options: str) -> Iterator[str]:
    """``astrocyte serve`` on a free port and a directory of its own; yields the address, then ends it in order.

    Options stand before the command.
    """
    command = [sys.executable, "-m", "astrocyte", "--data-dir", str(folder / "data"), *options, "serve", "--port", "0"]
    log = folder / "server.log"
    with log.open("w") as events, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=events, text=True) as server:
        assert server.stdout is not None
        listening = server.stdout.readline()
        assert listening.startswith("Listening on 127.0.0.1:"), log.read_text()
        try:
            yield listening.split()[-1]
        finally:
            server.terminate()
            assert server.wait(DRAIN_SECONDS) == 0, log.read_text()


@contextmanager
def running_mcp_server(folder: Path, *options: str, fixed: tuple[str, ...] = ()) -> Iterator[str]:
    """``astrocyte mcp --http`` on a free port; yields its URL, then ends it in order. ``fixed`` follows the command."""
    command = [sys.executable, "-m", "astrocyte", *options, "mcp", "--http", "--port", "0", *fixed]
    log = folder / "mcp.log"
    with log.open("w") as events, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=events, text=True) as server:
        assert server.stdout is not None
        listening = server.stdout.readline()
        assert listening.startswith("Listening on http://127.0.0.1:"), log.read_text()
        try:
            yield listening.split()[-1]
        finally:
            server.terminate()
            assert server.wait(DRAIN_SECONDS) == 0, log.read_text()


@contextmanager
def doomed_server(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """As `running_server`, with its process, which may be stopped and is killed in the end."""
    command = [sys.executable, "-m", "astrocyte", "--data-dir", str(folder / "data"), "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[-1], server
        finally:
            server.kill()
