"""The table of all RPCs: permissions, limits and kind of each.

The gate, the server, the remote client, the middlewares, the reference pages and the tests that say something about
every RPC derive from these rows. CONTRIBUTING.md has the recipe for a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import chain
from typing import Any

from astrocyte.api import requests
from astrocyte.api.requests import StreamRequest, response_of
from astrocyte.model import NO_PERMISSIONS, Permission

MEMORY_SERVICE = "astrocyte.v1.MemoryService"
ADMIN_SERVICE = "astrocyte.v1.AdminService"
GRAPH_SERVICE = "astrocyte.v1.GraphService"
AGENT_MEMORY_SERVICE = "astrocyte.v1.AgentMemoryService"
KNOWLEDGE_SERVICE = "astrocyte.v1.KnowledgeService"
# For `Rpc.bank`: the RPC is about all banks of the tenant, or about none.
NO_BANK = ""

READ = frozenset({Permission.READ})
WRITE = frozenset({Permission.WRITE})
FORGET = frozenset({Permission.FORGET})
ADMIN = frozenset({Permission.ADMIN})


class LimitKind(StrEnum):
    """The rate and daily quota that a call counts for. An update counts as a retain, a history as a recall."""

    RETAIN = "retain"
    RECALL = "recall"
    REFLECT = "reflect"


class Concurrency(StrEnum):
    """The group of calls that share a concurrency limit and a deadline of the server."""

    READ = "read"
    WRITE = "write"
    # Separate from reads: a language model that hangs must not block recalls.
    REFLECT = "reflect"
    ADMIN = "admin"
    # Calls that last as long as their callers wish; each kind has places of its own.
    STREAM = "stream"
    WATCH = "watch"
    WAIT = "wait"
    ARCHIVE = "archive"


class Creates(StrEnum):
    """The condition on which a call creates its bank: never, by ``auto_create``, or only by a template."""

    NEVER = "never"
    BANK = "bank"
    BANK_OF_TEMPLATE = "bank_of_template"


@dataclass(frozen=True, slots=True)
class Rpc:
    """One row.

    Attributes:
        service: Full name of its service.
        request: Class of its request; has the RPC's name, and states its response.
        permissions: Needed on the bank, all of them. An RPC that returns content needs read besides. With none, the
            caller only needs a name: the answer is limited to what it may read, or holds nothing of any bank.
        bank: Path of the request field that names the bank; `NO_BANK` where permissions are needed in every bank.
        concurrency: Its concurrency limit and deadline.
        limit_kind: Its rate and daily quota, if any.
        size: Key of the section ``limits`` that bounds the elements of a request or of a page, if any.
        creates: Whether it creates the bank that it names.
        mutates: Whether it changes anything. Such a request can be repeated: it has a request id, or an archive whose
            memories the bank has by then.
        client_streaming: Whether the messages of a request are a stream on the wire.
        waits: Whether a unary call waits for an event, and ends early when the server stops.
    """

    service: str
    request: type[Any]
    permissions: frozenset[Permission]
    bank: str = "bank_id"
    concurrency: Concurrency = Concurrency.ADMIN
    limit_kind: LimitKind | None = None
    size: str | None = None
    creates: Creates = Creates.NEVER
    mutates: bool = False
    client_streaming: bool = False
    waits: bool = False

    @property
    def name(self) -> str:
        """Name on the wire."""
        return self.request.__name__

    @property
    def response(self) -> Any:  # noqa: ANN401 - a type, or a form such as list[Bank]
        """The type that a call returns, or that a stream yields."""
        return response_of(self.request)

    @property
    def server_streaming(self) -> bool:
        """True if it is called by `Backend.stream`."""
        return issubclass(self.request, StreamRequest)

    def bank_id(self, request: object) -> str:
        """The bank that a request names; "" where it names none, or several."""
        value: object = request
        for name in self.bank.split("."):
            value = getattr(value, name, None)
        return value if isinstance(value, str) else ""

    @property
    def fields(self) -> frozenset[str]:
        """Names of the request's fields."""
        return frozenset(field.name for field in fields(self.request))


def _memory(request: type[Any], permissions: frozenset[Permission], concurrency: Concurrency, **rest: Any) -> Rpc:  # noqa: ANN401 - fields of a row
    return Rpc(MEMORY_SERVICE, request, permissions, concurrency=concurrency, **rest)


