"""SIGKILL while a language model consolidates a bank: it ends as an uninterrupted run, and no call is unpaid."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from astrocyte.api import Backend
from astrocyte.api.requests import BatchRetain, ConsolidateBank, ListObservations, ListOperations, WaitOperation
from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from astrocyte.model import OperationState, RetainItem
from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from doubles.language_models import Reply, openai_answer, serve
from doubles.observing_models import observing, parts
from ledger import Server
from ledger_book import ME

pytest.importorskip("httpx_retries", reason="an extra that is not installed")
pytestmark = [pytest.mark.process]

BANK = "people"
TAGS = ("work", "home")
ITEMS = [
    RetainItem(f"I came round to {thing}.", speaker=speaker, session_id=f"{number}", tags=(TAGS[number % 2],))
    for number, (speaker, thing) in enumerate(
        (speaker, thing) for _ in range(2) for speaker in ("Ann", "Bo") for thing in ("tea", "chess", "maps")
    )
]
OBSERVATIONS = "SELECT count(*) FROM knowledge_items"
CALLS = "SELECT coalesce(sum(calls), 0) FROM model_budgets WHERE use = 'consolidation'"


def counted(folder: Path, sql: str) -> int:
    connection = apsw.Connection(str(folder / "data" / DATABASE))
    try:
        return int(str(next(iter(connection.execute(sql)))[0]))
    finally:
        connection.close()


async def outcome(backend: Backend) -> list[tuple[str, str, int, float]]:
    page = await backend.call(ME, ListObservations(BANK, page_size=1_000))
    return sorted((one.scope, one.text, one.proof_count, one.confidence) for one in page)


async def killed_run(folder: Path, kills: int, seed: int) -> None:
    """Consolidate a bank in a server that is killed so often at random moments."""
    chance = random.Random(seed)
    asked = 0

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        # So that most kills fall into a call.
        time.sleep(0.05)
        return openai_answer(json.dumps({"actions": observing(*parts(request["messages"][-1]["content"]))}))

    with serve(Reply(answer=answer)) as model:
        options = {"model": "m", "base_url": model.url, "api_key": "k", "retries": 0}
        settings = {"writer": "model", "scopes": ["bank", "tag:*"], "calls_per_day": 1_000_000}
        variables = {
            "ASTROCYTE_SIGNAL_QUALITY__DEDUP__ENABLED": "false",
            "ASTROCYTE_ENTITY_GRAPH__ENABLED": "false",
            "ASTROCYTE_LLM_PROVIDER": "openai",
            "ASTROCYTE_LLM_PROVIDER_CONFIG": json.dumps(options),
            **{f"ASTROCYTE_OBSERVATIONS__CONSOLIDATION__{key.upper()}": json.dumps(value).strip('"')
               for key, value in settings.items()},
        }  # fmt: skip
        server = Server(folder, variables)
        backend = RemoteBackend(server.address)
        try:
            await backend.call(ME, BatchRetain(BANK, ITEMS))
            await backend.call(ME, ConsolidateBank(BANK))
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0.0, 0.6))
                server.kill()
                await backend.close()
                server = Server(folder, variables)
                backend = RemoteBackend(server.address)
                with contextlib.suppress(Unavailable):
                    if (await backend.call(ME, ListOperations(BANK))).operations[-1].done:
                        await backend.call(ME, ConsolidateBank(BANK))
            (*_, last) = (await backend.call(ME, ListOperations(BANK))).operations
            ended = await backend.call(ME, WaitOperation(BANK, last.operation_id, timeout=120.0))
            assert ended.state is OperationState.SUCCEEDED
            found = await outcome(backend)
        finally:
            await backend.close()
            server.kill()
    expected = []
    for scope in ("bank", "tag:home", "tag:work"):
        said = [
            f"{one.speaker} {one.content.removeprefix('I ')}"
            for one in ITEMS
            if scope in {"bank", f"tag:{one.tags[0]}"}
        ]
        expected += [(scope, text, said.count(text), 0.9) for text in sorted(set(said))]
    assert found == expected
    assert counted(folder, OBSERVATIONS) == len(expected)
    assert asked <= counted(folder, CALLS)


@pytest.mark.timeout(900)
async def test_a_consolidation_by_a_model_survives_kills(tmp_path: Path) -> None:
    await killed_run(tmp_path, 4, 1)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_a_consolidation_by_a_model_survives_two_hundred_kills(tmp_path: Path) -> None:
    await killed_run(tmp_path, 200, 2)
