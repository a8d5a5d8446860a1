"""The surface that every front door speaks: the gate implements it in process, the client over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Protocol

from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    AccessCheck,
    AuditPage,
    Bank,
    BankGroup,
    BankPage,
    BankStats,
    BankTemplate,
    Caller,
    Change,
    EngineInfo,
    ExplainQuery,
    ExplainResult,
    ForgetResult,
    ForgetSelector,
    Grant,
    GrantPage,
    HistoryResult,
    Hold,
    HoldPage,
    KeyInfo,
    Memory,
    MemoryPage,
    MemoryUpdate,
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


class Backend(Protocol):
    """All operations, in domain types. Every method checks its arguments before it does anything.

    Common to all: `ValidationError` names the field that is wrong and means that nothing was changed; `BankNotFound`
    is raised for a bank that does not exist (retain makes it instead, where ``bank_defaults.auto_create`` is on). A
    ``request_id`` is a key chosen by the client, a UUID for choice: the same id with the same request answers what it
    answered before, with another request it raises `RequestIdReused`. ``validate_only`` checks the request and changes
    nothing: results have ``stored`` False and no error, an update answers the memory as it is. A remote backend
    takes tenant and principal from its credential and refuses a ``caller`` that says otherwise.
    """

    async def retain(
        self,
        caller: Caller,
        bank_id: str,
        item: RetainItem,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> RetainResult:
        """Store one memory; durable, and found by the next recall, when this returns."""

    async def retain_batch(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> list[RetainResult]:
        """Store all items in one transaction, or none; results in the order of the items.

        Raises:
            ValidationError: An item is wrong; ``field`` starts with ``items[i].``.
        """

    async def retain_many(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_ids: Sequence[str | None] = (),
    ) -> list[RetainResult | AstrocyteError]:
        """Store what can be stored, each item for itself; an item's own failure stands in its place.

        ``request_ids`` is empty or has one entry (perhaps None) per item. Raises only what concerns all items, such
        as a bank id that is not one.
        """

    async def recall(self, caller: Caller, query: RecallQuery) -> RecallResult:
        """Rank the bank's memories for a query.

        Raises:
            FailedPrecondition: ``min_position`` was not reached in time.
            DimensionMismatch: The query's vector is of another size or model than the bank's.
        """

    async def recall_batch(self, caller: Caller, queries: Sequence[RecallQuery]) -> list[RecallResult]:
        """Answer all queries; each result equals the single call's.

        Raises:
            ValidationError: A query is wrong; ``field`` starts with ``queries[i].``.
        """

    async def history(self, caller: Caller, query: RecallQuery) -> HistoryResult:
        """Recall on the bank as it was known at ``query.as_of``, which is required."""

    async def explain(self, caller: Caller, asked: ExplainQuery) -> ExplainResult:
        """Where each memory fell out of a recall, and the least change of the query that would return it.

        It counts as a recall, and raises what one does.

        Raises:
            ValidationError: A position is given, and the query names several banks, which have one each.
        """

    async def reflect(self, caller: Caller, query: ReflectQuery) -> ReflectResult:
        """Answer a question from the bank's memories.

        Raises:
            CapabilityNotSupported: The mode needs a language model, and there is none.
            ProviderUnavailable: The language model failed, and the settings name nothing to fall back on.
            DeadlineExceeded: It did not answer in time, and the settings name nothing to fall back on.
        """

    def reflect_stream(self, caller: Caller, query: ReflectQuery) -> AsyncIterator[str | ReflectResult]:
        """As `reflect`: the pieces of the answer as they come, and last of all the whole result."""

    async def forget(  # noqa: PLR0913 - each is a part of the request that no other call has
        self,
        caller: Caller,
        bank_id: str,
        selector: ForgetSelector,
        *,
        compliance: bool = False,
        reason: str | None = None,
        dry_run: bool = False,
        request_id: str | None = None,
    ) -> ForgetResult:
        """Forget what the selector meets; with ``compliance`` erase it for good, with a receipt.

        A plain forget can be taken back by `undelete` until ``purge_after``. ``dry_run`` counts and changes nothing.
        """

    async def undelete(self, caller: Caller, bank_id: str, memory_id: str, *, request_id: str | None = None) -> Memory:
        """Bring a forgotten memory back.

        Raises:
            MemoryNotFound: There is none of that id, it was erased, or, on a repeated request, forgotten again.
        """

    async def get_memory(self, caller: Caller, bank_id: str, memory_id: str) -> Memory:
        """The current version of a memory.

        Raises:
            MemoryNotFound: There is none, or it was forgotten.
        """

    async def list_memories(
        self,
        caller: Caller,
        bank_id: str,
        *,
        tags: Sequence[str] = (),
        session_id: str | None = None,
        page_size: int = 0,
        page_token: str = "",
    ) -> MemoryPage:
        """A page of the bank's memories in order of arrival, all pages as of the first one's position.

        ``page_size`` 0 takes the default. A token is good for the call that it came from, with the same filter.
        """

    async def update_memory(
        self,
        caller: Caller,
        bank_id: str,
        update: MemoryUpdate,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> Memory:
        """Make a new version of a memory; the old one stays visible at an ``as_of`` before it ended.

        A repeated request answers the version that the first one made, whatever came after it.

        Raises:
            MemoryNotFound: There is none, or it was forgotten.
            Conflict: ``update.etag`` is not the current one.
        """

    def watch(self, caller: Caller, bank_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """The bank's changes after a position (None: from now on), then each as it is committed, without end.

        Ends with `BankNotFound` when the bank is deleted.
        """

    async def create_bank(  # noqa: PLR0913 - what a bank is made of, and the request's key
        self,
        caller: Caller,
        bank_id: str,
        *,
        display_name: str = "",
        description: str = "",
        embedding_model: str | None = None,
        dimensions: int | None = None,
        request_id: str | None = None,
    ) -> Bank:
        """Create a bank. The embedding space is the server's unless both its name and size are given.

        Raises:
            AlreadyExists: There is a bank of that id.
        """

    async def get_bank(self, caller: Caller, bank_id: str) -> Bank:
        """The bank with its current position."""

    async def list_banks(
        self, caller: Caller, *, prefix: str = "", page_size: int = 0, page_token: str = ""
    ) -> BankPage:
        """A page of the caller's banks by id. ``page_size`` 0 takes the default."""

    async def update_bank(
        self,
        caller: Caller,
        bank_id: str,
        *,
        display_name: str | None = None,
        description: str | None = None,
        etag: str | None = None,
        request_id: str | None = None,
    ) -> Bank:
        """Change what is not None.

        Raises:
            Conflict: ``etag`` is not the current one.
        """

    async def delete_bank(
        self, caller: Caller, bank_id: str, *, etag: str | None = None, request_id: str | None = None
    ) -> int:
        """Delete the bank and everything in it; returns how many memories were visible.

        A repeated request answers that count, and leaves a bank alone that was made of the same id since.
        """

    async def bank_stats(self, caller: Caller, bank_id: str) -> BankStats:
        """Counts of the bank, from the rows and from the index where it is loaded."""

    async def server_info(self, caller: Caller) -> ServerInfo:
        """What runs."""

    async def grant(
        self, caller: Caller, bank_id: str, principal: str, permissions: Sequence[str], *, request_id: str | None = None
    ) -> Grant:
        """Add permissions of a principal on a bank to those it has by a grant for the same two names.

        Both may be patterns, in which ``*`` stands for any characters and ``?`` for one. ``permissions`` are any of
        read, write, forget and admin; ``*`` is all four. It holds from the next call on.

        Raises:
            AccessDenied: The caller has no admin there; for a pattern, in every bank that it may mean.
            FailedPrecondition: Access control is off.
        """

    async def revoke(
        self,
        caller: Caller,
        bank_id: str,
        principal: str,
        permissions: Sequence[str] = (),
        *,
        request_id: str | None = None,
    ) -> frozenset[Permission]:
        """Take permissions (none named: all) of the grant for these two names; returns those that it gave.

        It holds from the next call on, and ends open watches. What another grant gives, such as one of a pattern or of
        the configuration, stays. Raises what `grant` does.
        """

    async def list_grants(
        self,
        caller: Caller,
        *,
        bank_id: str = "",
        principal: str = "",
        revoked: bool = False,
        page_size: int = 0,
        page_token: str = "",
    ) -> GrantPage:
        """A page of the tenant's grants: those of the configuration, which have no times, then by age.

        A name keeps the grants that mean it, by a pattern too; a pattern keeps those written alike. ``revoked`` shows
        those that no longer hold as well. Without ``bank_id`` the caller needs admin in all banks.
        """

    async def create_api_key(
        self,
        caller: Caller,
        name: str,
        principal: str,
        *,
        expires_at: datetime | None = None,
        request_id: str | None = None,
    ) -> tuple[KeyInfo, str]:
        """Make an API key of the caller's tenant; returns it with the key itself, which is never shown again.

        A name has at most two live keys: the one in use, and the one that takes its place. A repeated request answers
        the key that it made, and no secret, for only its digest was kept.

        Raises:
            AccessDenied: The caller has no admin in all banks.
            FailedPrecondition: There are two, or access control is off and the caller holds no data directory.
        """

    async def list_bank_templates(self, caller: Caller) -> list[BankTemplate]:
        """The bank templates of the configuration, in its order; for callers with admin in all banks."""

    async def list_bank_groups(self, caller: Caller) -> list[BankGroup]:
        """The bank groups of the configuration, in its order; for callers with admin in all banks."""

    async def list_engines(self, caller: Caller) -> list[EngineInfo]:
        """The engines that stand beside banks, each asked how it is; for callers with admin in all banks."""

    async def list_api_keys(self, caller: Caller) -> list[KeyInfo]:
        """All API keys of the tenant that were ever made by call, by age."""

    async def revoke_api_key(self, caller: Caller, key_id: str, *, request_id: str | None = None) -> KeyInfo:
        """End an API key from the next call on; streams end before their next answer. Raises what making one does.

        Raises:
            NotFound: The tenant has no such key.
        """

    async def check_access(
        self, caller: Caller, bank_id: str, *, principal: str | None = None, permission: str | None = None
    ) -> AccessCheck:
        """What a principal (None: the caller) may do in a bank, whether it exists or not.

        Asking about somebody else needs admin there.
        """

    async def place_hold(  # noqa: PLR0913 - the parts of a hold, and the request's key
        self,
        caller: Caller,
        bank_id: str,
        *,
        reason: str,
        memory_ids: Sequence[str] = (),
        tags: Sequence[str] = (),
        hold_id: str | None = None,
        request_id: str | None = None,
    ) -> Hold:
        """Keep memories from being forgotten, erased or given other content, and their bank from being deleted.

        ``memory_ids`` and ``tags`` name them, also those that come later; without both it is the whole bank. None as
        ``hold_id`` makes one up. It holds from the next call on, until it is released.

        Raises:
            AlreadyExists: There is, or was, a hold of that id.
            MemoryNotFound: The bank has no such memory, not even a forgotten one.
        """

    async def release_hold(self, caller: Caller, bank_id: str, hold_id: str, *, request_id: str | None = None) -> Hold:
        """End a hold; one that was released before stays as it is.

        Raises:
            NotFound: The bank has no such hold.
        """

    async def list_holds(
        self, caller: Caller, *, bank_id: str = "", released: bool = False, page_size: int = 0, page_token: str = ""
    ) -> HoldPage:
        """A page of the holds that stand, by age; with ``released`` those that no longer do as well.

        Without ``bank_id`` the caller needs admin in all banks.
        """

    async def list_audit_events(
        self, caller: Caller, *, bank_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> AuditPage:
        """A page of the tenant's trail, oldest first; of one bank, or all.

        Without ``bank_id`` the caller needs admin in all banks.
        `astrocyte.policy.governance.audit_verification.verify` checks the whole trail.
        """

    async def start_reindex(  # noqa: PLR0913 - the parts of a reindex, and the request's key
        self,
        caller: Caller,
        bank_id: str,
        *,
        embedding_model: str | None = None,
        rollback: bool = False,
        min_overlap: float | None = None,
        sample: int | None = None,
        request_id: str | None = None,
    ) -> Operation:
        """Move a bank to another embedding model of this server, in the background, while it answers.

        With ``rollback`` in place of a model it goes back to the one before, whose vectors are kept for a time: only
        what came since is embedded. Before the move ``sample`` memories are looked for by both models; where their
        answers share less than ``min_overlap`` of the first ten memories, the bank stays as it is. None takes the
        settings.

        Raises:
            ValidationError: The server makes no vectors of the model.
            FailedPrecondition: Another operation on the bank is not done, the bank has the model already, there is
                nothing to go back to, or a setting makes copies of vectors that would not move.
        """

    async def get_operation(self, caller: Caller, bank_id: str, operation_id: str) -> Operation:
        """An operation on a bank as it is now.

        Raises:
            NotFound: The bank has no such operation.
        """

    async def list_operations(
        self, caller: Caller, *, bank_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> OperationPage:
        """A page of the operations of a bank, or of all of the tenant's, by age; those that are done too.

        Without ``bank_id`` the caller needs admin in all banks.
        """

    async def wait_operation(
        self, caller: Caller, bank_id: str, operation_id: str, *, timeout_seconds: float | None = None
    ) -> Operation:
        """An operation as soon as it is done, or as it is when the time is up: 30 s for None, and at most 300 s.

        Raises:
            NotFound: The bank has no such operation.
        """

    async def cancel_operation(
        self, caller: Caller, bank_id: str, operation_id: str, *, request_id: str | None = None
    ) -> Operation:
        """End an operation that is not done: from then on nothing comes of it, and what it made is dropped.

        One that is done stays as it is; from a move that is done, ``rollback`` leads back.

        Raises:
            NotFound: The bank has no such operation.
        """

    async def close(self) -> None:
        """Finish what was begun and release everything."""
