"""Random and mutated payloads over the wire: every one is answered with a proper code, and the next call works.

By default some hundred payloads for each method; ``TEST_FUZZ_PAYLOADS=10000`` or ``-m slow`` for the full number.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from structlog.testing import capture_logs

from astrocyte.api import RPCS
from astrocyte.model import ExplainQuery, MemoryUpdate, RecallQuery, ReflectQuery, RetainItem
from astrocyte.services.convert import ITEMS, codec_of_rpc
from astrocyte.v1 import admin_pb2, agent_memory_pb2, agent_memory_pb2_grpc, memory_pb2
from harness.calls import METHODS, request_of
from harness.serving import Served, reason, serving
from samples.archiving import archive_of, id_of, memory_line
from samples.payloads import payloads

SEED = 20_260_801
COUNT = int(os.environ.get("TEST_FUZZ_PAYLOADS", "300"))
FULL_COUNT = 10_000
# Calls at once: enough to mix methods, few enough that none is refused for load.
CALLERS = 16
CONTENT = "Mara cannot eat sesame because of an allergy."
EXPECTED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.FAILED_PRECONDITION,
}

# A mode of reflect that needs a language model, on a server that has none.
UNBUILT = {name: {grpc.StatusCode.UNIMPLEMENTED} for name in ("Reflect", "StreamReflect")}
# Payloads that name another agent.
OF_OTHERS = {
    name: {grpc.StatusCode.PERMISSION_DENIED}
    for name in ("Remember", "RecallAgentMemory", "ForgetAgentMemory", "ListAgentMemories")
}

# Calls about entities and knowledge, of which the bank has none that a payload could name.
OF_NOTHING = {
    "CreateEntityLink",
    "DeleteDirective",
    "DeleteEntityLink",
    "DiffMentalModelRevisions",
    "FindPath",
    "GetEntity",
    "GetMentalModel",
    "GetMentalModelRevision",
    "GetObservation",
    "GetPage",
    "ListMentalModelRevisions",
    "ListObservationRevisions",
    "ListPageRevisions",
    "MergeEntities",
    "Neighbors",
    "RefreshMentalModel",
    "SplitEntity",
    "UndeleteMentalModel",
    "UpdateEntity",
    "UpdateMentalModel",
    "UpdateObservation",
}

# So that every call does something; whoever calls may do everything.
ACCESS = {
    "access_control": {"enabled": True},
    "identity": {"principal": "user:fuzz"},
    "access_grants": [{"bank_id": "*", "principal": "user:fuzz", "permissions": ["*"]}],
    "directives": {"allowed_principals": ["user:fuzz"]},
}


# A second model, for banks to move to.
EMBEDDERS = {"embedders": {"small": {"provider": "static", "options": {"dimensions": 128}}}}
SMALL = "static-minilm-256-v1-128"


def valid_requests(
    memory_id: str, key_id: str = "", operation_id: str = "op", *, agent_memory_id: str = "agm", term_id: str = "term"
) -> dict[str, Any]:
    """A message that the server takes, for every method."""
    item = RetainItem(CONTENT, tags=("food",), metadata={"k": 1})
    recall = RecallQuery("what can Mara not eat?", "family", tags=("food",), metadata={"k": 1})
    reflect = ReflectQuery("what can Mara not eat?", "family", tags=("food",))
    # Beyond `request_of`: what keeps the bank, and fills more fields.
    changes: dict[str, dict[str, Any]] = {
        "Retain": {"item": item},
        "BatchRetain": {"items": [item, item]},
        "ListMemories": {"tags": ["food"], "page_size": 2},
        "UpdateMemory": {
            "update": MemoryUpdate(memory_id, frozenset({"source"}), source="letter"),
            "validate_only": True,
        },
        "Recall": {"query": recall},
        "BatchRecall": {"queries": [recall, recall]},
        "Explain": {"query": ExplainQuery(recall, (memory_id,))},
        "History": {"query": RecallQuery("sesame", "family", as_of=datetime(2096, 10, 2, tzinfo=UTC))},
        "Reflect": {"query": reflect},
        "StreamReflect": {"query": reflect},
        "Forget": {"dry_run": True},
        "CreateBank": {"bank_id": "other", "display_name": "Other"},
        "DeleteBank": {"bank_id": "other"},
        "Revoke": {"permissions": ["read"]},
        "CheckAccess": {"permission": "read"},
        "CreateApiKey": {"name": "ann"},
        "RevokeApiKey": {"key_id": key_id},
        "PlaceHold": {"memory_ids": [memory_id]},
        "ReleaseHold": {"bank_id": "held", "hold_id": "hold"},
        # Another operation runs in the bank of the other calls.
        "ConsolidateBank": {"bank_id": "held"},
        "RunLifecycle": {"bank_id": "held"},
        "StartReindex": {"bank_id": "held", "embedding_model": SMALL, "rollback": False, "sample_size": 0},
        "WaitOperation": {"timeout": 0.001},
        "ForgetAgentMemory": {"memory_id": agent_memory_id},
        "ReviewTerm": {"term_id": term_id},
    }
    made: dict[str, Any] = {}
    for rpc in RPCS.values():
        request = replace(request_of(rpc, "family", memory_id), **changes.get(rpc.name, {}))
        if "operation_id" in rpc.fields:
            request = replace(request, operation_id=operation_id)
        if rpc.name == "ImportBank":
            archive = archive_of([memory_line(id_of("archived"), CONTENT, tags=["food"])])
            made[rpc.name] = admin_pb2.ImportBankRequest(
                bank_id="family", on_conflict=admin_pb2.ON_CONFLICT_SKIP, data=archive
            )
        elif rpc.client_streaming:
            made[rpc.name] = memory_pb2.StreamRetainRequest(bank_id="family", sequence=1, item=ITEMS.encode(item))
        else:
            made[rpc.name] = codec_of_rpc(rpc).encode_request(request)
    return made


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(**ACCESS, **EMBEDDERS, server={"archive_concurrency": 8 * CALLERS}) as served:
        yield served


async def watched(method: Any, payload: bytes) -> None:
    """Begin a watch; one that says nothing for a while is on and would wait for changes for ever."""
    watch = method(payload, timeout=20)
    with suppress(TimeoutError):
        await asyncio.wait_for(watch.read(), 0.2)
    watch.cancel()


async def attempt(served: Served, method: MethodDescriptor, payload: bytes) -> grpc.StatusCode:
    """The code of one call; a failure must carry exactly one ErrorInfo."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    channel = served.channel
    try:
        if method.client_streaming:
            stream: Any = channel.stream_stream(path)
            async for _ in stream(iter([payload]), timeout=20):
                pass
        elif method.server_streaming:
            await watched(channel.unary_stream(path), payload)
        else:
            call: Any = channel.unary_unary(path)
            await call(payload, timeout=20)
    except grpc.aio.AioRpcError as error:
        reason(error)
        return error.code()
    return grpc.StatusCode.OK