def _graph(request: type[Any], permissions: frozenset[Permission] = READ, **rest: Any) -> Rpc:  # noqa: ANN401 - fields of a row
    return Rpc(GRAPH_SERVICE, request, permissions, **{"concurrency": Concurrency.READ, **rest})


def _admin(request: type[Any], permissions: frozenset[Permission] = ADMIN, **rest: Any) -> Rpc:  # noqa: ANN401 - fields of a row
    return Rpc(ADMIN_SERVICE, request, permissions, **rest)


def _agent(request: type[Any], permissions: frozenset[Permission] = NO_PERMISSIONS, **rest: Any) -> Rpc:  # noqa: ANN401 - fields of a row
    # Memories belong to a principal, and terms to the tenant: neither is in a bank.
    return Rpc(AGENT_MEMORY_SERVICE, request, permissions, bank=NO_BANK, **rest)


def _shared_kb(request: type[Any], **rest: Any) -> Rpc:  # noqa: ANN401 - fields of a row
    return Rpc(AGENT_MEMORY_SERVICE, request, READ, concurrency=Concurrency.READ, **rest)


def _knowledge(request: type[Any], permissions: frozenset[Permission], **rest: Any) -> Rpc:  # noqa: ANN401 - fields of a row
    concurrency = Concurrency.WRITE if rest.get("mutates") else Concurrency.READ
    return Rpc(KNOWLEDGE_SERVICE, request, permissions, **{"concurrency": concurrency, **rest})


_RETAINS: Mapping[str, Any] = {"limit_kind": LimitKind.RETAIN, "creates": Creates.BANK, "mutates": True}
_RECALLS: Mapping[str, Any] = {"bank": "query.bank_id", "limit_kind": LimitKind.RECALL}
_REFLECTS: Mapping[str, Any] = {"bank": "query.bank_id", "limit_kind": LimitKind.REFLECT}
_CHANGES_GRAPH: Mapping[str, Any] = {"concurrency": Concurrency.WRITE, "mutates": True}
_BY_TEMPLATE: Mapping[str, Any] = {"creates": Creates.BANK_OF_TEMPLATE}
# As a retain, in a bank that exists.
_RETAINS_THERE: Mapping[str, Any] = {"limit_kind": LimitKind.RETAIN, "mutates": True}


def _graph_rows() -> Iterable[Rpc]:
    yield _graph(requests.SearchEntities, size="max_results", limit_kind=LimitKind.RECALL)
    yield _graph(requests.GetEntity)
    yield _graph(requests.ListEntities, size="page_size")
    yield _graph(requests.Neighbors, size="max_results", limit_kind=LimitKind.RECALL)
    yield _graph(requests.FindPath, limit_kind=LimitKind.RECALL)
    yield _graph(requests.CreateEntityLink, READ | WRITE, size="batch_items", **_CHANGES_GRAPH)
    yield _graph(requests.DeleteEntityLink, FORGET, **_CHANGES_GRAPH)
    yield _graph(requests.UpdateEntity, READ | WRITE, **_CHANGES_GRAPH)
    yield _graph(requests.MergeEntities, READ | WRITE, **_CHANGES_GRAPH)
    yield _graph(requests.SplitEntity, READ | WRITE, **_CHANGES_GRAPH)
    yield _graph(requests.GetGraphStats)
    yield _graph(requests.ExportGraph, READ | ADMIN, concurrency=Concurrency.STREAM)
    yield _graph(requests.RebuildGraph, READ | ADMIN, **_CHANGES_GRAPH)


