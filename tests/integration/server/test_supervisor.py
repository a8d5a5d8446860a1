"""``astrocyte serve --workers``: one port, workers that are started again, and an end in order."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import CreateBank, GetServerInfo, Recall, Retain
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.errors import ConfigError, StoreLocked, Unavailable
from astrocyte.model import RecallQuery, RetainItem
from astrocyte.stores.sqlite import open_store
from astrocyte.workers.checks import check_workers
from harness.workers import ME

DRAIN_SECONDS = 30


@contextmanager
def supervised(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str], Path]]:
    """A supervisor with two workers: its address, its process and its log."""
    log = folder / "log"
    command = [sys.executable, "-m", "astrocyte", "--data-dir", str(folder / "data")]
    command += ["serve", "--port", "0", "--workers", "2"]
    with (
        log.open("w") as events,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=events, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            listening = process.stdout.readline()
            assert listening.startswith("Listening on "), log.read_text()
            yield listening.split()[-1], process, log
        finally:
            process.kill()


def events(log: Path, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == name]


async def stored(address: str, content: str) -> None:
    backend = RemoteBackend(address)
    try:
        await backend.call(ME, Retain("b", RetainItem(content)))
        result = await backend.call(ME, Recall(RecallQuery(content, "b")))
        assert content in {hit.text for hit in result.hits}
    finally:
        await backend.close()


@pytest.mark.process
@pytest.mark.timeout(240)
async def test_a_worker_that_dies_is_started_again_and_sigterm_drains_all(tmp_path: Path) -> None:
    with supervised(tmp_path) as (address, process, log):
        backend = RemoteBackend(address)
        await backend.call(ME, CreateBank("b"))
        await backend.close()
        with pytest.raises(StoreLocked, match=str(process.pid)):
            open_store(tmp_path / "data")
        pids = [one["pid"] for one in events(log, "worker_started")]
        assert len(pids) == 2
        for count, pid in enumerate(pids, start=1):
            os.kill(pid, signal.SIGKILL)
            end = time.monotonic() + 30
            while len(events(log, "worker_started")) < 2 + count:
                assert time.monotonic() < end, log.read_text()
                await asyncio.sleep(0.1)
            await stored(address, f"After kill {count}")
        process.terminate()
        assert process.wait(DRAIN_SECONDS) == 0, log.read_text()
    assert len(events(log, "worker_ended")) == 2
    # Nobody holds the directory any longer.
    open_store(tmp_path / "data").close()


@pytest.mark.process
@pytest.mark.timeout(240)
async def test_workers_end_with_their_supervisor(tmp_path: Path) -> None:
    with supervised(tmp_path) as (address, process, log):
        backend = RemoteBackend(address)
        await backend.call(ME, GetServerInfo())
        process.kill()
        process.wait()
        end = time.monotonic() + DRAIN_SECONDS
        while True:
            # The workers hold the directory until the last of them has ended.
            with contextlib.suppress(StoreLocked):
                open_store(tmp_path / "data").close()
                break
            assert time.monotonic() < end, log.read_text()
            await asyncio.sleep(0.1)
        assert len(events(log, "supervisor_gone")) == 2
        with pytest.raises(Unavailable):
            await backend.call(ME, GetServerInfo())
        await backend.close()


@pytest.mark.process
def test_a_worker_that_cannot_start_is_told_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "astrocyte", "--data-dir", str(tmp_path / "data"), "serve", "--workers", "2"]
    environment = {**os.environ, "ASTROCYTE_SERVER__PORT": "0", "ASTROCYTE_LLM_PROVIDER": "nobody"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode != 0
    assert "worker" in done.stderr
    assert "nobody" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("sections", "key"),
    [
        ({"vector_store": "in_memory"}, "vector_store"),
        ({"document_store": "postgres"}, "document_store"),
        ({"graph_store": "neo4j"}, "graph_store"),
        ({"provider": "other"}, "provider"),
        ({"server": {"host": "unix:astrocyte.sock"}}, "server.host"),
        ({"read_only": True}, "read_only"),
        ({"tiered_retrieval": {"enabled": True}}, "tiered_retrieval.enabled"),
        ({"recall": {"utility": {"enabled": True}}}, "recall.utility"),
        ({"homeostasis": {"quotas": {"storage_bytes_per_bank": 1_000}}}, "storage_bytes_per_bank"),
        ({"banks": {"b": {"homeostasis": {"quotas": {"storage_bytes_per_bank": 1_000}}}}}, "storage_bytes_per_bank"),
    ],
)
def test_settings_that_workers_would_disagree_about_are_refused(sections: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key) as caught:
        check_workers(Settings.from_mapping(sections))
    assert "server.workers" in caught.value.message


def test_the_defaults_are_for_workers_too() -> None:
    check_workers(Settings.from_mapping({}))
