"""The one door to the pipelines: every call is checked here, in one order, whichever front door it came through.

1. access (`access`): the caller may do this in the bank that it names, before anything tells whether there is one;
2. rates and daily quotas (`limits`);
3. shape and limits (`validation`): bad input changes nothing;
4. the bank: it exists, or a write may make it;
5. the request id: a repeated request gets its first answer;
6. the pipeline.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ParamSpec, Protocol, TypeVar

from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError, CircuitOpen, MemoryNotFound, ValidationError
from astrocyte.model import (
    AccessCheck,
    AuditPage,
    Bank,
    BankGroup,
    BankPage,
    BankStats,
    BankStrategy,
    BankTemplate,
    Caller,
    Change,
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
    Permission,
    RecallQuery,
    RecallResult,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
    ServerInfo,
)
from astrocyte.pipelines.forget import ForgetPipeline
from astrocyte.pipelines.multi_bank import MultiBankPipeline, Question
from astrocyte.pipelines.recall import RecallPipeline
from astrocyte.pipelines.reflect import ReflectPipeline
from astrocyte.pipelines.registry import IndexRegistry
from astrocyte.pipelines.retain import RetainPipeline
from astrocyte.pipelines.update import UpdatePipeline
from astrocyte.policy.access import Access
from astrocyte.policy.bank_sets import BankSet, BankSets
from astrocyte.policy.banks import Banks
from astrocyte.policy.granting import Granting
from astrocyte.policy.holding import Holding
from astrocyte.policy.keys import Keys
from astrocyte.policy.limits import Demand, Operation
from astrocyte.policy.paging import decode_token, encode_token
from astrocyte.policy.patterns import ANY
from astrocyte.policy.permissions import FORGET_ALL
from astrocyte.policy.policies import Policies
from astrocyte.policy.reflecting import Reflecting
from astrocyte.policy.requests import key_of
from astrocyte.policy.retaining import Retaining
from astrocyte.policy.validation import LARGEST_POSITION, Validator
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.access import AccessStore, KeyStore
from astrocyte.stores.audit import AuditStore
from astrocyte.stores.holds import HoldStore
from astrocyte.stores.protocols import MemoryStore

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pipelines:
    """What the gate opens to."""

    retain: RetainPipeline
    recall: RecallPipeline
    reflect: ReflectPipeline
    multi_bank: MultiBankPipeline
    update: UpdatePipeline
    forget: ForgetPipeline


def _recalls(caller: Caller, bank_ids: Iterable[str]) -> list[Demand]:
    """What a recall of these banks asks of their limits."""
    return [Demand(caller.tenant, bank_id, Operation.RECALL) for bank_id in bank_ids]


class Lifecycle(Protocol):
    """What was built around the gate, and lives as long as it."""

    def start_purging(self) -> None:
        """Erase in the background what is due; a second call does nothing."""

    async def close(self) -> None:
        """Release everything."""


class Gate:
    """Implements `astrocyte.policy.backend.Backend` in process; see there for what each method does and raises."""

    def __init__(  # noqa: PLR0913, PLR0917 - the composition root hands over everything that the gate guards
        self,
        settings: Settings,
        store: MemoryStore,
        grants: AccessStore,
        holds: HoldStore,
        audit: AuditStore,
        keys: KeyStore,
        clock: Callable[[], int],
        registry: IndexRegistry,
        embedder: Embedder,
        pipelines: Pipelines,
        policies: Policies,
        info: ServerInfo,
        executor: Executor,
        lifecycle: Lifecycle,
    ) -> None:
        self._store = store
        self._registry = registry
        self._pipelines = pipelines
        self._info = info
        self._executor = executor
        self._lifecycle = lifecycle
        self._check = Validator(
            settings.limits,
            content_types=settings.retain.chunking,
            fusion_method=settings.recall.fusion_method,
        )
        self._bank_sets = BankSets(settings.multi_bank)
        self._access = access = Access(settings, store, grants)
        self._policies = policies
        self._limits = policies.limits
        self._barriers = policies.barriers
        self._overrides = policies.overrides
        self._banks = Banks(store, registry, embedder, self._check, access, policies.overrides, lifecycle.start_purging)
        self.keys = Keys(keys, access, self._check, clock)
        self._granting = Granting(grants, access, self._check)
        self._holding = Holding(holds, audit, self._banks, access, self._check, settings.limits)
        self._retaining = Retaining(store, self._banks, pipelines.retain, self._check, access, policies)
        self._reflecting = Reflecting(
            policies, self._banks, self._bank_sets, pipelines.reflect, self._recalled, self._check
        )

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
        return await self._retaining.many(caller, bank_id, items, request_ids=request_ids)

    async def recall(self, caller: Caller, query: RecallQuery) -> RecallResult:
        """Rank the bank's memories for a query."""
        return await self._recall(caller, "Recall", query)

    async def recall_batch(self, caller: Caller, queries: Sequence[RecallQuery]) -> list[RecallResult]:
        """Answer all queries, or fail with the first that cannot be answered."""
        self._check.query_count(queries)
        asked = [
            self._banks_of(caller, "BatchRecall", query, f"queries[{index}].") for index, query in enumerate(queries)
        ]
        await self._limits.admit(_recalls(caller, (bank_id for one in asked for bank_id in one.bank_ids)))
        self._check.queries(queries)
        banks = [[self._banks.expected(caller, "BatchRecall", bank_id) for bank_id in one.bank_ids] for one in asked]
        screened = [
            await self._barriers.query("BatchRecall", query, one.bank_ids, f"queries[{index}].")
            for index, (query, one) in enumerate(zip(queries, asked, strict=True))
        ]
        banks = [[await self._banks.ready(caller, "BatchRecall", bank) for bank in own] for own in banks]
        alone = [
            (own[0], query) for one, own, (query, _) in zip(asked, banks, screened, strict=True) if one.strategy is None
        ]
        answers = iter(await self._answers(alone))
        results = [
            next(answers)
            if one.strategy is None
            else await self._answer_several(one.strategy, own, query, f"queries[{index}].")
            for index, (one, own, (query, _)) in enumerate(zip(asked, banks, screened, strict=True))
        ]
        return [
            self._barriers.output(query.bank_id, "BatchRecall", result, warnings)
            for result, (query, warnings) in zip(results, screened, strict=True)
        ]

    async def history(self, caller: Caller, query: RecallQuery) -> HistoryResult:
        """Recall as of an instant."""
        if query.as_of is None:
            raise ValidationError("is missing; say the instant to look from", field="as_of")
        result = await self._recall(caller, "History", query)
        return HistoryResult(
            result.hits,
            result.total_available,
            result.truncated,
            query.as_of,
            query.bank_id,
            result.trace,
            result.warnings,
        )

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
        if dry_run:
            return await self._in_executor(pipeline.preview, bank, selector, compliance=compliance)
        request = key_of(request_id, "erase" if compliance else "forget", bank_id, selector, reason)
        work = pipeline.erase if compliance else pipeline.forget
        name = self._access.name(caller)
        result = await work(bank, selector, reason=reason or "", principal=name, request=request)
        if compliance:
            self._policies.escalation.drop(bank)
        return result

    async def undelete(self, caller: Caller, bank_id: str, memory_id: str, *, request_id: str | None = None) -> Memory:
        """Bring a forgotten memory back."""
        self._banks.require(caller, "UndeleteMemory", bank_id)
        self._check.memory_id(memory_id)
        self._check.request_id(request_id)
        request = key_of(request_id, "undelete", bank_id, memory_id)
        bank = self._banks.handle(caller, "UndeleteMemory", bank_id)
        return await self._pipelines.forget.undelete(bank, memory_id, self._access.name(caller), request)

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
        homeostasis = self._overrides.of(bank_id).homeostasis
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
            return await self._pipelines.update.run(bank, update, request)

    def _growth(self, bank: Bank, update: MemoryUpdate) -> int:
        """How many bytes of content the bank gains by an update, or loses."""
        if "content" not in update.fields:
            return 0
        memory = self._store.memory(bank, update.memory_id)
        return len(update.content.encode()) - (len(memory.content.encode()) if memory is not None else 0)

    def watch(self, caller: Caller, bank_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """The bank's changes, as they come."""
        return self._banks.watch(caller, bank_id, after=after)

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
        """Create a bank."""
        return await self._banks.create(
            caller,
            bank_id,
            display_name=display_name,
            description=description,
            embedding_model=embedding_model,
            dimensions=dimensions,
            request_id=request_id,
        )

    async def get_bank(self, caller: Caller, bank_id: str) -> Bank:
        """The bank as it is now."""
        return self._banks.described(self._banks.current(caller, "GetBank", bank_id))

    async def list_banks(
        self, caller: Caller, *, prefix: str = "", page_size: int = 0, page_token: str = ""
    ) -> BankPage:
        """A page of banks by id."""
        return await self._banks.page(caller, prefix=prefix, page_size=page_size, page_token=page_token)

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
        """Change what is not None."""
        return await self._banks.update(
            caller, bank_id, display_name=display_name, description=description, etag=etag, request_id=request_id
        )

    async def delete_bank(
        self, caller: Caller, bank_id: str, *, etag: str | None = None, request_id: str | None = None
    ) -> int:
        """Delete the bank and everything in it."""
        return await self._banks.delete(caller, bank_id, etag=etag, request_id=request_id)

    async def bank_stats(self, caller: Caller, bank_id: str) -> BankStats:
        """Counts of the bank."""
        bank = self._banks.current(caller, "GetBankStats", bank_id)
        stats = await self._in_executor(self._store.bank_stats, bank)
        index = self._registry.peek(bank)
        if index is None:
            return stats
        held = await self._in_executor(index.stats)
        return replace(stats, indexed_position=index.core.position, index_bytes=index.core.stats()["bytes"], index=held)

    async def server_info(self, caller: Caller) -> ServerInfo:
        """What runs, and what the indexes of all banks hold; the same for every caller."""
        self._access.require_name(caller, "GetServerInfo")
        return replace(self._info, index_memory=self._registry.memory)

    async def grant(
        self, caller: Caller, bank_id: str, principal: str, permissions: Sequence[str], *, request_id: str | None = None
    ) -> Grant:
        """Give permissions."""
        return await self._granting.grant(caller, bank_id, principal, permissions, request_id=request_id)

    async def revoke(
        self,
        caller: Caller,
        bank_id: str,
        principal: str,
        permissions: Sequence[str] = (),
        *,
        request_id: str | None = None,
    ) -> frozenset[Permission]:
        """Take permissions."""
        return await self._granting.revoke(caller, bank_id, principal, permissions, request_id=request_id)

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
        """A page of grants."""
        return await self._granting.page(
            caller,
            bank_id=bank_id,
            principal=principal,
            revoked=revoked,
            page_size=page_size,
            page_token=page_token,
        )

    async def create_api_key(
        self,
        caller: Caller,
        name: str,
        principal: str,
        *,
        expires_at: datetime | None = None,
        request_id: str | None = None,
    ) -> tuple[KeyInfo, str]:
        """Make a key."""
        return await self.keys.create(caller, name, principal, expires_at=expires_at, request_id=request_id)

    async def list_bank_templates(self, caller: Caller) -> list[BankTemplate]:
        """The templates of the configuration."""
        return self._access.templates(caller)

    async def list_bank_groups(self, caller: Caller) -> list[BankGroup]:
        """The groups of the configuration."""
        self._access.require_pattern(caller, "ListBankGroups", ANY)
        return self._bank_sets.groups()

    async def list_api_keys(self, caller: Caller) -> list[KeyInfo]:
        """All keys of the tenant."""
        return self.keys.listed(caller)

    async def revoke_api_key(self, caller: Caller, key_id: str, *, request_id: str | None = None) -> KeyInfo:
        """End a key."""
        return await self.keys.revoke(caller, key_id, request_id=request_id)

    async def check_access(
        self, caller: Caller, bank_id: str, *, principal: str | None = None, permission: str | None = None
    ) -> AccessCheck:
        """What a principal may do in a bank."""
        return await self._granting.check(caller, bank_id, principal=principal, permission=permission)

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
        """Place a hold."""
        return await self._holding.place(
            caller,
            bank_id,
            reason=reason,
            memory_ids=memory_ids,
            tags=tags,
            hold_id=hold_id,
            request_id=request_id,
        )

    async def release_hold(self, caller: Caller, bank_id: str, hold_id: str, *, request_id: str | None = None) -> Hold:
        """Release a hold."""
        return await self._holding.release(caller, bank_id, hold_id, request_id=request_id)

    async def list_holds(
        self, caller: Caller, *, bank_id: str = "", released: bool = False, page_size: int = 0, page_token: str = ""
    ) -> HoldPage:
        """A page of holds."""
        return await self._holding.page(
            caller, bank_id=bank_id, released=released, page_size=page_size, page_token=page_token
        )

    async def list_audit_events(
        self, caller: Caller, *, bank_id: str = "", page_size: int = 0, page_token: str = ""
    ) -> AuditPage:
        """A page of the trail."""
        return await self._holding.trail(caller, bank_id=bank_id, page_size=page_size, page_token=page_token)

    async def _recall(self, caller: Caller, operation: str, query: RecallQuery) -> RecallResult:
        asked = self._banks_of(caller, operation, query)
        await self._limits.admit(_recalls(caller, asked.bank_ids))
        self._check.query(query)
        banks = [self._banks.expected(caller, operation, bank_id) for bank_id in asked.bank_ids]
        query, warnings = await self._barriers.query(operation, query, asked.bank_ids)
        banks = [await self._banks.ready(caller, operation, bank) for bank in banks]
        if asked.strategy is None:
            result = await self._answer(banks[0], query)
        else:
            result = await self._answer_several(asked.strategy, banks, query)
        return self._barriers.output(query.bank_id, operation, result, warnings)

    async def _answer_several(
        self, strategy: BankStrategy, banks: Sequence[Bank], query: RecallQuery, at: str = ""
    ) -> RecallResult:
        """The answer of several banks, or what there is while the provider that they need is left alone."""
        try:
            return await self._recalled(strategy, banks, query, at)
        except CircuitOpen as failure:
            return self._policies.escalation.recall_several(banks, failure)

    async def _recalled(
        self, strategy: BankStrategy | None, banks: Sequence[Bank], query: RecallQuery, at: str = ""
    ) -> RecallResult:
        """What the pipelines find in the bank, or in several by the strategy."""
        most_tokens = min(self._most_tokens(bank.bank_id) for bank in banks)
        if strategy is None:
            return await self._pipelines.recall.run(banks[0], query, most_tokens)
        return await self._pipelines.multi_bank.run(Question(query, banks, strategy, most_tokens, at))

    async def _answer(self, bank: Bank, query: RecallQuery) -> RecallResult:
        """The pipeline's answer, or what there is while its provider is left alone."""
        escalation = self._policies.escalation
        try:
            result = await self._pipelines.recall.run(bank, query, self._most_tokens(query.bank_id))
        except CircuitOpen as failure:
            return escalation.recall(bank, query, failure)
        escalation.keep(bank, query, result)
        return result

    async def _answers(self, requests: Sequence[tuple[Bank, RecallQuery]]) -> list[RecallResult]:
        """As `_answer` of each, together."""
        try:
            results = await self._pipelines.recall.run_many(
                [(bank, query, self._most_tokens(query.bank_id)) for bank, query in requests]
            )
        except CircuitOpen:
            # Some of them may need no provider.
            return [await self._answer(bank, query) for bank, query in requests]
        for (bank, query), result in zip(requests, results, strict=True):
            self._policies.escalation.keep(bank, query, result)
        return results

    def _banks_of(self, caller: Caller, operation: str, query: RecallQuery, at: str = "") -> BankSet:
        """The banks that a query names, each of which the caller may use for this, before any is looked at."""
        asked = self._bank_sets.resolve(caller, query, at)
        self._banks.require_each(caller, operation, asked, at)
        return asked

    def _most_tokens(self, bank_id: str) -> int:
        """Ceiling of a recall's token budget; of several banks, the lowest holds."""
        return self._overrides.of(bank_id).homeostasis.recall_max_tokens

    async def _in_executor(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A read that may take longer than the loop should wait."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*args, **kwargs))

    async def close(self) -> None:
        """Release everything that was built for this gate, when the deletions that were begun have ended."""
        await self._banks.settle()
        await self._lifecycle.close()