def _memory_rows() -> Iterable[Rpc]:
    read, write = Concurrency.READ, Concurrency.WRITE
    yield _memory(requests.Retain, WRITE, write, **_RETAINS)
    yield _memory(requests.BatchRetain, WRITE, write, size="batch_items", **_RETAINS)
    yield _memory(requests.StreamRetain, WRITE, Concurrency.STREAM, client_streaming=True, **_RETAINS)
    yield _memory(requests.GetMemory, READ, read)
    yield _memory(requests.ListMemories, READ, read, size="page_size")
    yield _memory(requests.UpdateMemory, READ | WRITE, write, limit_kind=LimitKind.RETAIN, mutates=True)
    yield _memory(requests.Recall, READ, read, size="max_results", **_RECALLS, **_BY_TEMPLATE)
    yield _memory(
        requests.BatchRecall,
        READ,
        read,
        bank="queries.bank_id",
        limit_kind=LimitKind.RECALL,
        size="batch_items",
        **_BY_TEMPLATE,
    )
    yield _memory(requests.History, READ, read, size="max_results", **_RECALLS)
    yield _memory(
        requests.Explain, READ, read, bank="query.query.bank_id", limit_kind=LimitKind.RECALL, size="explained_ids"
    )
    yield _memory(requests.Reflect, READ, Concurrency.REFLECT, **_REFLECTS, **_BY_TEMPLATE)
    yield _memory(requests.StreamReflect, READ, Concurrency.REFLECT, **_REFLECTS, **_BY_TEMPLATE)
    yield _memory(requests.Forget, FORGET, write, size="memory_ids", mutates=True)
    yield _memory(requests.UndeleteMemory, READ | ADMIN, write, mutates=True)
    yield _memory(requests.Watch, READ, Concurrency.WATCH)


def _admin_rows() -> Iterable[Rpc]:
    yield _admin(requests.CreateBank, creates=Creates.BANK, mutates=True)
    yield _admin(requests.GetBank, READ)
    yield _admin(requests.ListBanks, NO_PERMISSIONS, bank=NO_BANK, size="page_size")
    yield _admin(requests.UpdateBank, READ | ADMIN, mutates=True)
    yield _admin(requests.DeleteBank, mutates=True)
    yield _admin(requests.GetBankStats, READ)
    yield _admin(requests.GetServerInfo, NO_PERMISSIONS, bank=NO_BANK)
    yield _admin(requests.Grant, mutates=True)
    yield _admin(requests.Revoke, mutates=True)
    yield _admin(requests.ListGrants, size="page_size")
    yield _admin(requests.CheckAccess, NO_PERMISSIONS)
    yield _admin(requests.PlaceHold, size="memory_ids", mutates=True)
    yield _admin(requests.ReleaseHold, mutates=True)
    yield _admin(requests.ListHolds, size="page_size")
    yield _admin(requests.ListAuditEvents, size="page_size")
    yield _admin(requests.StartReindex, mutates=True)
    yield _admin(requests.RunLifecycle, mutates=True)
    yield _admin(requests.GetOperation)
    yield _admin(requests.ListOperations, size="page_size")
    # It may wait for minutes, and must not take a place from other administration.
    yield _admin(requests.WaitOperation, concurrency=Concurrency.WAIT, waits=True)
    yield _admin(requests.CancelOperation, mutates=True)
    # In every bank: a key can stand for any principal of the tenant.
    yield _admin(requests.CreateApiKey, bank=NO_BANK, mutates=True)
    yield _admin(requests.ListApiKeys, bank=NO_BANK)
    yield _admin(requests.RevokeApiKey, bank=NO_BANK, mutates=True)
    yield _admin(requests.ListBankTemplates, bank=NO_BANK)
    yield _admin(requests.ListBankGroups, bank=NO_BANK)
    yield _admin(requests.ListEngines, bank=NO_BANK)
    yield _admin(requests.ListSources, bank=NO_BANK)
    yield _admin(requests.ExportBank, READ | ADMIN, concurrency=Concurrency.ARCHIVE)
    yield _admin(
        requests.ImportBank,
        WRITE | ADMIN,
        concurrency=Concurrency.ARCHIVE,
        limit_kind=LimitKind.RETAIN,
        creates=Creates.BANK,
        mutates=True,
        client_streaming=True,
    )


