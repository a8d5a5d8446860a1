"""Servers on PostgreSQL that encrypt their banks, or do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Bank


def settings_of(address: str, folder: Path | None, **encryption: Any) -> Settings:
    own: dict[str, Any] = {"backend": "postgres", "dsn": address}
    graph = {}
    if folder is not None:
        own["encryption"] = {"enabled": True, "directory": str(folder), **encryption}
        graph = {"entity_graph": {"enabled": False}}
    return Settings.from_mapping({"store": own, "server": {"port": 0}, **graph})


@asynccontextmanager
async def opened(address: str, folder: Path | None, **encryption: Any) -> AsyncIterator[App]:
    app = App(settings_of(address, folder, **encryption))
    app.start_purging()
    try:
        yield app
    finally:
        await app.close()


def bank_of(app: App, bank_id: str) -> Bank:
    found = app.storage.store.get_bank("default", bank_id)
    assert found is not None
    return found
