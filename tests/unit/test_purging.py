"""Background tasks of an application."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from astrocyte.api.requests import Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import DiskFull
from astrocyte.model import Caller, RetainItem


@pytest.mark.parametrize("failure", [lambda: DiskFull("full"), lambda: RuntimeError("secret"), lambda: OSError(5, "x")])
async def test_purging_goes_on_after_any_failure(
    monkeypatch: pytest.MonkeyPatch, failure: Callable[[], Exception]
) -> None:
    settings = {"vector_store": "in_memory", "forget": {"purge_interval_seconds": 0.005}}
    app = App(Settings.from_mapping(settings))
    rounds = asyncio.Event()
    calls = 0

    async def purge(_now: int) -> int:
        nonlocal calls
        calls += 1
        if calls <= 2:
            raise failure()
        rounds.set()
        return 0

    monkeypatch.setattr(app.storage.store, "purge", purge)
    logged: list[Any]
    with capture_logs() as logged:
        await app.gate.call(Caller(), Retain("b", RetainItem("tea")))
        await asyncio.wait_for(rounds.wait(), 5)
    assert [entry["event"] for entry in logged].count("purge_failed") == 2
    assert "secret" not in str(logged)
    await app.close()
