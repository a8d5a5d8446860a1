"""Each setting of the store reaches it, and the application says whether writes are taken."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from astrocyte.api.requests import CreateBank, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import RateLimited, RequestIdReused, StoreError
from astrocyte.model import Caller, RetainItem
from astrocyte.stores.sqlite import SqliteStore
from astrocyte.stores.sqlite.engine.data_directory import BALLAST, DATABASE
from astrocyte.wiring import storage as wired_storage
from doubles.faulty_disk import failing_sync, faulty_disk

ME = Caller()
HOUR = 3_600_000


@asynccontextmanager
async def running(folder: Path, clock: list[int] | None = None, **sections: Any) -> AsyncIterator[App]:
    settings = Settings.from_mapping({"data_dir": str(folder), **sections})
    app = App(settings) if clock is None else App(settings, clock=lambda: clock[0])
    try:
        yield app
    finally:
        await app.close()


@pytest.mark.parametrize("size", [0, 1 << 20])
async def test_the_ballast_has_the_size_that_is_set(tmp_path: Path, size: int) -> None:
    async with running(tmp_path, store={"ballast_bytes": size}):
        ballast = tmp_path / BALLAST
        assert (ballast.stat().st_size if ballast.exists() else 0) == size


async def test_no_more_writes_wait_than_is_set(tmp_path: Path) -> None:
    async with running(tmp_path, store={"ballast_bytes": 0, "waiting_limit": 1}) as app:
        await app.gate.call(ME, CreateBank("b"))
        answers = await asyncio.gather(
            *(app.gate.call(ME, Retain("b", RetainItem(f"tea number {number}"))) for number in range(40)),
            return_exceptions=True,
        )
        refused = [answer for answer in answers if isinstance(answer, BaseException)]
        assert refused
        assert all(isinstance(answer, RateLimited) and "the limit is 1" in str(answer) for answer in refused)


async def test_another_process_is_waited_for_as_long_as_is_set(tmp_path: Path) -> None:
    async with running(tmp_path, store={"ballast_bytes": 0, "busy_seconds": 0.2}) as app:
        await app.gate.call(ME, CreateBank("b"))
        with contextlib.closing(apsw.Connection(str(tmp_path / DATABASE))) as other:
            other.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            with pytest.raises(RateLimited, match="another process"):
                await app.gate.call(ME, CreateBank("c"))
            # The default is 5 s.
            assert 0.15 < time.monotonic() - begun < 4
            other.execute("ROLLBACK")


@pytest.mark.parametrize(("hours", "forgotten"), [(1.0, True), (3.0, False)])
async def test_request_ids_are_known_as_long_as_is_set(tmp_path: Path, hours: float, forgotten: bool) -> None:
    clock = [HOUR]
    sections = {
        "store": {"ballast_bytes": 0, "request_keep_hours": hours},
        "forget": {"purge_interval_seconds": 0.01},
    }
    async with running(tmp_path, clock, **sections) as app:
        first = await app.gate.call(ME, Retain("b", RetainItem("tea"), request_id="r"))
        clock[0] += 2 * HOUR
        # Long enough for some rounds of the purge.
        await asyncio.sleep(0.3)
        if forgotten:
            assert (await app.gate.call(ME, Retain("b", RetainItem("jam"), request_id="r"))).stored
        else:
            assert await app.gate.call(ME, Retain("b", RetainItem("tea"), request_id="r")) == first
            with pytest.raises(RequestIdReused):
                await app.gate.call(ME, Retain("b", RetainItem("jam"), request_id="r"))


async def test_a_disk_that_failed_makes_it_unhealthy_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with faulty_disk() as disk:
        monkeypatch.setattr(wired_storage, "open_store", lambda folder, **_: SqliteStore(folder, _vfs=disk.name))
        async with running(tmp_path) as app:
            await app.gate.call(ME, CreateBank("b"))
            assert app.healthy
            disk.fault = failing_sync
            with pytest.raises(StoreError):
                await app.gate.call(ME, Retain("b", RetainItem("tea")))
            disk.fault = None
            assert not app.healthy
            with pytest.raises(StoreError, match="restart"):
                await app.gate.call(ME, Retain("b", RetainItem("tea")))
            assert not app.healthy
