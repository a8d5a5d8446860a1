"""The stores that the contracts hold for: on disk, in memory, and in PostgreSQL, there also encrypted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from astrocyte.model import Bank
from astrocyte.stores.sealing.key_stores import KeyDirectory, checked, place_of
from astrocyte.stores.sealing.keyring import Keyring
from astrocyte.stores.sqlite import open_store
from astrocyte.stores.sqlite.store import SqliteStore
from external import postgres
from samples.memories import Clock, make_bank


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["file", "memory", "postgres", "sealed"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[SqliteStore]:
    if request.param == "postgres":
        with postgres.opened_store(clock=clock) as opened:
            yield opened
        return
    if request.param == "sealed":
        keys = checked(KeyDirectory(tmp_path / "keys"), None)
        with postgres.opened_store(clock=clock, keyring=Keyring(keys, place=place_of(keys))) as opened:
            yield opened
        return
    store = open_store(tmp_path / "data" if request.param == "file" else None, clock=clock, ballast_bytes=0)
    yield store
    store.close()


@pytest.fixture
async def bank(store: SqliteStore) -> Bank:
    return await make_bank(store)
