"""The one door to the pipelines: every call is checked here, in one order, whichever front door it came through.

1. access (`access`): the caller may do this in the bank that it names, before anything tells whether there is one;
2. rates and daily quotas (`limits`);
3. shape and limits (`validation`): bad input changes nothing;
4. the bank: it exists, or a write may make it;
5. the request id: a repeated request gets its first answer;
6. the pipeline.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from astrocyte.errors import AstrocyteError, MemoryNotFound, ValidationError
from astrocyte.model import (
    Bank,
    Caller,
    Change,
    ExplainQuery,
    ExplainResult,
    ForgetResult,
    ForgetSelector,
    HistoryResult,
    Memory,
    MemoryPage,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
)
from astrocyte.policy.administration import Administration
from astrocyte.policy.auth.api_keys import Keys
from astrocyte.policy.auth.grants import Granting
from astrocyte.policy.engines.registry import Engines
from astrocyte.policy.governance.legal_holds import Holding
from astrocyte.policy.limits.rate_limits import Demand, Operation
from astrocyte.policy.operations.explain import Explaining
from astrocyte.policy.operations.long_running import Operating
from astrocyte.policy.operations.parts import GateParts, operation_parts
from astrocyte.policy.operations.recall import Recalling
from astrocyte.policy.operations.reflect import Reflecting
from astrocyte.policy.operations.retain import Retaining
from astrocyte.policy.operations.retain_group import GroupRetaining
from astrocyte.policy.permissions import FORGET_ALL
from astrocyte.policy.requests.idempotency import key_of
from astrocyte.policy.requests.page_tokens import decode_token, encode_token
from astrocyte.policy.requests.validation import LARGEST_POSITION


class Gate(Administration):
    """Implements `astrocyte.policy.backend.Backend` in process; see there for what each method does and raises."""

    def __init__(self, parts: GateParts) -> None:
        shared = operation_parts(parts)
        self._store = parts.store
        self._registry = parts.registry
        self._pipelines = parts.pipelines
        self._policies = policies = parts.policies
        self._info = parts.info
        self._executor = parts.executor
        self._lifecycle = parts.lifecycle
        self._check = shared.check
        self._bank_sets = shared.bank_sets
        self._access = shared.access
        self._banks = shared.banks
        self._limits = policies.limits
        self._barriers = policies.barriers
        self._overrides = policies.overrides
        self._engine_writing = shared.engine_writes
        self.keys = Keys(parts.keys, shared.access, shared.check, parts.clock)
        self._granting = Granting(parts.grants, shared.access, shared.check)
        self._holding = Holding(
            parts.holds, parts.audit, shared.banks, shared.access, shared.check, parts.settings.limits
        )
        self._operating = Operating(parts.operations, shared)
        self._retaining = Retaining(shared)
        self._group_retaining = GroupRetaining(shared, self._retaining)
        self._recalling = Recalling(shared)
        self._explaining = Explaining(shared)
        self._reflecting = Reflecting(shared, self._recalling.evidence)

    @property
    def engines(self) -> Engines:
        """The engines beside the pipeline."""
        return self._policies.engines

    async def retain(
        self,
        caller: Caller,
        bank_id: str,
        item: RetainItem,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> RetainResult:
        """Store one memory."""
        return await self._retaining.one(caller, bank_id, item, request_id=request_id, validate_only=validate_only)

    async def retain_batch(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> list[RetainResult]:
        """Store all items, or none."""
        return await self._retaining.batch(caller, bank_id, items, request_id=request_id, validate_only=validate_only)

    async def retain_many(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_ids: Sequence[str | None] = (),
    ) -> list[RetainResult | AstrocyteError]:
        """Store what can be stored."""
        return await self._group_retaining.many(caller, bank_id, items, request_ids=request_ids)

    async def recall(self, caller: Caller, query: RecallQuery) -> RecallResult:
        """Rank the bank's memories for a query."""
        return await self._recalling.one(caller, "Recall", query)

    async def recall_batch(self, caller: Caller, queries: Sequence[RecallQuery]) -> list[RecallResult]:
        """Answer all queries, or fail with the first that cannot be answered."""
        return await self._recalling.batch(caller, queries)

    async def history(self, caller: Caller, query: RecallQuery) -> HistoryResult:
        """Recall as of an instant."""
        return await self._recalling.history(caller, query)

    async def explain(self, caller: Caller, asked: ExplainQuery) -> ExplainResult:
        """Tell what became of memories in a recall."""
        return await self._explaining.run(caller, asked)

    async def reflect(self, caller: Caller, query: ReflectQuery) -> ReflectResult:
        """Answer a question from memory."""
        return await self._reflecting.one(caller, query)

    def reflect_stream(self, caller: Caller, query: ReflectQuery) -> AsyncIterator[str | ReflectResult]:
        """Answer a question from memory, in pieces."""
        return self._reflecting.stream(caller, query)

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
        """Forget what the selector meets, or erase it."""
        operation = FORGET_ALL if selector.scope else "Forget"
        self._banks.require(caller, operation, bank_id)
        selector = self._check.selector(selector)
        self._check.reason(reason)
        self._check.request_id(request_id)
        bank = self._banks.handle(caller, operation, bank_id)
        pipeline = self._pipelines.forget
        engines = self._engine_writing
        if dry_run:
            result = await self._in_executor(pipeline.preview, bank, selector, compliance=compliance)
            return await engines.forget(caller, bank, selector, result, compliance=compliance, reason=reason)
        engines.check_forget(caller, bank_id)
        request = key_of(request_id, "erase" if compliance else "forget", bank_id, selector, reason)
        work = pipeline.erase if compliance else pipeline.forget
        name = self._access.name(caller)
        copies = engines.order(caller, bank_id)
        async with engines.turn(caller, bank_id):
            result = await work(bank, selector, reason=reason or "", principal=name, request=request, copies=copies)
            return await engines.forget(caller, bank, selector, result, compliance=compliance, reason=reason)

    async def undelete(self, caller: Caller, bank_id: str, memory_id: str, *, request_id: str | None = None) -> Memory:
        """Bring a forgotten memory back."""
        self._banks.require(caller, "UndeleteMemory", bank_id)
        self._check.memory_id(memory_id)
        self._check.request_id(request_id)
        request = key_of(request_id, "undelete", bank_id, memory_id)
        bank = self._banks.handle(caller, "UndeleteMemory", bank_id)
        copies = self._engine_writing.order(caller, bank_id)
        name = self._access.name(caller)
        memory = await self._pipelines.forget.undelete(bank, memory_id, name, request, copies)
        await self._engine_writing.changed(caller, bank, memory, "UndeleteMemory")
        return memory

    async def get_memory(self, caller: Caller, bank_id: str, memory_id: str) -> Memory:
        """The current version of a memory."""
        self._banks.require(caller, "GetMemory", bank_id)
        self._check.memory_id(memory_id)
        memory = self._store.memory(self._banks.handle(caller, "GetMemory", bank_id), memory_id)
        if memory is None:
            raise MemoryNotFound(memory_id, bank_id)
        return memory

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
        """A page of memories."""
        self._banks.require(caller, "ListMemories", bank_id)
        self._check.listing(tags, session_id)
        limit = self._check.page_size(page_size)
        bank = self._banks.current(caller, "ListMemories", bank_id)
        scope = ("memories", caller.tenant, bank.key, tuple(tags), session_id)
        position, after = decode_token(page_token, scope, int, 2) if page_token else (bank.position, 0)
        if not (0 <= position <= bank.position and 0 <= after <= LARGEST_POSITION):
            raise ValidationError("names a position that the bank has not reached; start again", field="page_token")

        def read() -> tuple[list[tuple[int, Memory]], int]:
            return self._store.list_memories(
                bank, tags=tags, session_id=session_id, at_position=position, after=after, limit=limit + 1
            )

        rows, total = await self._in_executor(read)
        token = encode_token(scope, [position, rows[limit - 1][0]]) if len(rows) > limit else ""
        return MemoryPage(tuple(memory for _, memory in rows[:limit]), token, position, total)

    async def update_memory(
        self,
        caller: Caller,
        bank_id: str,
        update: MemoryUpdate,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> Memory:
        """Make a new version of a memory."""
        self._banks.require(caller, "UpdateMemory", bank_id)
        await self._limits.admit((Demand(caller.tenant, bank_id, Operation.RETAIN),))
        homeostasis = self._overrides.of[bank_id].homeostasis
        self._check.update(update, homeostasis.retain_max_content_bytes)
        self._check.request_id(request_id)
        bank = self._banks.handle(caller, "UpdateMemory", bank_id)
        request = key_of(request_id, "update", bank_id, update)
        update = await self._barriers.update(bank_id, update, quiet=validate_only)
        if validate_only:
            await self._pipelines.update.check(bank, update)
            return await self.get_memory(caller, bank_id, update.memory_id)
        limit = homeostasis.quotas.storage_bytes_per_bank
        growth = 0 if limit is None else self._growth(bank, update)
        async with self._policies.storage.room(bank, growth, limit):
            memory = await self._pipelines.update.run(
                bank, update, request, self._engine_writing.order(caller, bank_id)
            )
        await self._engine_writing.changed(caller, bank, memory, "UpdateMemory")
        return memory

    def _growth(self, bank: Bank, update: MemoryUpdate) -> int:
        """How many bytes of content the bank gains by an update, or loses."""
        if "content" not in update.fields:
            return 0
        memory = self._store.memory(bank, update.memory_id)
        return len(update.content.encode()) - (len(memory.content.encode()) if memory is not None else 0)

    def watch(self, caller: Caller, bank_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """The bank's changes, as they come."""
        return self._banks.watch(caller, bank_id, after=after)

    async def close(self) -> None:
        """Release everything that was built for this gate, when the deletions that were begun have ended."""
        await self._banks.settle()
        await self._lifecycle.close()
