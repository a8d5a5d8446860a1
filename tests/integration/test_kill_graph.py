"""SIGKILL after changes of callers to an entity graph: what was acknowledged is there after each start."""

from __future__ import annotations

from pathlib import Path

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
