"""SIGKILL while a language model reads memories for graphs: none is lost, none has two effects, no call is unpaid."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest

from astrocyte.api.requests import FindPath, Retain
from astrocyte.client import RemoteBackend
from astrocyte.model import RetainItem
from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from doubles.graph_models import ALLERGY, SAID, graph_of
from doubles.language_models import Reply, openai_answer, serve
from ledger import Server
from ledger_book import ME

pytest.importorskip("httpx_retries", reason="an extra that is not installed")
pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

BANK = "people"
KILLS, MEMORIES = 4, 8
VARIABLES = {
    "ASTROCYTE_ENTITY_GRAPH__READ_WAIT_SECONDS": "30",
    "ASTROCYTE_ENTITY_RESOLUTION__ENABLED": "false",
    "ASTROCYTE_SIGNAL_QUALITY__DEDUP__ENABLED": "false",
    "ASTROCYTE_LLM_PROVIDER": "openai",
}
# Versions of a bank, links of the model, versions that wait, and calls that were counted.
COUNTS = (
    "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM entity_links WHERE origin = 'model'),"
    " (SELECT count(*) FROM graph_readings WHERE waiting = 1),"
    " (SELECT coalesce(sum(calls), 0) FROM model_budgets)"
)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    # So that most kills fall into a call.
    time.sleep(0.05)
    return openai_answer(graph_of(request["messages"][-1]["content"], "reacts_to"))


def counts(folder: Path) -> tuple[int, int, int, int]:
    connection = apsw.Connection(str(folder / "data" / DATABASE))
    try:
        versions, links, waiting, calls = next(iter(connection.execute(COUNTS)))
        return int(str(versions)), int(str(links)), int(str(waiting)), int(str(calls))
    finally:
        connection.close()


async def test_every_memory_is_read_and_has_its_links_once(tmp_path: Path) -> None:
    choose = random.Random(5)
    stored = 0
    with serve(Reply(answer=answer)) as model:
        options = {"model": "m", "base_url": model.url, "api_key": "k", "retries": 0}
        variables = {
            **VARIABLES,
            "ASTROCYTE_LLM_PROVIDER_CONFIG": json.dumps(options),
            "ASTROCYTE_GRAPH_EXTRACTION__MODE": "llm",
        }
        server = Server(tmp_path, variables)
        try:
            for cycle in range(KILLS):
                backend = RemoteBackend(server.address)
                for number in range(MEMORIES):
                    text = ALLERGY.format(cycle * MEMORIES + number)
                    await backend.call(ME, Retain(BANK, RetainItem(text)))
                    stored += 1
                # Somewhere between the first derivation and the last answer.
                await asyncio.sleep(choose.uniform(0.0, 0.3))
                server.kill()
                await backend.close()
                versions, links, waiting, _ = counts(tmp_path)
                assert versions == stored
                assert links + waiting <= stored
                server = Server(tmp_path, variables)
            async with asyncio.timeout(120):
                while counts(tmp_path)[1:3] != (stored, 0):  # noqa: ASYNC110 - the database tells nobody
                    await asyncio.sleep(0.05)
            backend = RemoteBackend(server.address)
            found = await backend.call(
                ME, FindPath(BANK, "person:alice-smith", "product:aspirin", max_paths=20, link_types=("reacts_to",))
            )
            assert found.paths
            await backend.close()
        finally:
            server.kill()
        read = Counter(SAID.search(one["messages"][-1]["content"])[3] for one in model.requests)  # type: ignore[index]
    assert len(read) == stored
    # At most the call that a kill interrupted is repeated, and every call was counted before it was made.
    assert sum(read.values()) <= stored + KILLS
    assert counts(tmp_path)[3] >= sum(read.values())
