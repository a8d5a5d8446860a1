"""Long-running operations by call: who may start, read and end them, and what they say."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from time import monotonic

from astrocyte.api.requests import (
    USUAL_WAIT_SECONDS,
    CancelOperation,
    GetOperation,
    ListOperations,
    StartReindex,
    WaitOperation,
)
from astrocyte.errors import FailedPrecondition, NotFound, ValidationError
from astrocyte.model import Bank, Caller, Operation, OperationPage, OperationState
from astrocyte.policy.auth.access_control import NO_BANK
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.operations import NewReindex, OperationStore

# Longest wait of one call: after it the caller asks again.
MOST_WAIT_SECONDS = 300.0
MOST_SAMPLE = 1_000
ID_CHARS = 64


class Operating:
    """Handlers of the RPCs on long-running operations.

    Args:
        operations: Where they are.
        parts: What the operations of the gate share.
    """

    def __init__(self, operations: OperationStore, parts: OperationParts) -> None:
        self._operations = operations
        self._store = parts.store
        self._reindexer = parts.pipelines.reindexer
        self._spaces = parts.spaces
        self._banks = parts.banks
        self._access = parts.access
        self._check = parts.check
        self._settings = parts.settings

    async def start_reindex(self, caller: Caller, request: StartReindex) -> Operation:
        """Move a bank to another embedding model."""
        bank_id, model, rollback = request.bank_id, request.embedding_model, request.rollback
        min_overlap, sample = request.min_overlap, request.sample_size
        self._banks.require(caller, "StartReindex", bank_id)
        if (model is not None) == rollback:
            wrong = "cannot be combined with rollback" if rollback else "is missing, and so is rollback"
            raise ValidationError(f"{wrong}; set exactly one of them", field="embedding_model")
        if model is not None:
            field_checks.label(model, "embedding_model", self._settings.limits.name_chars)
        if min_overlap is not None:
            field_checks.number(min_overlap, "min_overlap", 0.0, 1.0)
        if sample is not None:
            field_checks.integer(sample, "sample_size", 0, MOST_SAMPLE)
        self._check.request_id(request.request_id)
        bank = self._banks.current(caller, "StartReindex", bank_id)
        self._refuse_copies()
        self._refuse_workers()
        given = self._settings.reindex
        new = NewReindex(
            f"op-{uuid.uuid4().hex}",
            model,
            self._dimensions(bank, model),
            given.min_overlap if min_overlap is None else min_overlap,
            given.sample if sample is None else sample,
        )
        key = key_of(request.request_id, "start_reindex", bank_id, model, rollback, min_overlap, sample)
        started = await self._operations.start(bank, new, by=self._access.name(caller), request=key)
        self._reindexer.notify()
        return started

    async def get_operation(self, caller: Caller, request: GetOperation) -> Operation:
        """One operation."""
        return self._read(*self._named(caller, "GetOperation", request.bank_id, request.operation_id))

    async def list_operations(self, caller: Caller, request: ListOperations) -> OperationPage:
        """A page of operations."""
        bank_id, page_token = request.bank_id, request.page_token
        if not bank_id:
            self._access.require_pattern(caller, "ListOperations", NO_BANK)
        bank = self._banks.current(caller, "ListOperations", bank_id) if bank_id else None
        limit = self._check.page_limit(request.page_size)
        scope = ("operations", caller.tenant, bank_id, request.newest_first)
        after = decode_place(page_token, scope, newest_first=request.newest_first)
        rows = self._operations.listed(
            caller.tenant, bank=bank, after=after, limit=limit.entries + 1, newest_first=request.newest_first
        )
        operations, last = cut_page(rows, limit)
        told = tuple(map(self._told, operations))
        return OperationPage(told, "" if last is None else encode_token(scope, [last]))

    async def wait_operation(self, caller: Caller, request: WaitOperation) -> Operation:
        """An operation once it is done, or when the time is up."""
        timeout = request.timeout
        if timeout is not None:
            field_checks.number(timeout, "timeout", 0.0, MOST_WAIT_SECONDS)
        bank, name = self._named(caller, "WaitOperation", request.bank_id, request.operation_id)
        end = monotonic() + (USUAL_WAIT_SECONDS if timeout is None else timeout)
        with self._reindexer.subscribed() as changed:
            while True:
                changed.clear()
                # The caller may lose the right while it waits.
                self._access.require(caller, "WaitOperation", bank.bank_id, bank)
                operation = self._read(bank, name)
                left = end - monotonic()
                if operation.done or left <= 0:
                    return operation
                try:
                    async with asyncio.timeout(left):
                        await changed.wait()
                except TimeoutError:
                    continue

    async def cancel_operation(self, caller: Caller, request: CancelOperation) -> Operation:
        """End an operation."""
        self._check.request_id(request.request_id)
        bank, name = self._named(caller, "CancelOperation", request.bank_id, request.operation_id)
        key = key_of(request.request_id, "cancel_operation", request.bank_id, request.operation_id)
        ended = await self._operations.cancel(bank, name, by=self._access.name(caller), request=key)
        self._reindexer.notify()
        return ended

    def _named(self, caller: Caller, call: str, bank_id: str, operation_id: str) -> tuple[Bank, str]:
        self._banks.require(caller, call, bank_id)
        field_checks.label(operation_id, "operation_id", ID_CHARS)
        return self._banks.current(caller, call, bank_id), operation_id

    def _read(self, bank: Bank, operation_id: str) -> Operation:
        operation = self._operations.get(bank, operation_id)
        if operation is None:
            raise NotFound(
                f"there is no operation {operation_id!r} of bank {bank.bank_id!r}",
                metadata={"operation_id": operation_id, "bank_id": bank.bank_id},
            )
        return self._told(operation)

    def _told(self, operation: Operation) -> Operation:
        """An operation as it is told: a reindex has succeeded once recalls are answered by the new model."""
        if operation.state is OperationState.SUCCEEDED and self._reindexer.performs(operation.operation_id):
            return replace(operation, state=OperationState.RUNNING, ended_at=None, outcome=None)
        return operation

    def _dimensions(self, bank: Bank, model: str | None) -> int:
        """Those of the model, or of the one to go back to, which this server must be able to make vectors of."""
        name, field = model, "embedding_model"
        if name is None:
            former = self._operations.former(bank)
            if former is None:
                # The store says so, unless this request was answered before.
                return 0
            name, field = former[0], "rollback"
        embedder = self._spaces.embedder(name)
        if embedder is None:
            raise ValidationError(
                f"there is no embedder for {name!r}; expected one of {', '.join(self._spaces.models)}, or add an "
                "embedder to the setting embedders",
                field=field,
                metadata={"embedding_model": name},
            )
        return embedder.dimensions

    def _refuse_workers(self) -> None:
        """Refuse what one process alone would know of.

        Raises:
            FailedPrecondition: Several processes share the data directory.
        """
        if self._store.shared:
            raise FailedPrecondition(
                "a reindex needs the data directory for one process; start with server.workers 1 until it is done",
                metadata={"key": "server.workers"},
            )

    def _refuse_copies(self) -> None:
        """Refuse what would leave vectors of the former model somewhere.

        Raises:
            FailedPrecondition: An external store has copies of them, or one model alone makes those of images.
        """
        if self._settings.vector_store not in {"sqlite", "in_memory"}:
            raise FailedPrecondition(
                f"vector_store {self._settings.vector_store!r} holds copies of the vectors, which a reindex does not "
                "change; "
                "reindex without it",
                metadata={"key": "vector_store"},
            )
        if self._settings.pipeline.multimodal.mode == "multimodal_embed":
            raise FailedPrecondition(
                "banks with vectors of images and recordings cannot be reindexed; "
                "set pipeline.multimodal.mode to another one",
                metadata={"key": "pipeline.multimodal.mode"},
            )
