"""Two servers on one PostgreSQL: what one acknowledged, the other knows at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.stores.postgres.engine.sharing import PostgresSharing
from external.postgres_process import PostgresProcess, postgres_folder
from freshness import count_misses, two_servers

pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(900)]

PAIRS = 3_000
# Enough for a reader that never looks.
FEW_PAIRS = 40


async def test_a_recall_sees_every_write_that_another_server_acknowledged(tmp_path: Path) -> None:
    async with two_servers(tmp_path) as (first, second):
        assert (await count_misses(first, second, PAIRS)).misses == 0


@asynccontextmanager
async def two_apps() -> AsyncIterator[tuple[App, App]]:
    """Two servers in this process."""
    with postgres_folder() as files:
        database = PostgresProcess(files)
        database.create()
        database.start()
        settings = Settings.from_mapping({"store": {"backend": "postgres", "dsn": database.dsn}})
        first, second = App(settings), App(settings)
        try:
            yield first, second
        finally:
            await first.close()
            await second.close()
            database.stop_immediately()


async def test_a_server_that_asks_nobody_misses_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with two_apps() as (first, second):
        counts = await count_misses(first.backend, second.backend, FEW_PAIRS)
        assert (counts.misses, counts.pairs >= FEW_PAIRS) == (0, True)
        monkeypatch.setattr(PostgresSharing, "refresh", lambda _: None)
        assert (await count_misses(first.backend, second.backend, FEW_PAIRS, start=FEW_PAIRS)).misses > 0
