"""The one door to the pipelines: every call is checked here, in one order, whichever front door it came through.

1. shape and limits (`validation`): bad input changes nothing;
2. the bank: it exists, or a write may make it;
3. the request id: a repeated request gets its first answer;
4. the pipeline.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import ParamSpec, Protocol, TypeVar

from astrocyte.config import Settings
from astrocyte.errors import (
    AlreadyExists,
    AstrocyteError,
    BankNotFound,
    Conflict,
    MemoryNotFound,
    RequestIdReused,
    ValidationError,
)
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
from astrocyte.pipelines.preparing import Draft
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
        self._check = Validator(
            settings.limits,
            content_types=settings.retain.chunking,
            fusion_method=settings.recall.fusion_method,
        )
        # Handles of banks that exist; what changes with time (position, etag, names) is never read from here.
        self._banks: dict[tuple[str, str], Bank] = {}
        # Banks whose deletion runs: no handle of these is kept, since any moment may be the one that they go.
        self._leaving: Counter[tuple[str, str]] = Counter()
        self._deletions: set[asyncio.Task[int]] = set()

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
            await self._pipelines.retain.check(self._bank_or_draft(caller, bank_id), [(item, "")])
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
            await self._pipelines.retain.check(self._bank_or_draft(caller, bank_id), placed)
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
        ids = request_ids or [None] * len(items)
        results: dict[int, RetainResult | AstrocyteError] = {}
        group: dict[int, Replay | None] = {}
        for index, (item, request_id) in enumerate(zip(items, ids, strict=True)):
            try:
                self._check.item(item)
                self._check.request_id(request_id)
            except AstrocyteError as error:
                results[index] = error
                continue
            replay = self._replay(request_id, "retain", bank_id, item)
            if replay is not None and any(one and one.key.request_id == request_id for one in group.values()):
                # It is answered by what became of the first one.
                results |= await self._retain_together(caller, bank_id, items, group)
                group = {}
            group[index] = replay
        results |= await self._retain_together(caller, bank_id, items, group)
        return [results[index] for index in range(len(items))]

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
            await self._pipelines.update.check(bank, update)
            return await self.get_memory(caller, bank_id, update.memory_id)
        return await self._pipelines.update.run(bank, update, self._request(request_id, "update", bank_id, update))

    async def watch(self, caller: Caller, bank_id: str, *, after: int | None = None) -> AsyncIterator[Change]:
        """The bank's changes, as they come."""
        checks.bank_id(bank_id)
        if after is not None:
            checks.integer(after, "after_position", 0, LARGEST_POSITION)
        bank = self._current(caller, bank_id)
        position = bank.position if after is None else after
        if position > bank.position:
            raise ValidationError(
                f"is {position}, but the bank is at {bank.position}: all changes up to {position} would be missed; "
                "watch from a position that this bank gave",
                field="after_position",
                metadata={"after_position": str(position), "position": str(bank.position)},
            )
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
        # A repeated request answers the bank of its first time, which may be gone: the next use looks it up.
        self._banks.pop((caller.tenant, bank_id), None)
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
        deletion = asyncio.create_task(self._delete(self._current(caller, bank_id), etag, request))
        self._deletions.add(deletion)
        deletion.add_done_callback(self._deletions.discard)
        # The store goes on with what it began, whatever the caller does; so what is known of the bank here must go too.
        return await asyncio.shield(deletion)

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
        return await self._retain_new(caller, bank_id, items, [] if replay is None else [replay])

    async def _retain_new(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], replays: Sequence[Replay]
    ) -> list[RetainResult]:
        """Store what has not been answered before."""
        bank, drafts = await self._prepared(caller, bank_id, items)
        try:
            return await self._pipelines.retain.store(bank, drafts, caller.principal, replays)
        except BankNotFound:
            # It was deleted since it was looked up: to whom writes now, that is a bank that does not exist.
            self._banks.pop((caller.tenant, bank_id), None)
            self._registry.drop(bank)
            bank, drafts = await self._prepared(caller, bank_id, items)
            return await self._pipelines.retain.store(bank, drafts, caller.principal, replays)

    async def _delete(self, bank: Bank, etag: str | None, request: RequestKey | None) -> int:
        name = (bank.tenant, bank.bank_id)
        self._leaving[name] += 1
        self._banks.pop(name, None)
        try:
            return await self._store.delete_bank(bank, expected_etag=etag, request=request)
        finally:
            self._leaving -= Counter([name])
            # A deletion that failed may have hidden the bank before that.
            current = self._store.get_bank(*name)
            if current is None or current.key != bank.key:
                self._registry.drop(bank)

    async def _retain_together(
        self, caller: Caller, bank_id: str, items: Sequence[RetainItem], group: Mapping[int, Replay | None]
    ) -> dict[int, RetainResult | AstrocyteError]:
        """What became of the chosen items, stored in one commit; each for itself where one of them spoils it."""
        results: dict[int, RetainResult | AstrocyteError] = {}
        replays = []
        fresh: list[int] = []
        for index, replay in group.items():
            try:
                response = None if replay is None else self._store.find_response(caller.tenant, replay.key)
            except RequestIdReused as error:
                results[index] = error
                continue
            if replay is not None and response is not None:
                results[index] = replay.decode(response)[0]
                continue
            if replay is not None:
                replays.append(replace(replay, place=len(fresh)))
            fresh.append(index)
        if not fresh:
            return results
        try:
            stored = await self._retain_new(caller, bank_id, [(items[index], "") for index in fresh], replays)
        except (ValidationError, MemoryNotFound, Conflict):
            for index in fresh:
                results[index] = await self._retain_alone(caller, bank_id, items[index], group[index])
        except AstrocyteError as error:
            results |= dict.fromkeys(fresh, error)
        else:
            results |= zip(fresh, stored, strict=True)
        return results

    async def _retain_alone(
        self, caller: Caller, bank_id: str, item: RetainItem, replay: Replay | None
    ) -> RetainResult | AstrocyteError:
        try:
            return (await self._retain(caller, bank_id, [(item, "")], replay))[0]
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
        if (caller.tenant, bank_id) not in self._leaving:
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

    async def _prepared(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]]
    ) -> tuple[Bank, list[Draft]]:
        """Drafts, and the bank, made if it may be and if the items are right for it: a refused write makes none."""
        bank = self._bank_or_draft(caller, bank_id)
        drafts = await self._pipelines.retain.prepare(bank, items)
        if bank.key:
            return bank, drafts
        try:
            made = await self.create_bank(caller, bank_id)
        except AlreadyExists:
            made = self._current(caller, bank_id)
        if (made.embedding_model, made.dimensions) != (bank.embedding_model, bank.dimensions):
            # Somebody else made it meanwhile, for another model.
            drafts = await self._pipelines.retain.prepare(made, items)
        return made, drafts

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
        """Release everything that was built for this gate, when the deletions that were begun have ended."""
        await asyncio.gather(*self._deletions, return_exceptions=True)
        await self._lifecycle.close()
