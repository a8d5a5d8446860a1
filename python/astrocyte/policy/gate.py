"""The one door to the pipelines: every call is checked here, in one order, whichever front door it came through.

1. shape and limits (`validation`): bad input changes nothing;
2. the bank: it exists, or a write may make it;
3. the request id: a repeated request gets its first answer;
4. the pipeline.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import ParamSpec, Protocol, TypeVar

from astrocyte.config import Settings
from astrocyte.errors import AlreadyExists, AstrocyteError, BankNotFound, MemoryNotFound, ValidationError
from astrocyte.model import (
    Bank,
    BankPage,
    BankStats,
    Caller,
    Change,
    ForgetResult,
    ForgetSelector,
    HistoryResult,
    Memory,
    MemoryPage,
    MemoryUpdate,
    RecallQuery,
    RecallResult,
    RetainItem,
    RetainResult,
    ServerInfo,
)
from astrocyte.pipelines.forget import ForgetPipeline
from astrocyte.pipelines.recall import RecallPipeline
from astrocyte.pipelines.registry import IndexRegistry
from astrocyte.pipelines.retain import Replay, RetainPipeline
from astrocyte.pipelines.update import UpdatePipeline
from astrocyte.policy import checks
from astrocyte.policy.paging import decode_token, encode_token
from astrocyte.policy.requests import decode_results, encode_results, request_key
from astrocyte.policy.validation import LARGEST_POSITION, Validator
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.protocols import MemoryStore, RequestKey

P = ParamSpec("P")
T = TypeVar("T")

# Changes read at once for a watcher: a screenful, so that a slow one does not hold many.
WATCH_BATCH = 256


@dataclass(frozen=True, slots=True)
class Pipelines:
    """What the gate opens to."""

    retain: RetainPipeline
    recall: RecallPipeline
    update: UpdatePipeline
    forget: ForgetPipeline


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
        registry: IndexRegistry,
        embedder: Embedder,
        pipelines: Pipelines,
        info: ServerInfo,
        executor: Executor,
        lifecycle: Lifecycle,
    ) -> None:
        self._settings = settings
        self._store = store
        self._registry = registry
        self._embedder = embedder
        self._pipelines = pipelines
        self._info = info
        self._executor = executor
        self._lifecycle = lifecycle
        self._used = False
        self._check = Validator(settings.limits)
        # Handles of banks that exist; what changes with time (position, etag, names) is never read from here.
        self._banks: dict[tuple[str, str], Bank] = {}

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
        checks.bank_id(bank_id)
        self._check.item(item)
        self._check.request_id(request_id)
        if validate_only:
            self._pipelines.retain.draft(self._bank_or_draft(caller, bank_id), item)
            return RetainResult(stored=False)
        replay = self._replay(request_id, "retain", bank_id, item)
        return (await self._retain(caller, bank_id, [(item, "")], replay))[0]

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
        checks.bank_id(bank_id)
        self._check.items(items)
        self._check.request_id(request_id)
        placed = [(item, f"items[{index}].") for index, item in enumerate(items)]
        if validate_only:
            bank = self._bank_or_draft(caller, bank_id)
            for item, at in placed:
                self._pipelines.retain.draft(bank, item, at)
            return [RetainResult(stored=False) for _ in items]
        return await self._retain(caller, bank_id, placed, self._replay(request_id, "retain_batch", bank_id, items))

    async def retain_many(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_ids: Sequence[str | None] = (),
    ) -> list[RetainResult | AstrocyteError]:
        """Store what can be stored."""
        checks.bank_id(bank_id)
        if request_ids and len(request_ids) != len(items):
            raise ValidationError(f"has {len(request_ids)} entries for {len(items)} items", field="request_ids")
        results: list[RetainResult | AstrocyteError | None] = [None] * len(items)
        together: list[int] = []
        alone: list[int] = []
        for index, item in enumerate(items):
            try:
                self._check.item(item)
            except ValidationError as error:
                results[index] = error
                continue
            (alone if request_ids and request_ids[index] is not None else together).append(index)
        if together:
            stored = await self._retain_together(caller, bank_id, [items[index] for index in together])
            for index, result in zip(together, stored, strict=True):
                results[index] = result
        # Items with a request id of their own each have their own answer to keep; the store groups their commits.
        answers = await asyncio.gather(
            *(self._retain_alone(caller, bank_id, items[index], request_ids[index]) for index in alone)
        )
        for index, result in zip(alone, answers, strict=True):
            results[index] = result
        return [result for result in results if result is not None]

    async def recall(self, caller: Caller, query: RecallQuery) -> RecallResult:
        """Rank the bank's memories for a query."""
        self._check.query(query)
        return await self._pipelines.recall.run(self._bank(caller, query.bank_id), query)

    async def recall_batch(self, caller: Caller, queries: Sequence[RecallQuery]) -> list[RecallResult]:
        """Answer all queries, or fail with the first that cannot be answered."""
        self._check.queries(queries)
        banks = [self._bank(caller, query.bank_id) for query in queries]
        return await self._pipelines.recall.run_many(list(zip(banks, queries, strict=True)))

    async def history(self, caller: Caller, query: RecallQuery) -> HistoryResult:
        """Recall as of an instant."""
        if query.as_of is None:
            raise ValidationError("is missing; say the instant to look from", field="as_of")
        result = await self.recall(caller, query)
        return HistoryResult(
            result.hits, result.total_available, result.truncated, query.as_of, query.bank_id, result.trace
        )

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
        checks.bank_id(bank_id)
        selector = self._check.selector(selector)
        self._check.reason(reason)
        self._check.request_id(request_id)
        bank = self._bank(caller, bank_id)
        pipeline = self._pipelines.forget
        if dry_run:
            return await self._in_executor(pipeline.preview, bank, selector, compliance=compliance)
        request = self._request(request_id, "erase" if compliance else "forget", bank_id, selector, reason)
        work = pipeline.erase if compliance else pipeline.forget
        return await work(bank, selector, reason=reason or "", principal=caller.principal, request=request)

    async def undelete(self, caller: Caller, bank_id: str, memory_id: str, *, request_id: str | None = None) -> Memory:
        """Bring a forgotten memory back."""
        checks.bank_id(bank_id)
        self._check.memory_id(memory_id)
        self._check.request_id(request_id)
        request = self._request(request_id, "undelete", bank_id, memory_id)
        return await self._pipelines.forget.undelete(self._bank(caller, bank_id), memory_id, request)

    async def get_memory(self, caller: Caller, bank_id: str, memory_id: str) -> Memory:
        """The current version of a memory."""
        checks.bank_id(bank_id)
        self._check.memory_id(memory_id)
        memory = self._store.memory(self._bank(caller, bank_id), memory_id)
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
        checks.bank_id(bank_id)
        self._check.listing(tags, session_id)
        limit = self._check.page_size(page_size)
        bank = self._current(caller, bank_id)
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
        checks.bank_id(bank_id)
        self._check.update(update)
        self._check.request_id(request_id)
        bank = self._bank(caller, bank_id)
        if validate_only:
            await self._pipelines.update.next_version(bank, update)
            return await self.get_memory(caller, bank_id, update.memory_id)
        return await self._pipelines.update.run(bank, update, self._request(request_id, "update", bank_id, update))

    async def watch(self, caller: Caller, bank_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """The bank's changes, as they come."""
        checks.bank_id(bank_id)
        if after is not None:
            checks.integer(after, "after_position", 0, LARGEST_POSITION)
        bank = self._current(caller, bank_id)
        position = bank.position if after is None else after
        with self._registry.subscribed(bank) as changed:
            while True:
                changed.clear()
                changes = self._store.changes(bank, after=position, limit=WATCH_BATCH)
                for change in changes:
                    yield change
                    position = change.position
                if not changes:
                    if self._current(caller, bank_id).key != bank.key:
                        raise BankNotFound(bank_id)
                    await changed.wait()

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
        checks.bank_id(bank_id)
        self._check.bank_texts(display_name, description)
        self._check.space(embedding_model, dimensions)
        self._check.request_id(request_id)
        model, size = self._space(embedding_model, dimensions)
        return await self._store.create_bank(
            caller.tenant,
            bank_id,
            display_name=display_name,
            description=description,
            embedding_model=model,
            dimensions=size,
            request=self._request(
                request_id, "create_bank", bank_id, display_name, description, embedding_model, dimensions
            ),
        )

    async def get_bank(self, caller: Caller, bank_id: str) -> Bank:
        """The bank as it is now."""
        checks.bank_id(bank_id)
        return self._current(caller, bank_id)

    async def list_banks(
        self, caller: Caller, *, prefix: str = "", page_size: int = 0, page_token: str = ""
    ) -> BankPage:
        """A page of banks by id."""
        if prefix:
            checks.bank_id(prefix, "prefix")
        limit = self._check.page_size(page_size)
        scope = ("banks", caller.tenant, prefix)
        after = str(decode_token(page_token, scope, str, 1)[0]) if page_token else ""
        banks = self._store.list_banks(caller.tenant, prefix=prefix, after=after, limit=limit + 1)
        token = encode_token(scope, [banks[limit - 1].bank_id]) if len(banks) > limit else ""
        return BankPage(tuple(banks[:limit]), token)

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
        checks.bank_id(bank_id)
        if display_name is None and description is None:
            raise ValidationError("is empty; change display_name, description or both", field="update_mask")
        self._check.bank_texts(display_name, description)
        self._check.request_id(request_id)
        bank = self._current(caller, bank_id)
        return await self._store.update_bank(
            bank,
            display_name=display_name,
            description=description,
            expected_etag=etag,
            request=self._request(request_id, "update_bank", bank_id, display_name, description, etag),
        )

    async def delete_bank(
        self, caller: Caller, bank_id: str, *, etag: str | None = None, request_id: str | None = None
    ) -> int:
        """Delete the bank and everything in it."""
        checks.bank_id(bank_id)
        self._check.request_id(request_id)
        request = self._request(request_id, "delete_bank", bank_id, etag)
        # Before the bank is looked for: it is gone, or another one, when the request comes again.
        earlier = None if request is None else self._store.find_response(caller.tenant, request)
        if earlier is not None:
            return int(earlier)
        bank = self._current(caller, bank_id)
        count = await self._store.delete_bank(bank, expected_etag=etag, request=request)
        self._banks.pop((caller.tenant, bank_id), None)
        self._registry.drop(bank)
        return count

    async def bank_stats(self, caller: Caller, bank_id: str) -> BankStats:
        """Counts of the bank."""
        checks.bank_id(bank_id)
        bank = self._current(caller, bank_id)
        stats = await self._in_executor(self._store.bank_stats, bank)
        index = self._registry.loaded(bank)
        if index is None:
            return stats
        return replace(stats, indexed_position=index.core.position, index_bytes=index.core.stats()["bytes"])

    async def server_info(self, caller: Caller) -> ServerInfo:
        """What runs; the same for every caller."""
        del caller
        return self._info

    async def _retain(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], replay: Replay | None
    ) -> list[RetainResult]:
        if replay is not None:
            response = self._store.find_response(caller.tenant, replay.key)
            if response is not None:
                return replay.decode(response)
        bank = await self._bank_to_write(caller, bank_id, items)
        return await self._pipelines.retain.run(bank, items, caller.principal, replay)

    async def _retain_together(
        self, caller: Caller, bank_id: str, items: Sequence[RetainItem]
    ) -> Sequence[RetainResult | AstrocyteError]:
        """All in one commit; each for itself where one of them spoils it."""
        try:
            return await self._retain(caller, bank_id, [(item, "") for item in items], None)
        except ValidationError:
            return [await self._retain_alone(caller, bank_id, item, None) for item in items]
        except AstrocyteError as error:
            return [error for _ in items]

    async def _retain_alone(
        self, caller: Caller, bank_id: str, item: RetainItem, request_id: str | None
    ) -> RetainResult | AstrocyteError:
        try:
            return await self.retain(caller, bank_id, item, request_id=request_id)
        except AstrocyteError as error:
            return error

    def _bank(self, caller: Caller, bank_id: str) -> Bank:
        """The bank, perhaps with an old position."""
        return self._banks.get((caller.tenant, bank_id)) or self._current(caller, bank_id)

    def _current(self, caller: Caller, bank_id: str) -> Bank:
        """The bank as the store has it now."""
        if not self._used:
            # Now a loop runs for sure; when the gate was built, perhaps not.
            self._used = True
            self._lifecycle.start_purging()
        bank = self._store.get_bank(caller.tenant, bank_id)
        if bank is None:
            raise BankNotFound(bank_id)
        self._banks[caller.tenant, bank_id] = bank
        return bank

    def _bank_or_draft(self, caller: Caller, bank_id: str) -> Bank:
        """The bank, or what it would be if a write made it."""
        try:
            return self._bank(caller, bank_id)
        except BankNotFound:
            if not self._settings.banks.auto_create:
                raise
        now = datetime.now(UTC)
        return Bank(
            key=0,
            tenant=caller.tenant,
            bank_id=bank_id,
            display_name="",
            description="",
            embedding_model=self._embedder.model_id,
            dimensions=self._embedder.dimensions,
            created_at=now,
            updated_at=now,
            position=0,
            etag="",
        )

    async def _bank_to_write(self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]]) -> Bank:
        """The bank, made if it may be and if the items are right for it: a refused write makes none."""
        bank = self._bank_or_draft(caller, bank_id)
        if bank.key:
            return bank
        for item, at in items:
            self._pipelines.retain.draft(bank, item, at)
        try:
            return await self.create_bank(caller, bank_id)
        except AlreadyExists:
            return self._current(caller, bank_id)

    def _space(self, model: str | None, dimensions: int | None) -> tuple[str, int]:
        """The embedding space of a new bank."""
        own = self._embedder.model_id
        if model is None or model == own:
            if dimensions not in (None, self._embedder.dimensions):
                raise ValidationError(
                    f"{own!r} has {self._embedder.dimensions} dimensions, got {dimensions}; name the other model",
                    field="dimensions",
                )
            return own, self._embedder.dimensions
        if dimensions is None:
            raise ValidationError(f"is missing; this server does not know {model!r}", field="dimensions")
        return model, dimensions

    def _request(self, request_id: str | None, operation: str, *parts: object) -> RequestKey | None:
        return None if request_id is None else request_key(request_id, operation, *parts)

    def _replay(self, request_id: str | None, operation: str, *parts: object) -> Replay | None:
        key = self._request(request_id, operation, *parts)
        return None if key is None else Replay(key, encode_results, decode_results)

    async def _in_executor(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A read that may take longer than the loop should wait."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, lambda: work(*args, **kwargs))

    async def close(self) -> None:
        """Release everything that was built for this gate."""
        await self._lifecycle.close()
