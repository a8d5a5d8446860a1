"""Single memories: read, list, update, forget and undelete."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import replace

from astrocyte.api import LimitKind
from astrocyte.api.requests import Forget, GetMemory, ListMemories, UndeleteMemory, UpdateMemory
from astrocyte.errors import MemoryNotFound, ValidationError
from astrocyte.model import Bank, Caller, ForgetResult, Memory, MemoryPage, MemoryUpdate
from astrocyte.pipelines.text import mail
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.permissions import FORGET_ALL
from astrocyte.policy.requests.composed_text import composed, composed_name
from astrocyte.policy.requests.page_tokens import LARGEST_POSITION, decode_token, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of


class Memories:
    """Handlers of GetMemory, ListMemories, UpdateMemory, Forget and UndeleteMemory.

    Args:
        parts: The parts that the operations share.
        executor: Runs reads that are too long for the event loop.
    """

    def __init__(self, parts: OperationParts, executor: Executor) -> None:
        self._store = parts.store
        self._banks = parts.banks
        self._update = parts.pipelines.update
        self._forget = parts.pipelines.forget
        self._check = parts.check
        self._access = parts.access
        self._policies = parts.policies
        self._engines = parts.engine_writes
        self._executor = executor

    async def get_memory(self, caller: Caller, request: GetMemory) -> Memory:
        """The current version of a memory."""
        bank_id, memory_id = request.bank_id, request.memory_id
        self._banks.require(caller, "GetMemory", bank_id)
        self._check.memory_id(memory_id)
        return self._current(self._banks.handle(caller, "GetMemory", bank_id), memory_id)

    async def list_memories(self, caller: Caller, request: ListMemories) -> MemoryPage:
        """A page of memories."""
        bank_id, tags, session_id = request.bank_id, request.tags, request.session_id
        self._banks.require(caller, "ListMemories", bank_id)
        self._check.listing(tags, session_id)
        if not isinstance(request.archived, bool):
            raise ValidationError(f"expected true or false, got {request.archived!r:.40}", field="archived")
        archived = request.archived
        tags = [composed_name(tag) for tag in tags]
        session_id = None if session_id is None else composed_name(session_id)
        limit = self._check.page_limit(request.page_size)
        bank = self._banks.current(caller, "ListMemories", bank_id)
        scope = ("memories", caller.tenant, bank.key, tuple(tags), session_id, archived)
        position, after = bank.position, 0
        if request.page_token:
            position, after = decode_token(request.page_token, scope, int, 2)
        if not (0 <= position <= bank.position and 0 <= after <= LARGEST_POSITION):
            raise ValidationError(
                "names a position that the bank has not reached; request the first page again", field="page_token"
            )

        def read() -> MemoryPage:
            rows, total = self._store.list_memories(
                bank,
                tags=tags,
                session_id=session_id,
                at_position=position,
                after=after,
                limit=limit.entries + 1,
                # No more is read than the page holds, and one memory to know that the list goes on.
                content_chars=limit.size_bytes,
                archived=archived,
            )
            memories, last = cut_page(rows, limit)
            token = "" if last is None else encode_token(scope, [position, last])
            return MemoryPage(memories, token, position, total)

        return await asyncio.get_running_loop().run_in_executor(self._executor, read)

    async def update_memory(self, caller: Caller, request: UpdateMemory) -> Memory:
        """Create a new version of a memory."""
        bank_id, update = request.bank_id, request.update
        self._banks.require(caller, "UpdateMemory", bank_id)
        await self._policies.limits.admit((Demand(caller.tenant, bank_id, LimitKind.RETAIN),))
        homeostasis = self._policies.overrides.of[bank_id].homeostasis
        self._check.update(update, homeostasis.retain_max_content_bytes)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, "UpdateMemory", bank_id)
        key = key_of(request.request_id, "update", bank_id, update)
        update = composed(self._decoded(bank, update))
        update = await self._policies.barriers.update(bank_id, update, quiet=request.validate_only)
        if request.validate_only:
            await self._update.check(bank, update)
            return self._current(bank, update.memory_id)
        limit = homeostasis.quotas.storage_bytes_per_bank
        growth = 0 if limit is None else self._growth(bank, update)
        async with self._policies.storage.room(bank, growth, limit):
            memory = await self._update.run(bank, update, key, self._engines.order(caller, bank_id))
        await self._engines.changed(caller, bank, memory, "UpdateMemory")
        return memory

    def _decoded(self, bank: Bank, update: MemoryUpdate) -> MemoryUpdate:
        """The update, the content of a mail decoded, as that of a retained one is."""
        if "content" not in update.fields or (content := mail.decoded(update.content)) == update.content:
            return update
        memory = self._store.memory(bank, update.memory_id)
        is_mail = memory is not None and memory.content_type == mail.CONTENT_TYPE
        return replace(update, content=content) if is_mail else update

    async def forget(self, caller: Caller, request: Forget) -> ForgetResult:
        """Forget the memories that the selector matches, or erase them."""
        bank_id, compliance, reason = request.bank_id, request.compliance, request.reason
        operation = FORGET_ALL if request.selector.scope else "Forget"
        self._banks.require(caller, operation, bank_id)
        selector = composed(self._check.selector(request.selector))
        self._check.reason(reason)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, operation, bank_id)
        engines = self._engines
        if request.dry_run:
            result = await asyncio.get_running_loop().run_in_executor(
                self._executor, lambda: self._forget.preview(bank, selector, compliance=compliance)
            )
            return await engines.forget(caller, bank, selector, result, compliance=compliance, reason=reason)
        engines.check_forget(caller, bank_id)
        key = key_of(request.request_id, "erase" if compliance else "forget", bank_id, selector, reason)
        work = self._forget.erase if compliance else self._forget.forget
        name = self._access.name(caller)
        copies = engines.order(caller, bank_id)
        async with engines.turn(caller, bank_id):
            result = await work(bank, selector, reason=reason or "", principal=name, request=key, copies=copies)
            return await engines.forget(caller, bank, selector, result, compliance=compliance, reason=reason)

    async def undelete_memory(self, caller: Caller, request: UndeleteMemory) -> Memory:
        """Bring a forgotten memory back, or restore an archived one."""
        bank_id, memory_id = request.bank_id, request.memory_id
        self._banks.require(caller, "UndeleteMemory", bank_id)
        self._check.memory_id(memory_id)
        self._check.request_id(request.request_id)
        key = key_of(request.request_id, "undelete", bank_id, memory_id)
        bank = self._banks.handle(caller, "UndeleteMemory", bank_id)
        copies = self._engines.order(caller, bank_id)
        memory = await self._forget.undelete(bank, memory_id, self._access.name(caller), key, copies)
        await self._engines.changed(caller, bank, memory, "UndeleteMemory")
        return memory

    def _current(self, bank: Bank, memory_id: str) -> Memory:
        memory = self._store.memory(bank, memory_id)
        if memory is None:
            raise MemoryNotFound(memory_id, bank.bank_id)
        return memory

    def _growth(self, bank: Bank, update: MemoryUpdate) -> int:
        """Bytes of content that the bank gains by an update; negative where it loses some."""
        if "content" not in update.fields:
            return 0
        memory = self._store.memory(bank, update.memory_id)
        return len(update.content.encode()) - (len(memory.content.encode()) if memory is not None else 0)
