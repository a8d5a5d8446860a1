"""SIGKILL after changes of callers to an entity graph: what was acknowledged is there after each start."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psycopg
import pytest

from astrocyte.api.requests import (
    CreateEntityLink,
    DeleteEntityLink,
    GetEntity,
    MergeEntities,
    Neighbors,
    Retain,
    SplitEntity,
    UpdateEntity,
)
from astrocyte.client import RemoteBackend
from astrocyte.errors import NotFound
from astrocyte.model import GraphNeighbors, NewEntityLink, RetainItem
from external.postgres import address
from ledger import Server
from ledger_book import ME

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

BANK = "people"
ALICE, BOB, CARLA = "person:alice-smith", "person:bob-miller", "person:carla-jones"
VARIABLES = {"ASTROCYTE_ENTITY_GRAPH__READ_WAIT_SECONDS": "30"}


async def neighbours(backend: RemoteBackend, link_type: str) -> GraphNeighbors:
    return await backend.call(ME, Neighbors(BANK, (ALICE,), max_depth=1, link_types=(link_type,)))


async def test_links_names_merges_and_splits_survive(tmp_path: Path) -> None:
    kept: list[str] = []
    deleted = ""
    server = Server(tmp_path, VARIABLES)
    try:
        for cycle in range(4):
            backend = RemoteBackend(server.address)
            text = f"Alice Smith, Bob Miller and Carla Jones had lunch number {cycle}."
            await backend.call(ME, Retain(BANK, RetainItem(text)))
            links = [NewEntityLink(ALICE, BOB, f"{kind}_{cycle}", "a caller says so") for kind in ("knows", "left")]
            known, left = await backend.call(ME, CreateEntityLink(BANK, links))
            kept.append(known.link_type)
            await backend.call(ME, DeleteEntityLink(BANK, left.link_id))
            deleted = left.link_type
            await backend.call(ME, UpdateEntity(BANK, BOB, name=f"Robert {cycle}"))
            change = MergeEntities(BANK, (CARLA,), BOB) if cycle % 2 == 0 else SplitEntity(BANK, CARLA)
            await backend.call(ME, change)
            # The last acknowledgement is all that it waited for.
            server.kill()
            await backend.close()
            server = Server(tmp_path, VARIABLES)
            backend = RemoteBackend(server.address)
            for link_type in kept:
                found = await neighbours(backend, link_type)
                assert BOB in {one.entity.id for one in found.entities}, link_type
            assert {one.entity.id for one in (await neighbours(backend, deleted)).entities} == {ALICE}
            bob = await backend.call(ME, GetEntity(BANK, BOB))
            assert bob.name == f"Robert {cycle}"
            assert bob.merged_ids == ((CARLA,) if cycle % 2 == 0 else ())
            with pytest.raises(NotFound):
                await backend.call(ME, GetEntity(BANK, "person:nobody"))
            await backend.close()
    finally:
        server.kill()


Records = dict[str, tuple[str | None, list[str]]]


def outside(schema: str) -> tuple[set[str], Records]:
    """Types of the links in PostgreSQL, and names and aliases of its records by entity."""
    with psycopg.connect(address()) as connection:
        # Before the first start of the server there is no table.
        if connection.execute("SELECT to_regclass(%s)", (f"{schema}.link_records",)).fetchone() == (None,):
            return set(), {}
        links = connection.execute(f"SELECT link_type FROM {schema}.link_records WHERE walked").fetchall()  # noqa: S608 - a name of this test
        records = connection.execute(f"SELECT entity_id, name, alias_of FROM {schema}.entity_records").fetchall()  # noqa: S608 - as above
    return {row[0] for row in links}, {row[0]: (row[1], row[2]) for row in records}


async def test_what_was_acknowledged_reaches_an_external_store(tmp_path: Path) -> None:
    schema = "killed"
    store = {"dsn": address(), "schema_name": schema}
    variables = {
        **VARIABLES,
        "ASTROCYTE_GRAPH_STORE": "postgres",
        "ASTROCYTE_GRAPH_STORE_CONFIG": json.dumps(store),
    }
    kept: set[str] = set()
    server = Server(tmp_path, variables)
    try:
        for cycle in range(4):
            backend = RemoteBackend(server.address)
            text = f"Alice Smith, Bob Miller and Carla Jones had lunch number {cycle}."
            await backend.call(ME, Retain(BANK, RetainItem(text)))
            links = [NewEntityLink(ALICE, BOB, f"{kind}_{cycle}", "a caller says so") for kind in ("knows", "left")]
            known, left = await backend.call(ME, CreateEntityLink(BANK, links))
            kept.add(known.link_type)
            await backend.call(ME, UpdateEntity(BANK, BOB, name=f"Robert {cycle}"))
            await backend.call(ME, MergeEntities(BANK, (CARLA,), BOB))
            await backend.call(ME, DeleteEntityLink(BANK, left.link_id))
            if cycle % 2:
                await backend.call(ME, SplitEntity(BANK, CARLA))
            # Wherever the store is by now.
            server.kill()
            await backend.close()
            server = Server(tmp_path, variables)
        # Without a call, which could be what sends the rest. Of Carla nobody says anything after the split.
        wanted: tuple[set[str], Records] = kept, {ALICE: (None, []), BOB: ("Robert 3", [])}
        async with asyncio.timeout(120):
            while outside(schema) != wanted:  # noqa: ASYNC110 - the database tells nobody
                await asyncio.sleep(0.1)
    finally:
        server.kill()
