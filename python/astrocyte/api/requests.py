"""The request of each RPC: plain data, with the fields of its message on the wire.

A class has the name of its RPC. `Request` states what a call returns, `StreamRequest` what a stream yields. The gate
checks the fields. Common to all:

- `ValidationError` names the wrong field and means that nothing was changed.
- `BankNotFound` is raised for a bank that does not exist; a retain creates it instead where
  ``bank_defaults.auto_create`` is on.
- A ``request_id`` is a key chosen by the caller: the same id with the same request returns the first answer, the same
  id with another request raises `RequestIdReused`.
- ``validate_only`` checks the request and changes nothing: results have ``stored`` False and no error, an update
  returns the memory as it is.
- An empty ``page_token`` asks for the first page, a ``page_size`` of 0 for the default size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar, get_args, get_origin

from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    AccessCheck,
    AuditPage,
    Bank,
    BankGroup,
    BankPage,
    BankStats,
    BankTemplate,
    Change,
    EngineInfo,
    ExplainQuery,
    ExplainResult,
    ForgetResult,
    ForgetSelector,
    GrantPage,
    HistoryResult,
    Hold,
    HoldPage,
    KeyInfo,
    Memory,
    MemoryPage,
    MemoryUpdate,
    NewApiKey,
    Operation,
    OperationPage,
    Permission,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
    ServerInfo,
)
from astrocyte.model import Grant as AccessGrant

R_co = TypeVar("R_co", covariant=True)
# Of `WaitOperation`, where the caller does not say.
USUAL_WAIT_SECONDS = 30.0


class Request(Generic[R_co]):
    """A request of a call that returns ``R_co``."""

    __slots__ = ()


class StreamRequest(Generic[R_co]):
    """A request of a stream that yields ``R_co``."""

    __slots__ = ()


def response_of(request: type[Any]) -> Any:  # noqa: ANN401 - a type, or a form such as list[Bank]
    """The type that a call of this request returns, or that its stream yields.

    Raises:
        TypeError: The class does not state it.
    """
    for base in getattr(request, "__orig_bases__", ()):
        if get_origin(base) in {Request, StreamRequest}:
            return get_args(base)[0]
    raise TypeError(f"expected a subclass of Request[...] or StreamRequest[...], got {request.__name__}")


def unknown(request: object) -> TypeError:
    """The error for an object that is no request, or one of the other kind of call."""
    return TypeError(f"expected a request of astrocyte.api.requests, got {type(request).__name__}")


# Memories


@dataclass(slots=True)
class Retain(Request[RetainResult]):
    """Store one memory; durable, and found by the next recall, when the call returns."""

    bank_id: str
    item: RetainItem
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class BatchRetain(Request[list[RetainResult]]):
    """Store all items in one transaction, or none; results are in the order of the items.

    Raises:
        ValidationError: An item is wrong; ``field`` starts with ``items[i].``.
    """

    bank_id: str
    items: Sequence[RetainItem]
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class StreamRetain(Request[list[RetainResult | AstrocyteError]]):
    """Store what can be stored, each item for itself; an item's own failure stands in its place.

    ``request_ids`` is empty or has one entry, perhaps None, per item. Only what concerns all items is raised, such as a
    malformed bank id. On the wire the items and their results are a stream each.
    """

    bank_id: str
    items: Sequence[RetainItem]
    request_ids: Sequence[str | None] = ()


@dataclass(slots=True)
class GetMemory(Request[Memory]):
    """The current version of a memory.

    Raises:
        MemoryNotFound: There is none, or it was forgotten.
    """

    bank_id: str
    memory_id: str


@dataclass(slots=True)
class ListMemories(Request[MemoryPage]):
    """A page of the bank's memories in order of arrival, all pages as of the first one's position.

    A token is valid for the call that it came from, with the same filter.
    """

    bank_id: str
    tags: Sequence[str] = ()
    session_id: str | None = None
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class UpdateMemory(Request[Memory]):
    """Create a new version of a memory; the old one stays visible at an ``as_of`` before it ended.

    A repeated request returns the version that the first one created, whatever came after it.

    Raises:
        MemoryNotFound: There is none, or it was forgotten.
        Conflict: ``update.etag`` is not the current one.
    """

    bank_id: str
    update: MemoryUpdate
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class Recall(Request[RecallResult]):
    """Rank the bank's memories for a query.

    Raises:
        FailedPrecondition: ``min_position`` was not reached in time.
        DimensionMismatch: The query's vector has another size or model than the bank's.
    """

    query: RecallQuery


@dataclass(slots=True)
class BatchRecall(Request[list[RecallResult]]):
    """Answer all queries; each result equals the single call's.

    Raises:
        ValidationError: A query is wrong; ``field`` starts with ``queries[i].``.
    """

    queries: Sequence[RecallQuery]


@dataclass(slots=True)
class History(Request[HistoryResult]):
    """Recall on the bank as it was known at ``query.as_of``, which is required."""

    query: RecallQuery


@dataclass(slots=True)
class Explain(Request[ExplainResult]):
    """Where each memory fell out of a recall, and the least change of the query that would return it.

    It counts as a recall, and raises what one does.

    Raises:
        ValidationError: A position is given and the query names several banks, which have one each.
    """

    query: ExplainQuery


@dataclass(slots=True)
class Reflect(Request[ReflectResult]):
    """Answer a question from the bank's memories.

    Raises:
        CapabilityNotSupported: The mode needs a language model, and none is configured.
        ProviderUnavailable: The language model failed, and no fallback is configured.
        DeadlineExceeded: It did not answer in time, and no fallback is configured.
    """

    query: ReflectQuery


@dataclass(slots=True)
class StreamReflect(StreamRequest[str | ReflectResult]):
    """As `Reflect`: the pieces of the answer as they come, and last of all the whole result."""

    query: ReflectQuery


@dataclass(slots=True)
class Forget(Request[ForgetResult]):
    """Forget the memories that the selector matches; with ``compliance`` erase them, with a receipt.

    A plain forget can be reversed by `UndeleteMemory` until ``purge_after``. ``dry_run`` counts and changes nothing.
    """

    bank_id: str
    selector: ForgetSelector
    compliance: bool = False
    reason: str | None = None
    dry_run: bool = False
    request_id: str | None = None


@dataclass(slots=True)
class UndeleteMemory(Request[Memory]):
    """Restore a forgotten memory.

    Raises:
        MemoryNotFound: There is none of that id, it was erased, or, on a repeated request, forgotten again.
    """

    bank_id: str
    memory_id: str
    request_id: str | None = None


@dataclass(slots=True)
class Watch(StreamRequest[Change]):
    """The bank's changes after a position (None: from now on), then each as it is committed, without end.

    Ends with `BankNotFound` when the bank is deleted.
    """

    bank_id: str
    after_position: int | None = None


# Banks and the server


@dataclass(slots=True)
class CreateBank(Request[Bank]):
    """Create a bank. The embedding space is the server's unless both its name and size are given.

    Raises:
        AlreadyExists: There is a bank of that id.
    """

    bank_id: str
    display_name: str = ""
    description: str = ""
    embedding_model: str | None = None
    dimensions: int | None = None
    request_id: str | None = None


@dataclass(slots=True)
class GetBank(Request[Bank]):
    """The bank with its current position."""

    bank_id: str


@dataclass(slots=True)
class ListBanks(Request[BankPage]):
    """A page of the banks that the caller may read, by id."""

    prefix: str = ""
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class UpdateBank(Request[Bank]):
    """Change the fields that are not None.

    Raises:
        Conflict: ``etag`` is not the current one.
    """

    bank_id: str
    display_name: str | None = None
    description: str | None = None
    etag: str | None = None
    request_id: str | None = None


@dataclass(slots=True)
class DeleteBank(Request[int]):
    """Delete the bank and everything in it; returns how many memories were visible.

    A repeated request returns that count, and leaves alone a bank that was created with the same id since.
    """

    bank_id: str
    etag: str | None = None
    request_id: str | None = None


@dataclass(slots=True)
class GetBankStats(Request[BankStats]):
    """Counts of the bank, from the rows and from the index where it is loaded."""

    bank_id: str


@dataclass(slots=True)
class GetServerInfo(Request[ServerInfo]):
    """Versions, models and memory of the server."""


@dataclass(slots=True)
class ListBankTemplates(Request[list[BankTemplate]]):
    """The bank templates of the configuration, in its order."""


@dataclass(slots=True)
class ListBankGroups(Request[list[BankGroup]]):
    """The bank groups of the configuration, in its order."""


@dataclass(slots=True)
class ListEngines(Request[list[EngineInfo]]):
    """The configured engines, each asked for its health."""


# Access


@dataclass(slots=True)
class Grant(Request[AccessGrant]):
    """Add permissions to the grant of a principal on a bank.

    Both names may be patterns, in which ``*`` stands for any characters and ``?`` for one. ``permissions`` are any of
    read, write, forget and admin; ``*`` is all four. A grant holds from the next call on.

    Raises:
        AccessDenied: The caller has no admin there; for a pattern, in every bank that it may match.
        FailedPrecondition: Access control is off.
    """

    bank_id: str
    principal: str
    permissions: Sequence[str]
    request_id: str | None = None


@dataclass(slots=True)
class Revoke(Request[frozenset[Permission]]):
    """Remove permissions (none named: all) from the grant for these two names; returns those that it gave.

    It holds from the next call on, and ends open watches. Permissions of another grant, such as one of a pattern or of
    the configuration, stay. Raises what `Grant` does.
    """

    bank_id: str
    principal: str
    permissions: Sequence[str] = ()
    request_id: str | None = None


@dataclass(slots=True)
class ListGrants(Request[GrantPage]):
    """A page of the tenant's grants: those of the configuration, which have no times, then by age.

    A name keeps the grants that match it, by a pattern too; a pattern keeps those written alike. ``include_revoked``
    adds those that no longer hold. Without ``bank_id`` the caller needs admin in all banks.
    """

    bank_id: str = ""
    principal: str = ""
    include_revoked: bool = False
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class CheckAccess(Request[AccessCheck]):
    """The permissions of a principal (None: the caller) in a bank, whether it exists or not.

    Another principal than the caller needs admin there.
    """

    bank_id: str
    principal: str | None = None
    permission: str | None = None


@dataclass(slots=True)
class CreateApiKey(Request[NewApiKey]):
    """Create an API key of the caller's tenant; returns it with its secret, which is never shown again.

    A name has at most two live keys: the current one and its replacement. A repeated request returns the key that it
    created and no secret, because only its digest was kept.

    Raises:
        AccessDenied: The caller has no admin in all banks.
        FailedPrecondition: There are two, or access control is off and the caller holds no data directory.
    """

    name: str
    principal: str
    expires_at: datetime | None = None
    request_id: str | None = None


@dataclass(slots=True)
class ListApiKeys(Request[list[KeyInfo]]):
    """All API keys of the tenant that were ever created by call, by age."""


@dataclass(slots=True)
class RevokeApiKey(Request[KeyInfo]):
    """End an API key from the next call on; streams end before their next answer. Raises what `CreateApiKey` does.

    Raises:
        NotFound: The tenant has no such key.
    """

    key_id: str
    request_id: str | None = None


# Legal holds and the audit trail


@dataclass(slots=True)
class PlaceHold(Request[Hold]):
    """Protect memories from being forgotten, erased or given other content, and their bank from deletion.

    ``memory_ids`` and ``tags`` name them, also those that come later; without both it is the whole bank. None as
    ``hold_id`` generates one. It holds from the next call on, until it is released.

    Raises:
        AlreadyExists: There is, or was, a hold of that id.
        MemoryNotFound: The bank has no such memory, not even a forgotten one.
    """

    bank_id: str
    reason: str
    memory_ids: Sequence[str] = ()
    tags: Sequence[str] = ()
    hold_id: str | None = None
    request_id: str | None = None


@dataclass(slots=True)
class ReleaseHold(Request[Hold]):
    """End a hold; one that was released before stays as it is.

    Raises:
        NotFound: The bank has no such hold.
    """

    bank_id: str
    hold_id: str
    request_id: str | None = None


@dataclass(slots=True)
class ListHolds(Request[HoldPage]):
    """A page of the active holds, by age; ``include_released`` adds the released ones.

    Without ``bank_id`` the caller needs admin in all banks.
    """

    bank_id: str = ""
    include_released: bool = False
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class ListAuditEvents(Request[AuditPage]):
    """A page of the tenant's audit trail, oldest first; of one bank, or all.

    Without ``bank_id`` the caller needs admin in all banks. `astrocyte.policy.governance.audit_verification.verify`
    checks the whole trail.
    """

    bank_id: str = ""
    page_size: int = 0
    page_token: str = ""


# Long-running operations


@dataclass(slots=True)
class StartReindex(Request[Operation]):
    """Move a bank to another embedding model of this server, in the background, while it answers.

    With ``rollback`` in place of a model it returns to the previous one, whose vectors are kept for a time: only newer
    memories are embedded. Before the move both models are queried for ``sample_size`` memories; where their answers
    share less than ``min_overlap`` of the first ten memories, the bank stays as it is. None takes the settings.

    Raises:
        ValidationError: The server has no embedder of the model.
        FailedPrecondition: Another operation on the bank is not done, the bank has the model already, there is nothing
            to return to, or a setting makes copies of vectors that would not move.
    """

    bank_id: str
    embedding_model: str | None = None
    rollback: bool = False
    min_overlap: float | None = None
    sample_size: int | None = None
    request_id: str | None = None


@dataclass(slots=True)
class GetOperation(Request[Operation]):
    """An operation on a bank as it is now.

    Raises:
        NotFound: The bank has no such operation.
    """

    bank_id: str
    operation_id: str


@dataclass(slots=True)
class ListOperations(Request[OperationPage]):
    """A page of the operations of a bank, or of all of the tenant's, by age; those that are done too.

    Without ``bank_id`` the caller needs admin in all banks.
    """

    bank_id: str = ""
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class WaitOperation(Request[Operation]):
    """An operation as soon as it is done, or as it is after ``timeout`` seconds: 30 for None, and at most 300.

    Raises:
        NotFound: The bank has no such operation.
    """

    bank_id: str
    operation_id: str
    timeout: float | None = None


@dataclass(slots=True)
class CancelOperation(Request[Operation]):
    """End an operation that is not done: it has no effect from then on, and its intermediate results are dropped.

    One that is done stays as it is; ``rollback`` reverses a reindex that is done.

    Raises:
        NotFound: The bank has no such operation.
    """

    bank_id: str
    operation_id: str
    request_id: str | None = None
