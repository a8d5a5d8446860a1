"""Archives as streams over HTTP: exported, imported and exported again they are the same; broken ones store nothing."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import httpx
import orjson
import pytest

from astrocyte.api.requests import CreateMentalModel, CreateObservation, Forget, ListMemories, Retain, UpdateMemory
from astrocyte.errors import BankNotFound, ValidationError
from astrocyte.model import ForgetSelector, MemoryUpdate, RetainItem
from harness.http_doors import ME, HttpDoors, events, opened
from samples.archiving import lines_of

BANK = "b"
PARTS = {"include_graph": True, "include_observations": True, "include_mental_models": True}
# Bytes of a message of an import: no divisor of a line.
PIECE = 997


@pytest.fixture
async def doors() -> AsyncIterator[HttpDoors]:
    async with opened() as (_, doors):
        item = RetainItem("Mara drinks tea.", tags=("ä/&?",), metadata={"n": 2**53 + 1, "f": 0.5, "none": None})
        kept = await doors.call(ME, Retain(BANK, item))
        dated = RetainItem("Otto moved to Porto.", occurred_at=datetime(2026, 1, 2, tzinfo=UTC), speaker="Ines")
        other = str((await doors.call(ME, Retain(BANK, dated))).memory_id)
        gone = str((await doors.call(ME, Retain(BANK, RetainItem("Forgotten.")))).memory_id)
        memory_id = str(kept.memory_id)
        changed = MemoryUpdate(memory_id, frozenset({"content"}), "Mara drinks green tea.")
        await doors.call(ME, UpdateMemory(BANK, changed))
        await doors.call(ME, Forget(BANK, ForgetSelector(memory_ids=(gone,))))
        await doors.call(ME, CreateObservation(BANK, "Mara likes tea.", [memory_id]))
        await doors.call(ME, CreateMentalModel(BANK, "Otto", content="Otto lives in Porto.", source_ids=[other]))
        yield doors


async def exported(doors: HttpDoors, bank_id: str) -> bytes:
    """The bytes of an archive, as a client of the stream puts them together."""
    head = doors._headers(ME)
    async with doors.client.stream("POST", f"/v1/banks/{bank_id}:export", json=PARTS, headers=head) as response:
        assert response.status_code == httpx.codes.OK, await response.aread()
        return b"".join([base64.b64decode(part["data"]) async for part in events(response)])


async def imported(doors: HttpDoors, bank_id: str, data: bytes) -> list[Any]:
    """The events of an import."""
    pieces = [data[start : start + PIECE] for start in range(0, len(data), PIECE)]
    first: dict[str, Any] = {"bank_id": bank_id, **PARTS}
    rows = [{**(first if not number else {}), "data": base64.b64encode(one)} for number, one in enumerate(pieces)]
    content = b"".join(orjson.dumps({**row, "data": row["data"].decode()}) + b"\n" for row in rows)
    head = {**doors._headers(ME), "content-type": "application/x-ndjson"}
    async with doors.client.stream("POST", "/v1/banks:import", content=content, headers=head) as response:
        assert response.status_code == httpx.codes.OK, await response.aread()
        return [event async for event in events(response)]


def told(data: bytes) -> list[dict[str, Any]]:
    """The lines of an archive, but for its header and footer, and the ids of memories that its bank never had."""
    return [line for line in lines_of(data)[1:-1] if line.get("section") != "forgotten"]


async def test_an_archive_that_is_imported_and_exported_again_is_the_same(doors: HttpDoors) -> None:
    data = await exported(doors, BANK)
    assert len(data) > 2 * PIECE
    *_, last = await imported(doors, "copy", data)
    result = last["result"]
    assert (last["received_bytes"], last["memories"], last["total_memories"]) == (len(data), 2, 2)
    assert (result["imported"], result["skipped"], result.get("failures", [])) == (2, 0, [])
    assert told(await exported(doors, "copy")) == told(data)
    page = await doors.call(ME, ListMemories("copy"))
    assert {one.content for one in page.memories} == {"Mara drinks green tea.", "Otto moved to Porto."}
    assert {one.metadata.get("n") for one in page.memories} == {2**53 + 1, None}


async def test_an_archive_that_breaks_off_stores_nothing(doors: HttpDoors) -> None:
    data = await exported(doors, BANK)
    with pytest.raises(ValidationError, match="the archive is truncated in line"):
        await imported(doors, "copy", data[:-10])
    with pytest.raises(BankNotFound):
        await doors.call(ME, ListMemories("copy"))
