"""A request of every RPC, made from its row: for tests that say something about all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from typing import Any

from google.protobuf.descriptor import MethodDescriptor

from astrocyte.api import RPCS, Backend, Rpc
from astrocyte.api.requests import (
    AuditCoverage,
    CreateMentalModel,
    RefreshMentalModel,
    StartReindex,
    UpdateBank,
    UpdateEntity,
    UpdateObservation,
    Watch,
)
from astrocyte.model import (
    Caller,
    Change,
    DeltaOperation,
    ExplainQuery,
    ForgetSelector,
    MemoryUpdate,
    NewEntityLink,
    RecallQuery,
    ReflectQuery,
    RetainItem,
    TermDecision,
)
from astrocyte.v1 import admin_pb2, agent_memory_pb2, graph_pb2, knowledge_pb2, memory_pb2
from samples.archiving import Pieces, archive_of, id_of, memory_line

Call = Callable[[Backend, Caller, str], Awaitable[Any]]
# An id that no store makes, for calls about one memory.
NO_MEMORY = "mem_" + "0" * 32
# An entity that no memory of a test mentions.
NO_ENTITY = "person:nobody"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
# The RPCs as the protocol has them, by name: what rows are held to.
METHODS: dict[str, MethodDescriptor] = {
    method.name: method
    for service in (
        memory_pb2.DESCRIPTOR.services_by_name["MemoryService"],
        graph_pb2.DESCRIPTOR.services_by_name["GraphService"],
        admin_pb2.DESCRIPTOR.services_by_name["AdminService"],
        agent_memory_pb2.DESCRIPTOR.services_by_name["AgentMemoryService"],
        knowledge_pb2.DESCRIPTOR.services_by_name["KnowledgeService"],
    )
    for method in service.methods
}
# Rows by the name of the RPC.
ROWS: dict[str, Rpc] = {rpc.name: rpc for rpc in RPCS.values()}
# Values of optional fields without which a call does nothing, or never ends.
OPTIONS: dict[type, dict[str, Any]] = {
    UpdateBank: {"display_name": "renamed"},
    UpdateEntity: {"name": "renamed"},
    StartReindex: {"rollback": True},
    Watch: {"after_position": 0},
    CreateMentalModel: {"content": "a model"},
    RefreshMentalModel: {"content": "a model"},
    UpdateObservation: {"confidence": 0.5},
    AuditCoverage: {"questions": ["canary"]},
}


def request_of(rpc: Rpc, bank: str, memory: str = NO_MEMORY) -> Any:
    """A valid request about a bank, and a memory where the RPC takes one."""
    recall = RecallQuery("canary", bank, as_of=NOW if rpc.name == "History" else None)
    query: Any = {
        "RecallAgentMemory": "canary",
        "Explain": ExplainQuery(recall, (memory,)),
        "Reflect": ReflectQuery("canary", bank),
        "StreamReflect": ReflectQuery("canary", bank),
        "SearchEntities": "canary",
        "SearchPages": "canary",
        "SearchSharedKb": "canary",
    }.get(rpc.name, recall)
    values: dict[str, Any] = {
        "bank_id": bank,
        "item": RetainItem("retained"),
        "items": [RetainItem("batched" if rpc.name == "BatchRetain" else "streamed")],
        "memory_id": memory,
        "update": MemoryUpdate(memory, frozenset({"tags"}), tags=("t",)),
        "selector": ForgetSelector(memory_ids=(memory,)),
        "query": query,
        "queries": [recall],
        "principal": "user:guest",
        "permissions": ["read"],
        "name": bank,
        "key_id": NO_MEMORY,
        "reason": "a case",
        "hold_id": "case-1",
        "operation_id": "op-1",
        "entity_id": NO_ENTITY,
        "entity_ids": [NO_ENTITY],
        "into_id": "person:other",
        "source_id": NO_ENTITY,
        "target_id": "person:other",
        "links": [NewEntityLink(NO_ENTITY, "person:other", "knows")],
        "link_id": "link-ffff",
        "topic": "a topic",
        "content": "remembered",
        "text": "a term",
        "term_id": "term-1",
        "decision": TermDecision.APPROVE,
        "rule_text": "a rule",
        "directive_id": "directive:1",
        "evidence": [memory],
        "source_ids": [memory],
        "observation_id": "obs-1",
        "model_id": "model:1",
        "page_id": "topic:none",
        "operations": [DeltaOperation("remove_section", "none")],
        "revision": 1,
        "from_revision": 1,
        "archive": Pieces(archive_of([memory_line(id_of("archived"), "archived")])),
    }
    needed = [
        field.name
        for field in fields(rpc.request)
        if (field.default is MISSING and field.default_factory is MISSING) or field.name == "bank_id"
    ]
    return rpc.request(**{name: values[name] for name in needed}, **OPTIONS.get(rpc.request, {}))


async def ask(backend: Backend, caller: Caller, rpc: Rpc, request: Any) -> Any:
    """The response to a request; the last one of a stream, or the first where it has no end."""
    if not rpc.server_streaming:
        response = await backend.call(caller, request)
        first = response[0] if rpc.client_streaming else None
        if isinstance(first, Exception):
            raise first
        return first or response
    last = None
    async for last in backend.stream(caller, request):
        if isinstance(last, Change):
            break
    return last


def calls(memory: str = NO_MEMORY) -> dict[str, Call]:
    """A call of each RPC by its name. Those about one memory take this one."""

    def call_of(rpc: Rpc) -> Call:
        return lambda backend, caller, bank: ask(backend, caller, rpc, request_of(rpc, bank, memory))

    return {rpc.name: call_of(rpc) for rpc in RPCS.values()}
