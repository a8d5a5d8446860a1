"""Random and mutated payloads over the wire: every one is answered with a proper code, and the next call works.

By default some hundred payloads for each method; ``ASTROCYTE_TEST_FUZZ=10000`` or ``-m slow`` for the full number.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from structlog.testing import capture_logs

from astrocyte.v1 import admin_pb2, memory_pb2, types_pb2
from calls import METHODS
from payloads import payloads
from serving import Served, reason, serving

SEED = 20_260_801
COUNT = int(os.environ.get("ASTROCYTE_TEST_FUZZ", "300"))
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

# So that every call does something; whoever calls may do everything.
ACCESS = {
    "access_control": {"enabled": True},
    "identity": {"principal": "user:fuzz"},
    "access_grants": [{"bank_id": "*", "principal": "user:fuzz", "permissions": ["*"]}],
}


# A second model, for banks to move to.
EMBEDDERS = {"embedders": {"small": {"provider": "static", "options": {"dimensions": 128}}}}
SMALL = "static-minilm-256-v1-128"


def valid_requests(memory_id: str, key_id: str = "", operation_id: str = "op") -> dict[str, Any]:
    """A request that the server takes, for every method."""
    bank: dict[str, Any] = {"bank_id": "family"}
    memory = {**bank, "memory_id": memory_id}
    metadata = {"k": types_pb2.MetadataValue(int_value=1)}
    item = memory_pb2.RetainItem(content=CONTENT, tags=["food"], metadata=metadata)
    recall = memory_pb2.RecallRequest(**bank, query="what can Mara not eat?", tags=["food"], metadata=metadata)
    return {
        "Retain": memory_pb2.RetainRequest(**bank, content=CONTENT, tags=["food"], metadata=metadata),
        "BatchRetain": memory_pb2.BatchRetainRequest(**bank, items=[item, item]),
        "StreamRetain": memory_pb2.StreamRetainRequest(**bank, sequence=1, item=item),
        "GetMemory": memory_pb2.GetMemoryRequest(**memory),
        "ListMemories": memory_pb2.ListMemoriesRequest(**bank, page_size=2, tags=["food"]),
        "UpdateMemory": memory_pb2.UpdateMemoryRequest(
            **memory, update_mask=FieldMask(paths=["source"]), source="letter", validate_only=True
        ),
        "Recall": recall,
        "BatchRecall": memory_pb2.BatchRecallRequest(queries=[recall, recall]),
        "Explain": memory_pb2.ExplainRequest(recall=recall, memory_ids=[memory_id]),
        "History": memory_pb2.HistoryRequest(**bank, query="sesame", as_of=Timestamp(seconds=4_000_000_000)),
        "Forget": memory_pb2.ForgetRequest(**bank, memory_ids=[memory_id], dry_run=True),
        "UndeleteMemory": memory_pb2.UndeleteMemoryRequest(**memory),
        "Watch": memory_pb2.WatchRequest(**bank, after_position=0),
        "CreateBank": admin_pb2.CreateBankRequest(bank_id="other", display_name="Other"),
        "GetBank": admin_pb2.GetBankRequest(**bank),
        "ListBanks": admin_pb2.ListBanksRequest(page_size=1),
        "UpdateBank": admin_pb2.UpdateBankRequest(
            **bank, update_mask=FieldMask(paths=["description"]), description="ours"
        ),
        "DeleteBank": admin_pb2.DeleteBankRequest(bank_id="other"),
        "GetBankStats": admin_pb2.GetBankStatsRequest(**bank),
        "GetServerInfo": admin_pb2.GetServerInfoRequest(),
        "Grant": admin_pb2.GrantRequest(**bank, principal="user:ann", permissions=[admin_pb2.PERMISSION_READ]),
        "Revoke": admin_pb2.RevokeRequest(**bank, principal="user:ann", permissions=[admin_pb2.PERMISSION_READ]),
        "ListGrants": admin_pb2.ListGrantsRequest(**bank, principal="user:ann", page_size=1),
        "CreateApiKey": admin_pb2.CreateApiKeyRequest(name="ann", principal="user:ann"),
        "ListApiKeys": admin_pb2.ListApiKeysRequest(),
        "ListBankTemplates": admin_pb2.ListBankTemplatesRequest(),
        "ListBankGroups": admin_pb2.ListBankGroupsRequest(),
        "ListEngines": admin_pb2.ListEnginesRequest(),
        "RevokeApiKey": admin_pb2.RevokeApiKeyRequest(key_id=key_id),
        "Reflect": memory_pb2.ReflectRequest(**bank, query="what can Mara not eat?", tags=["food"]),
        "StreamReflect": memory_pb2.StreamReflectRequest(
            reflect=memory_pb2.ReflectRequest(**bank, query="what can Mara not eat?", tags=["food"])
        ),
        "PlaceHold": admin_pb2.PlaceHoldRequest(**bank, memory_ids=[memory_id], reason="a case"),
        "ReleaseHold": admin_pb2.ReleaseHoldRequest(bank_id="held", hold_id="hold"),
        "ListHolds": admin_pb2.ListHoldsRequest(**bank, page_size=1),
        "StartReindex": admin_pb2.StartReindexRequest(bank_id="held", embedding_model=SMALL, sample_size=0),
        "GetOperation": admin_pb2.GetOperationRequest(**bank, operation_id=operation_id),
        "ListOperations": admin_pb2.ListOperationsRequest(**bank, page_size=1),
        "WaitOperation": admin_pb2.WaitOperationRequest(
            **bank, operation_id=operation_id, timeout=Duration(nanos=1_000_000)
        ),
        "CancelOperation": admin_pb2.CancelOperationRequest(**bank, operation_id=operation_id),
        "ListAuditEvents": admin_pb2.ListAuditEventsRequest(**bank, page_size=1),
        "CheckAccess": admin_pb2.CheckAccessRequest(**bank, permission=admin_pb2.PERMISSION_READ),
    }


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving(**ACCESS, **EMBEDDERS) as served:
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
    begun = await served.admin.StartReindex(admin_pb2.StartReindexRequest(bank_id="family", embedding_model=SMALL))
    valid = valid_requests(kept.memory_id, key.api_key.key_id, begun.operation.operation_id)[name]
    fill = ["family", "other", kept.memory_id, "food", CONTENT, "k", begun.operation.operation_id]
    source = payloads(SEED + METHODS[name].index, [valid], fill, count)
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
    assert codes.keys() <= EXPECTED | UNBUILT.get(name, set())
    assert codes.total() == COUNT
    if name != "GetServerInfo":
        assert codes[grpc.StatusCode.INVALID_ARGUMENT] > COUNT // 10
    assert codes[grpc.StatusCode.OK] > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", METHODS)
async def test_ten_thousand_payloads_are_answered_properly(served: Served, name: str) -> None:
    codes = await fuzz(served, name, FULL_COUNT)
    assert codes.keys() <= EXPECTED | UNBUILT.get(name, set())
    assert codes.total() == FULL_COUNT