def _agent_rows() -> Iterable[Rpc]:
    read, write = Concurrency.READ, Concurrency.WRITE
    yield _agent(requests.Remember, concurrency=write, limit_kind=LimitKind.RETAIN, mutates=True)
    yield _agent(requests.RecallAgentMemory, concurrency=read, size="max_results", limit_kind=LimitKind.RECALL)
    yield _agent(requests.ForgetAgentMemory, concurrency=write, mutates=True)
    yield _agent(requests.ListAgentMemories, concurrency=read, size="page_size")
    yield _agent(requests.ListAgents, concurrency=read, size="page_size")
    # Of every agent of the tenant.
    yield _agent(
        requests.RecanonicaliseAgentMemories, ADMIN, concurrency=Concurrency.ADMIN, size="page_size", mutates=True
    )
    yield _agent(requests.LookupTerm, concurrency=read)
    yield _agent(requests.ProposeTerm, concurrency=write, mutates=True)
    yield _agent(requests.ListTerms, concurrency=read, size="page_size")
    # In every bank: a term is the vocabulary of all agents of the tenant.
    yield _agent(requests.ReviewTerm, ADMIN, concurrency=write, mutates=True)
    # Shared documents are memories of a bank.
    yield _shared_kb(requests.SearchSharedKb, size="max_results", limit_kind=LimitKind.RECALL)
    yield _shared_kb(requests.ListSharedKb, size="page_size")
    yield _shared_kb(requests.GetSharedKbIndex)


def _knowledge_rows() -> Iterable[Rpc]:
    yield _knowledge(requests.CreateDirective, WRITE, **_RETAINS)
    yield _knowledge(requests.ListDirectives, READ, size="page_size")
    yield _knowledge(requests.DeleteDirective, WRITE | FORGET, mutates=True)
    yield _knowledge(requests.CreateObservation, READ | WRITE, size="memory_ids", **_RETAINS_THERE)
    yield _knowledge(requests.GetObservation, READ)
    yield _knowledge(requests.ListObservations, READ, size="page_size")
    yield _knowledge(requests.UpdateObservation, READ | WRITE, size="memory_ids", **_RETAINS_THERE)
    yield _knowledge(requests.DeleteObservation, FORGET, mutates=True)
    yield _knowledge(requests.InvalidateObservations, FORGET, size="memory_ids", mutates=True)
    yield _knowledge(requests.ListObservationRevisions, READ, size="page_size")
    yield _knowledge(requests.ConsolidateBank, READ | WRITE, mutates=True)
    yield _knowledge(requests.CreateMentalModel, WRITE, size="memory_ids", **_RETAINS)
    yield _knowledge(requests.GetMentalModel, READ)
    yield _knowledge(requests.ListMentalModels, READ, size="page_size")
    yield _knowledge(requests.UpdateMentalModel, READ | WRITE, size="batch_items", **_RETAINS_THERE)
    # A language model may write it.
    yield _knowledge(
        requests.RefreshMentalModel,
        READ | WRITE,
        concurrency=Concurrency.REFLECT,
        size="memory_ids",
        **_RETAINS_THERE,
    )
    yield _knowledge(requests.DeleteMentalModel, FORGET, mutates=True)
    yield _knowledge(requests.UndeleteMentalModel, READ | ADMIN, mutates=True)
    yield _knowledge(requests.ListMentalModelRevisions, READ, size="page_size")
    yield _knowledge(requests.GetMentalModelRevision, READ)
    yield _knowledge(requests.DiffMentalModelRevisions, READ)
    # A language model may judge.
    yield _knowledge(
        requests.AuditCoverage, READ, concurrency=Concurrency.REFLECT, limit_kind=LimitKind.REFLECT, size="batch_items"
    )
    # It reads up to 10,000 memories, and must not take a place from recalls.
    yield _knowledge(requests.DiagnoseBank, READ | ADMIN, concurrency=Concurrency.REFLECT)
    # A language model may write the pages that are compiled again.
    yield _knowledge(requests.RepairBank, READ | ADMIN, concurrency=Concurrency.REFLECT, mutates=True)
    # A language model may write the pages.
    yield _knowledge(requests.CompileBank, READ | WRITE, concurrency=Concurrency.REFLECT, **_RETAINS_THERE)
    yield _knowledge(requests.GetPage, READ)
    yield _knowledge(requests.ListPages, READ, size="page_size")
    yield _knowledge(requests.SearchPages, READ, size="max_results", limit_kind=LimitKind.RECALL)
    yield _knowledge(requests.ListPageRevisions, READ, size="page_size")
    yield _knowledge(requests.LintPages, READ, size="page_size")


# By the class of the request. Whoever derives from it reads it when it is built, not when it is imported.
RPCS: dict[type[Any], Rpc] = {
    rpc.request: rpc for rpc in chain(_memory_rows(), _graph_rows(), _admin_rows(), _agent_rows(), _knowledge_rows())
}
