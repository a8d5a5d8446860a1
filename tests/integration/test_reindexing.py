"""Moving a bank over the wire: as a client sees it, and through deaths of the server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc
import pytest

from astrocyte.api.requests import (
    BatchRetain,
    CancelOperation,
    CreateBank,
    DeleteBank,
    Forget,
    GetBank,
    GetOperation,
    GetServerInfo,
    ListMemories,
    ListOperations,
    Recall,
    StartReindex,
    WaitOperation,
)
from astrocyte.client import RemoteBackend
from astrocyte.errors import AccessDenied, FailedPrecondition, NotFound, Unavailable, ValidationError
from astrocyte.model import Caller, ForgetSelector, Operation, OperationState, RecallQuery, RetainItem
from astrocyte.services.convert import codec_of
from astrocyte.v1 import admin_pb2
from failpoints import REINDEX_POINTS
from harness.serving import Served, reason, serving
from ledger import Server

ME = Caller()
BANK = "family"
SMALL = "static-minilm-256-v1-128"
EMBEDDERS = {"small": {"provider": "static", "options": {"dimensions": 128}}}
FAST = {"share": 1.0, "retry_seconds": 0.001, "sample": 4}
TEXTS = [f"Box {number} holds the {thing}." for number, thing in enumerate(["lamp", "tent", "oboe", "map"] * 90)]
QUESTIONS = ["where is the oboe?", "which box has a tent?", "lamp"]


async def filled(backend: RemoteBackend) -> None:
    for first in range(0, len(TEXTS), 180):
        await backend.call(ME, BatchRetain(BANK, [RetainItem(text) for text in TEXTS[first : first + 180]]))


async def answers(backend: RemoteBackend, bank: str = BANK) -> list[list[tuple[str, float]]]:
    results = [await backend.call(ME, Recall(RecallQuery(question, bank))) for question in QUESTIONS]
    return [[(hit.text, round(hit.score, 4)) for hit in result.hits] for result in results]


async def by_the_new_model(backend: RemoteBackend) -> list[list[tuple[str, float]]]:
    """The answer of a bank that had the model from the beginning."""
    await backend.call(ME, CreateBank("other", embedding_model=SMALL))
    for first in range(0, len(TEXTS), 180):
        await backend.call(ME, BatchRetain("other", [RetainItem(text) for text in TEXTS[first : first + 180]]))
    found = await answers(backend, "other")
    await backend.call(ME, DeleteBank("other"))
    return found


async def test_a_bank_moves_and_comes_back_while_it_answers() -> None:
    async with serving(embedders=EMBEDDERS, reindex={**FAST, "share": 0.3}) as served:
        backend = served.backend
        await filled(backend)
        before, after = await answers(backend), await by_the_new_model(backend)
        assert before != after
        started = await backend.call(ME, StartReindex(BANK, embedding_model=SMALL, request_id="once"))
        assert (await backend.call(ME, StartReindex(BANK, embedding_model=SMALL, request_id="once"))).operation_id == (
            started.operation_id
        )
        seen: list[bool] = []
        operation = started
        while not operation.done:
            found = await answers(backend)
            seen += [one == new for one, old, new in zip(found, before, after, strict=True) if one in (old, new)]
            assert len(seen) % len(QUESTIONS) == 0
            operation = await backend.call(ME, GetOperation(BANK, started.operation_id))
        assert (operation.state, operation.error) == (OperationState.SUCCEEDED, None)
        assert seen == sorted(seen)
        assert operation.reindex is not None
        assert operation.reindex.comparison is not None
        assert await answers(backend) == after
        assert (await backend.call(ME, GetServerInfo())).embedding_models == ("static-minilm-256-v1", SMALL)
        back = await backend.call(ME, StartReindex(BANK, rollback=True))
        assert (await backend.call(ME, WaitOperation(BANK, back.operation_id))).state is OperationState.SUCCEEDED
        assert await answers(backend) == before
        page = await backend.call(ME, ListOperations(page_size=1))
        rest = await backend.call(ME, ListOperations(page_size=1, page_token=page.next_page_token))
        assert [one.operation_id for one in (*page.operations, *rest.operations)] == [
            started.operation_id,
            back.operation_id,
        ]
        assert rest.next_page_token == ""


async def test_a_wait_ends_with_its_time_and_with_the_server() -> None:
    async with serving(embedders=EMBEDDERS, reindex={**FAST, "share": 0.001}) as served:
        await filled(served.backend)
        started = await served.backend.call(ME, StartReindex(BANK, embedding_model=SMALL))
        operation = await served.backend.call(ME, WaitOperation(BANK, started.operation_id, timeout=0.01))
        assert not operation.done
        for bad in (-1.0, 301.0):
            with pytest.raises(ValidationError, match="timeout"):
                await served.backend.call(ME, WaitOperation(BANK, started.operation_id, timeout=bad))
        waiting = asyncio.create_task(served.backend.call(ME, WaitOperation(BANK, started.operation_id)))
        cancelled = await served.backend.call(ME, CancelOperation(BANK, started.operation_id))
        assert (await waiting).state is cancelled.state is OperationState.CANCELLED
        again = await served.backend.call(ME, StartReindex(BANK, embedding_model=SMALL))
        waiting = asyncio.create_task(served.backend.call(ME, WaitOperation(BANK, again.operation_id)))
        # It has reached the server once this later call was answered.
        await served.backend.call(ME, GetOperation(BANK, again.operation_id))
        await served.server.stop(5)
        with pytest.raises(Unavailable):
            await waiting


async def refused(served: Served, method: str, request: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await getattr(served.admin, method)(request)
    return refusal.value.code(), reason(refusal.value)


async def test_a_refusal_has_its_code_and_reason() -> None:
    async with serving(embedders=EMBEDDERS, reindex=FAST) as served:
        await filled(served.backend)
        named: dict[str, Any] = {"bank_id": BANK, "embedding_model": "strange"}
        assert await refused(served, "StartReindex", admin_pb2.StartReindexRequest(**named)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            ValidationError.reason,
        )
        assert await refused(served, "StartReindex", admin_pb2.StartReindexRequest(bank_id=BANK, rollback=True)) == (
            grpc.StatusCode.FAILED_PRECONDITION,
            FailedPrecondition.reason,
        )
        assert await refused(served, "GetOperation", admin_pb2.GetOperationRequest(bank_id=BANK, operation_id="x")) == (
            grpc.StatusCode.NOT_FOUND,
            NotFound.reason,
        )


async def test_whoever_has_no_admin_cannot_tell_an_operation_from_none() -> None:
    control = {"enabled": True, "default_policy": "deny"}
    grants = [{"bank_id": "*", "principal": "user:root", "permissions": ["*"]}]
    reader = {"bank_id": BANK, "principal": "user:reader", "permissions": ["read", "write", "forget"]}
    identity = {"principal": "user:root"}
    async with serving(
        embedders=EMBEDDERS, reindex=FAST, access_control=control, access_grants=[*grants, reader], identity=identity
    ) as served:
        await filled(served.backend)
        started = await served.backend.call(ME, StartReindex(BANK, embedding_model=SMALL))
        gate, caller = served.app.gate, Caller(principal="user:reader")
        messages = set()
        for operation_id in (started.operation_id, "op-none"):
            with pytest.raises(AccessDenied) as refusal:
                await gate.call(caller, GetOperation(BANK, operation_id))
            messages.add(str(refusal.value))
        assert len(messages) == 1
        with pytest.raises(AccessDenied):
            await gate.call(caller, ListOperations())


async def test_an_operation_crosses_the_wire_whole() -> None:
    async with serving(embedders=EMBEDDERS, reindex=FAST) as served:
        await filled(served.backend)
        codec = codec_of(Operation, admin_pb2.Operation)
        asked: list[dict[str, Any]] = [
            {"embedding_model": SMALL},
            {"rollback": True, "sample_size": 0, "min_overlap": 0.25},
        ]
        for fields in asked:
            started = await served.app.gate.call(ME, StartReindex(BANK, **fields))
            ended = await served.app.gate.call(ME, WaitOperation(BANK, started.operation_id))
            for operation in (started, ended):
                assert codec.decode(codec.encode(operation)) == operation
            assert await served.backend.call(ME, GetOperation(BANK, ended.operation_id)) == ended


VARIABLES = {
    "ASTROCYTE_EMBEDDERS": json.dumps(EMBEDDERS),
    "ASTROCYTE_REINDEX": json.dumps({**FAST, "keep_hours": 0.0}),
}


@pytest.mark.process
@pytest.mark.parametrize("point", REINDEX_POINTS)
async def test_a_server_that_dies_on_the_way_goes_on_where_it_was(tmp_path: Path, point: str) -> None:
    server = Server(tmp_path, {**VARIABLES, "ASTROCYTE_FAILPOINT": f"{point}:1"})
    backend = RemoteBackend(server.address)
    await filled(backend)
    await backend.call(ME, Forget(BANK, ForgetSelector(memory_ids=(await first_id(backend),))))
    before = await answers(backend)
    started = await backend.call(ME, StartReindex(BANK, embedding_model=SMALL))
    assert await asyncio.to_thread(server.died, 30.0)
    server.kill()
    await backend.close()
    server = Server(tmp_path, VARIABLES)
    backend = RemoteBackend(server.address)
    found = await answers(backend)
    operation = await backend.call(ME, WaitOperation(BANK, started.operation_id))
    assert operation.state is OperationState.SUCCEEDED
    after = await answers(backend)
    assert all(one in (old, new) for one, old, new in zip(found, before, after, strict=True))
    assert (await backend.call(ME, GetBank(BANK))).embedding_model == SMALL
    await backend.close()
    server.kill()
    server = Server(tmp_path, VARIABLES)
    backend = RemoteBackend(server.address)
    assert await answers(backend) == after
    await backend.close()
    server.kill()


async def first_id(backend: RemoteBackend) -> str:
    return (await backend.call(ME, ListMemories(BANK, page_size=1))).memories[0].memory_id
