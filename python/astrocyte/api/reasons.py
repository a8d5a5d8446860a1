"""Error reasons of each RPC, derived from its row and the fields of its request."""

from __future__ import annotations

from collections.abc import Callable

from astrocyte.api.rpcs import Creates, LimitKind, Rpc
from astrocyte.errors import (
    AccessDenied,
    AlreadyExists,
    AstrocyteError,
    AuthorizationError,
    BankNotFound,
    CapabilityNotSupported,
    CircuitOpen,
    Conflict,
    DeadlineExceeded,
    DimensionMismatch,
    DiskFull,
    FailedPrecondition,
    LegalHoldActive,
    LimitReached,
    MemoryNotFound,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    ProviderUnavailable,
    QuotaExceeded,
    RateLimited,
    RequestIdReused,
    StoreError,
    Unavailable,
    ValidationError,
)

# Reasons of every call: they depend on the server, the connection or the form of the request.
COMMON: tuple[type[AstrocyteError], ...] = (
    AstrocyteError,
    ValidationError,
    AuthorizationError,
    AccessDenied,
    RateLimited,
    CapabilityNotSupported,
    StoreError,
    DeadlineExceeded,
    Unavailable,
    MessageTooLarge,
)
# Ids in requests that name neither a bank, nor a memory, nor a resource: of the request itself, and a filter.
OTHER_IDS = frozenset({"bank_id", "memory_id", "request_id", "session_id"})
# Calls that delete or replace what a legal hold protects. Their rows do not show it.
HELD = frozenset(
    {
        "BatchRetain",
        "CreateMentalModel",
        "DeleteBank",
        "DeleteDirective",
        "DeleteEntityLink",
        "DeleteMentalModel",
        "DeleteObservation",
        "Forget",
        "ImportBank",
        "InvalidateObservations",
        "RefreshMentalModel",
        "Retain",
        "SplitEntity",
        "StartReindex",
        "StreamRetain",
        "UpdateMemory",
        "UpdateMentalModel",
        "UpdateObservation",
    }
)
# Calls that name entities in a list.
ENTITIES = frozenset({"CreateEntityLink", "Neighbors"})
# Calls that refuse what exists already, besides those that create a bank.
UNIQUE = frozenset(
    {"CreateDirective", "CreateEntityLink", "CreateMentalModel", "CreateObservation", "ImportBank", "PlaceHold"}
)
# Calls that store texts of a caller beside memories.
SCREENED = frozenset(
    {
        "CreateDirective",
        "CreateEntityLink",
        "CreateMentalModel",
        "CreateObservation",
        "MergeEntities",
        "RecallAgentMemory",
        "RefreshMentalModel",
        "Remember",
        "SplitEntity",
        "UpdateEntity",
        "UpdateMentalModel",
        "UpdateObservation",
    }
)
# Calls that name the memories that knowledge rests on.
SOURCED = frozenset({"CreateMentalModel", "CreateObservation", "UpdateMentalModel", "UpdateObservation"})
# Calls that read the graph only: they search by no vector and ask no model.
GRAPH_READS = frozenset({"FindPath", "Neighbors", "SearchEntities"})
# Calls that change nothing and need a place to write: for a row of the audit log, or for keys.
RECORDED = frozenset({"ExportBank", "ExportGraph", "ListApiKeys"})
# Calls that use a model or an engine although they have no rate limit.
PROVIDED = frozenset({"DeleteBank", "Forget", "RecanonicaliseAgentMemories", "UndeleteMemory"})


def _has(*names: str) -> Callable[[Rpc], bool]:
    return lambda rpc: not rpc.fields.isdisjoint(names)


def _named(names: frozenset[str]) -> Callable[[Rpc], bool]:
    return lambda rpc: rpc.name in names


def _limited(*kinds: LimitKind) -> Callable[[Rpc], bool]:
    return lambda rpc: rpc.limit_kind in kinds


def _searches(rpc: Rpc) -> bool:
    """True for calls that store or search memories, with a model or an engine."""
    return rpc.limit_kind is not None and rpc.name not in GRAPH_READS


def _names_resource(rpc: Rpc) -> bool:
    return any(name.endswith("_id") and name not in OTHER_IDS for name in rpc.fields) or rpc.name in ENTITIES


# Further reasons, each with its condition.
RULES: tuple[tuple[type[AstrocyteError], Callable[[Rpc], bool]], ...] = (
    (BankNotFound, lambda rpc: bool(rpc.bank)),
    (MemoryNotFound, lambda rpc: _has("memory_id", "memory_ids", "update")(rpc) or rpc.name in SOURCED),
    (NotFound, _names_resource),
    (AlreadyExists, lambda rpc: (rpc.creates is Creates.BANK and rpc.limit_kind is None) or rpc.name in UNIQUE),
    (Conflict, _has("etag", "update", "item", "items")),
    (RequestIdReused, _has("request_id", "request_ids")),
    (FailedPrecondition, lambda rpc: rpc.mutates or _searches(rpc) or rpc.name in RECORDED),
    (LegalHoldActive, _named(HELD)),
    (PiiRejected, lambda rpc: _searches(rpc) or rpc.name in SCREENED),
    (DimensionMismatch, lambda rpc: _searches(rpc) or rpc.name == "CreateBank"),
    (ProviderUnavailable, lambda rpc: _searches(rpc) or rpc.name in PROVIDED | SCREENED),
    (CircuitOpen, lambda rpc: _searches(rpc) or rpc.name in PROVIDED | SCREENED),
    (LimitReached, _limited(*LimitKind)),
    (QuotaExceeded, _limited(LimitKind.RETAIN)),
    (DiskFull, lambda rpc: rpc.mutates or rpc.name in {"ExportBank", "ExportGraph"}),
)


def further_reasons(rpc: Rpc) -> frozenset[str]:
    """The reasons of an RPC besides those of `COMMON`."""
    return frozenset(kind.reason for kind, applies in RULES if applies(rpc))


def reasons_of(rpc: Rpc) -> frozenset[str]:
    """All reasons of an RPC."""
    return frozenset(kind.reason for kind in COMMON) | further_reasons(rpc)
