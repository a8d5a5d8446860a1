"""Retain and BatchRetain at the gate: answered from their request ids where they can be, else screened and stored."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.api import LimitKind
from astrocyte.api.requests import BatchRetain, Retain
from astrocyte.errors import (
    BankNotFound,
    CircuitOpen,
    Conflict,
    FailedPrecondition,
    MemoryNotFound,
)
from astrocyte.model import DEFAULT_PRINCIPAL, Bank, Caller, RetainItem, RetainResult, RetentionAction
from astrocyte.pipelines.retain.drafts import Draft
from astrocyte.pipelines.retain.pipeline import Replay
from astrocyte.pipelines.text import mail
from astrocyte.policy.engines.registry import Engine
from astrocyte.policy.events import emit
from astrocyte.policy.limits.rate_limits import Demand
from astrocyte.policy.operations.curation import Curating, Ruling, mark
from astrocyte.policy.operations.media_intake import Intake
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.operations.retain_results import Warnings, retelling, with_warnings
from astrocyte.policy.quality.signal_quality import with_refusals
from astrocyte.policy.requests.composed_text import composed
from astrocyte.policy.requests.request_keys import decode_results, encode_results, key_of
from astrocyte.providers.engines import EngineItem

Placed = tuple[RetainItem, str]
# The answer to an item without content, where that is no error.
EMPTY = RetainResult(
    stored=False, error="the content is empty; nothing was stored", retention_action=RetentionAction.SKIPPED.value
)


class Retaining:
    """Handlers of Retain and BatchRetain.

    Args:
        parts: What the operations share.
    """

    def __init__(self, parts: OperationParts) -> None:
        policies = parts.policies
        self._intake = Intake(parts)
        self._curating = Curating(parts)
        self._engines = parts.engine_writes
        self._overrides = policies.overrides
        self._limits = policies.limits
        self._barriers = policies.barriers
        self._storage = policies.storage
        self._escalation = policies.escalation
        self._quality = policies.signal_quality
        self._activity = policies.activity
        self._store = parts.store
        self._banks = parts.banks
        self._pipeline = parts.pipelines.retain
        self._check = parts.check
        self._access = parts.access
        self._spaces = parts.spaces
        self._all_engines = policies.engines
        self._retries = policies.escalation.retries
        self._curates = policies.curator is not None
        self._is_limited = LimitKind.RETAIN in policies.limits.limited

    async def retain(self, caller: Caller, request: Retain) -> RetainResult:
        """Store one memory."""
        bank_id, item, request_id = request.bank_id, request.item, request.request_id
        self._require(caller, "Retain", bank_id)
        if self._is_limited:
            await self._limits.admit((Demand(caller.tenant, bank_id, LimitKind.RETAIN),))
        if self._barriers.skips_empty and self._barriers.skips(bank_id, item):
            return EMPTY
        self._check.item(item, self._overrides.of[bank_id].homeostasis.retain_max_content_bytes)
        if request.validate_only:
            self._check.request_id(request_id)
            return (await self._validate(caller, bank_id, [(item, "")]))[0]
        replay = None
        if request_id is not None:
            self._check.request_id(request_id)
            replay = replay_of(request_id, "retain", bank_id, item)
        results = await self._new(caller, bank_id, [(item, "")], replay)
        if self._all_engines.all:
            results = await self._engines.copy(caller, bank_id, results)
        return results[0]

    async def batch_retain(self, caller: Caller, request: BatchRetain) -> list[RetainResult]:
        """Store all items, or none."""
        bank_id, items, request_id = request.bank_id, request.items, request.request_id
        self._require(caller, "BatchRetain", bank_id)
        self._check.item_count(items)
        if self._is_limited:
            await self._limits.admit((Demand(caller.tenant, bank_id, LimitKind.RETAIN, len(items)),))
        skipped = {index for index, item in enumerate(items) if self._barriers.skips(bank_id, item)}
        self._check.items(items, self._overrides.of[bank_id].homeostasis.retain_max_content_bytes, skipped)
        self._check.request_id(request_id)
        placed = [(item, f"items[{index}].") for index, item in enumerate(items) if index not in skipped]
        if not placed:
            return [EMPTY] * len(items)
        if request.validate_only:
            results = iter(await self._validate(caller, bank_id, placed))
        else:
            stored = await self._new(caller, bank_id, placed, replay_of(request_id, "retain_batch", bank_id, items))
            results = iter(await self._engines.copy(caller, bank_id, stored))
        return [EMPTY if index in skipped else next(results) for index in range(len(items))]

    def _require(self, caller: Caller, operation: str, bank_id: str) -> None:
        """Let the call pass or refuse it, before anything else about it is looked at."""
        # A caller in this process may send anything as a name.
        named: object = bank_id
        known = isinstance(named, str) and (caller.tenant, named) in self._banks.handles
        if self._access.enabled or not known:
            self._banks.require(caller, operation, bank_id)

    async def _new(
        self, caller: Caller, bank_id: str, items: Sequence[Placed], replay: Replay | None
    ) -> list[RetainResult]:
        """Store what has not been answered before, or let it wait for a provider."""
        if replay is not None:
            response = self._store.find_response(caller.tenant, replay.key)
            if response is not None:
                return replay.decode(response)
        items, warnings = await self.screened(caller, bank_id, items)
        kept, refused = await self._quality.judge(caller.tenant, bank_id, items)
        told = None if replay is None else retelling(replay, warnings, refused)
        results = await self.store_or_wait(caller, bank_id, kept, () if told is None else (told,)) if kept else []
        if refused and len(results) == len(items):
            # An equal request was answered first, and this is all of its answer.
            return results
        self._quality.note(caller.tenant, bank_id, kept, results)
        self._activity.retained(caller.tenant, bank_id, [item for item, _ in kept], results)
        if refused:
            results = with_refusals(results, refused)
        return with_warnings(results, warnings) if any(warnings) else results

    async def store_or_wait(
        self, caller: Caller, bank_id: str, items: Sequence[Placed], replays: Sequence[Replay]
    ) -> list[RetainResult]:
        """Store items that were screened: at an engine, in the retry queue, or in the bank."""
        engine = self._engines.only(caller, bank_id) if self._all_engines.all else None
        if engine is not None:
            return await self._elsewhere(caller, engine, bank_id, items, replays)
        if self._retries.waiting:
            waiting = self._banks.known(caller, bank_id)
            if waiting is not None and self._retries.holds(waiting):
                return await self._wait(caller, bank_id, items, replays)
        try:
            if self._curates:
                return await self._store_curated(caller, bank_id, items, replays)
            return await self._store_ruled(caller, bank_id, items, (), replays)
        except CircuitOpen as error:
            if not self._escalation.queues(bank_id):
                emit("provider_unavailable", operation="retain", bank_id=bank_id, provider=error.provider)
                raise
            return await self._wait(caller, bank_id, items, replays)

    async def _elsewhere(
        self,
        caller: Caller,
        engine: Engine,
        bank_id: str,
        items: Sequence[Placed],
        replays: Sequence[Replay],
    ) -> list[RetainResult]:
        """Store items at the engine that alone keeps them; it answers a repeated request as it did the first one."""
        if not self._bank_or_draft(caller, bank_id).key:
            await self._banks.make(caller, bank_id)
        ids: dict[int, str] = {}
        for replay in replays:
            places = range(len(items)) if replay.place is None else (replay.place,)
            ids |= {place: f"{replay.key.request_id}.{place if replay.place is None else 0}" for place in places}
        given = [EngineItem(item, request_id=ids.get(place)) for place, (item, _) in enumerate(items)]
        return await self._engines.store(caller, engine, bank_id, given)

    async def _wait(
        self, caller: Caller, bank_id: str, items: Sequence[Placed], replays: Sequence[Replay]
    ) -> list[RetainResult]:
        """Put items into the retry queue."""
        bank = self._bank_or_draft(caller, bank_id)
        drafts = await self._pipeline.check(bank, items)
        if not bank.key:
            bank = await self._banks.make(caller, bank_id)
        limit = self._overrides.of[bank_id].homeostasis.quotas.storage_bytes_per_bank
        async with self._storage.room(bank, _size(drafts) if limit is not None else 0, limit):
            try:
                return await self._retries.put(caller, bank, drafts, self._access.name(caller), replays)
            except Conflict:
                # An equal request came first.
                for replay in replays:
                    response = self._store.find_response(caller.tenant, replay.key) if replay.place is None else None
                    if response is not None:
                        return replay.decode(response)
                raise

    async def _store_curated(
        self, caller: Caller, bank_id: str, items: Sequence[Placed], replays: Sequence[Replay]
    ) -> list[RetainResult]:
        rulings = await self._curating.judge(caller, bank_id, items)
        try:
            return await self._store_ruled(caller, bank_id, items, rulings, replays)
        except (Conflict, FailedPrecondition, MemoryNotFound):
            if not rulings:
                raise
            rulings = self._curating.plain(items, rulings, "the memory changed, or is held")
            return await self._store_ruled(caller, bank_id, items, rulings, replays)

    async def _store_ruled(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[Placed],
        rulings: Sequence[Ruling],
        replays: Sequence[Replay],
    ) -> list[RetainResult]:
        """Store items as it was decided, where anything was."""
        if rulings:
            items = [(ruling.item, at) for ruling, (_, at) in zip(rulings, items, strict=True)]
        bank, drafts = await self._prepared(caller, bank_id, items, rulings)
        try:
            results = await self._store_drafts(caller, bank, drafts, replays)
        except BankNotFound:
            # It was deleted since it was looked up: to whom writes now, that is a bank that does not exist.
            self._banks.gone(bank)
            bank, drafts = await self._prepared(caller, bank_id, items, rulings)
            results = await self._store_drafts(caller, bank, drafts, replays)
        return await self._curating.finish(caller, bank, rulings, results) if rulings else results

    async def _store_drafts(
        self, caller: Caller, bank: Bank, drafts: Sequence[Draft], replays: Sequence[Replay]
    ) -> list[RetainResult]:
        """Store them if the bank has room."""
        settings = self._overrides.of[bank.bank_id]
        limit = settings.homeostasis.quotas.storage_bytes_per_bank
        dedup = settings.signal_quality.dedup
        principal = self._access.unnamed if caller.principal == DEFAULT_PRINCIPAL else caller.principal
        copies = self._engines.order(caller, bank.bank_id) if self._all_engines.all else None
        if limit is None:
            return await self._pipeline.store(bank, drafts, principal, dedup, replays, copies=copies)
        async with self._storage.room(bank, _size(drafts), limit):
            return await self._pipeline.store(bank, drafts, principal, dedup, replays, copies=copies)

    async def _validate(self, caller: Caller, bank_id: str, items: Sequence[Placed]) -> list[RetainResult]:
        """The results that items would have; they are not stored."""
        items, warnings = await self.screened(caller, bank_id, items, quiet=True)
        await self._pipeline.check(self._bank_or_draft(caller, bank_id), items)
        return with_warnings([RetainResult(stored=False)] * len(items), warnings)

    async def screened(
        self, caller: Caller, bank_id: str, items: Sequence[Placed], *, quiet: bool = False
    ) -> tuple[list[Placed], list[Warnings]]:
        """Items with what their profiles add, as the barriers let them pass, and the warnings about each.

        ``quiet`` asks no provider and tells no operator: the call changes nothing.

        Raises:
            ValidationError: What an item becomes is beyond a limit, or has a shape that the bank does not take.
            PiiRejected: It holds personal data that the bank does not take.
        """
        # A caller who may not write learns nothing of what the bank takes.
        self._bank_or_draft(caller, bank_id)
        passed: list[Placed] = []
        warnings: list[Warnings] = []
        adds = self._intake.adds[bank_id]
        for item, at in items:
            completed = item
            told: Warnings = ()
            if adds or item.parts or item.extraction_profile or item.content_type == mail.CONTENT_TYPE:
                completed, told = await self._intake.completed(bank_id, item, at, quiet=quiet)
            if completed.tags or completed.metadata or completed.session_id or completed.speaker or completed.source:
                completed = composed(completed)
            screened, said = await self._barriers.item(bank_id, "Retain", completed, at, quiet=quiet)
            passed.append((screened, at))
            warnings.append((*told, *said))
        return passed, warnings

    async def _prepared(
        self, caller: Caller, bank_id: str, items: Sequence[Placed], rulings: Sequence[Ruling] = ()
    ) -> tuple[Bank, list[Draft]]:
        """Drafts, and the bank, made if it may be and if the items are right for it: a refused write makes none."""
        bank = self._bank_or_draft(caller, bank_id)
        drafts = await self._pipeline.prepare(bank, items)
        if rulings:
            mark(drafts, rulings)
        if bank.key:
            return bank, drafts
        made = await self._banks.make(caller, bank_id)
        if (made.embedding_model, made.dimensions) != (bank.embedding_model, bank.dimensions):
            # Somebody else made it meanwhile, for another model.
            drafts = await self._pipeline.prepare(made, items)
            mark(drafts, rulings)
        return made, drafts

    def _bank_or_draft(self, caller: Caller, bank_id: str) -> Bank:
        """The bank, or what it would be if a write made it."""
        known = self._banks.handles.get((caller.tenant, bank_id))
        if known is None or self._access.enabled or self._spaces.moved:
            return self._banks.expected(caller, "Retain", bank_id)
        return known


def replay_of(request_id: str | None, operation: str, *parts: object) -> Replay | None:
    """The replay of a request, by its id and all of its parts; None without an id."""
    key = key_of(request_id, operation, *parts)
    return None if key is None else Replay(key, encode_results, decode_results)


def _size(drafts: Sequence[Draft]) -> int:
    """Bytes of the contents."""
    return sum(len(draft.content.encode()) for draft in drafts)