async def fuzz(served: Served, name: str, count: int) -> Counter[grpc.StatusCode]:
    """Codes of ``count`` payloads to one method, after which valid calls must work."""
    kept = await served.memory.Retain(memory_pb2.RetainRequest(bank_id="family", content=CONTENT, tags=["food"]))
    await served.memory.Retain(memory_pb2.RetainRequest(bank_id="held", content=CONTENT))
    await served.admin.PlaceHold(admin_pb2.PlaceHoldRequest(bank_id="held", hold_id="hold", reason="a case"))
    key = await served.admin.CreateApiKey(admin_pb2.CreateApiKeyRequest(name="first", principal="user:ann"))
    agents = agent_memory_pb2_grpc.AgentMemoryServiceStub(served.channel)
    remembered = await agents.Remember(agent_memory_pb2.RememberRequest(topic="a food", content=CONTENT))
    begun = await served.admin.StartReindex(admin_pb2.StartReindexRequest(bank_id="family", embedding_model=SMALL))
    valid = valid_requests(
        kept.memory_id,
        key.api_key.key_id,
        begun.operation.operation_id,
        agent_memory_id=remembered.memory_id,
        term_id=remembered.proposed_term_id,
    )[name]
    fill = ["family", "other", kept.memory_id, "food", CONTENT, "k", begun.operation.operation_id]
    hostile = payloads(SEED + METHODS[name].index, [valid], fill, count - 1)
    source = chain([valid.SerializeToString()], hostile)
    codes: Counter[grpc.StatusCode] = Counter()

    async def caller() -> None:
        for payload in source:
            codes[await attempt(served, METHODS[name], payload)] += 1

    with capture_logs() as logs:
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
    assert [entry for entry in logs if entry["log_level"] == "error"] == []
    await served.memory.Retain(memory_pb2.RetainRequest(bank_id="after", content=CONTENT))
    answer = await served.memory.Recall(memory_pb2.RecallRequest(bank_id="after", query="sesame"))
    assert [hit.text for hit in answer.hits] == [CONTENT]
    return codes


def test_every_method_is_fuzzed() -> None:
    assert set(valid_requests("")) == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
async def test_payloads_are_answered_properly(served: Served, name: str) -> None:
    codes = await fuzz(served, name, COUNT)
    assert codes.keys() <= EXPECTED | UNBUILT.get(name, set()) | OF_OTHERS.get(name, set())
    assert codes.total() == COUNT
    if name != "GetServerInfo":
        assert codes[grpc.StatusCode.INVALID_ARGUMENT] > COUNT // 10
    assert codes[grpc.StatusCode.NOT_FOUND if name in OF_NOTHING else grpc.StatusCode.OK] > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", METHODS)
async def test_ten_thousand_payloads_are_answered_properly(served: Served, name: str) -> None:
    codes = await fuzz(served, name, FULL_COUNT)
    assert codes.keys() <= EXPECTED | UNBUILT.get(name, set()) | OF_OTHERS.get(name, set())
    assert codes.total() == FULL_COUNT
