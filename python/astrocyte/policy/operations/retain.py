"""Retains: answered from their request ids where they can be, else stored, together or each for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from astrocyte.errors import (
    AstrocyteError,
    BankNotFound,
    CircuitOpen,
    Conflict,
    FailedPrecondition,
    MemoryNotFound,
    ValidationError,
)
from astrocyte.model import Bank, Caller, RetainItem, RetainResult, RetentionAction
from astrocyte.pipelines.retain.drafts import Draft
from astrocyte.pipelines.retain.pipeline import Replay
from astrocyte.policy.engines.registry import Engine
from astrocyte.policy.events import emit
from astrocyte.policy.limits.rate_limits import Demand, Operation
from astrocyte.policy.operations.curation import Curating, Ruling, mark
from astrocyte.policy.operations.media_intake import Intake
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.quality.signal_quality import with_refusals
from astrocyte.policy.requests.idempotency import decode_results, encode_results, key_of
from astrocyte.providers.engines import EngineItem

Warnings = tuple[str, ...]
# The answer to an item without content, where that is no error.
EMPTY = RetainResult(
    stored=False, error="the content is empty; nothing was stored", retention_action=RetentionAction.SKIPPED.value
)


class Retaining:
    """The gate's retains; see `astrocyte.policy.backend.Backend` for what each does and raises.

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
        self._store = parts.store
        self._banks = parts.banks
        self._pipeline = parts.pipelines.retain
        self._check = parts.check
        self._access = parts.access

    async def one(
        self,
        caller: Caller,
        bank_id: str,
        item: RetainItem,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> RetainResult:
        """Store one memory."""
        self._banks.require(caller, "Retain", bank_id)
        await self._limits.admit((Demand(caller.tenant, bank_id, Operation.RETAIN),))
        if self._barriers.skips(bank_id, item):
            return EMPTY
        self._check.item(item, self._most_bytes(bank_id))
        self._check.request_id(request_id)
        if validate_only:
            return (await self._validate(caller, bank_id, [(item, "")]))[0]
        replay = self._replay(request_id, "retain", bank_id, item)
        results = await self._retain(caller, bank_id, [(item, "")], replay)
        return (await self._engines.copy(caller, bank_id, results))[0]

    async def batch(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_id: str | None = None,
        validate_only: bool = False,
    ) -> list[RetainResult]:
        """Store all items, or none."""
        self._banks.require(caller, "BatchRetain", bank_id)
        self._check.item_count(items)
        await self._limits.admit((Demand(caller.tenant, bank_id, Operation.RETAIN, len(items)),))
        skipped = {index for index, item in enumerate(items) if self._barriers.skips(bank_id, item)}
        self._check.items(items, self._most_bytes(bank_id), skipped)
        self._check.request_id(request_id)
        placed = [(item, f"items[{index}].") for index, item in enumerate(items) if index not in skipped]
        if not placed:
            return [EMPTY] * len(items)
        if validate_only:
            results = iter(await self._validate(caller, bank_id, placed))
        else:
            replay = self._replay(request_id, "retain_batch", bank_id, items)
            stored = await self._retain(caller, bank_id, placed, replay)
            results = iter(await self._engines.copy(caller, bank_id, stored))
        return [EMPTY if index in skipped else next(results) for index in range(len(items))]

    async def many(
        self,
        caller: Caller,
        bank_id: str,
        items: Sequence[RetainItem],
        *,
        request_ids: Sequence[str | None] = (),
    ) -> list[RetainResult | AstrocyteError]:
        """Store what can be stored."""
        self._banks.require(caller, "StreamRetain", bank_id)
        if request_ids and len(request_ids) != len(items):
            raise ValidationError(f"has {len(request_ids)} entries for {len(items)} items", field="request_ids")
        ids = request_ids or [None] * len(items)
        most_bytes = self._most_bytes(bank_id)
        results: dict[int, RetainResult | AstrocyteError] = {}
        group: dict[int, Replay | None] = {}
        for index, (item, request_id) in enumerate(zip(items, ids, strict=True)):
            try:
                await self._limits.admit((Demand(caller.tenant, bank_id, Operation.RETAIN),))
                if self._barriers.skips(bank_id, item):
                    results[index] = EMPTY
                    continue
                self._check.item(item, most_bytes)
                self._check.request_id(request_id)
            except AstrocyteError as error:
                results[index] = error
                continue
            replay = self._replay(request_id, "retain", bank_id, item)
            if replay is not None and any(one and one.key.request_id == request_id for one in group.values()):
                # It is answered by what became of the first one.
                results |= await self._together(caller, bank_id, items, group)
                group = {}
            group[index] = replay
        results |= await self._together(caller, bank_id, items, group)
        return [await self._kept(caller, bank_id, results[index]) for index in range(len(items))]

    async def _kept(
        self, caller: Caller, bank_id: str, outcome: RetainResult | AstrocyteError
    ) -> RetainResult | AstrocyteError:
        """What became of one item, with what an engine beside the bank did."""
        if isinstance(outcome, AstrocyteError):
            return outcome
        try:
            return (await self._engines.copy(caller, bank_id, [outcome]))[0]
        except AstrocyteError as error:
            return error

    async def _together(
        self, caller: Caller, bank_id: str, items: Sequence[RetainItem], group: Mapping[int, Replay | None]
    ) -> dict[int, RetainResult | AstrocyteError]:
        """What became of the chosen items, stored in one commit; each for itself where one of them spoils it.

        They are judged once: what is stored again for itself has passed the barriers, and counts as one.
        """
        results: dict[int, RetainResult | AstrocyteError] = {}
        passed: dict[int, tuple[RetainItem, Warnings]] = {}
        for index, replay in group.items():
            try:
                response = None if replay is None else self._store.find_response(caller.tenant, replay.key)
                if replay is not None and response is not None:
                    results[index] = replay.decode(response)[0]
                    continue
                (placed,), (warnings,) = await self._screened(caller, bank_id, [(items[index], "")])
            except AstrocyteError as error:
                results[index] = error
            else:
                passed[index] = placed[0], warnings
        try:
            return results | await self._judged(caller, bank_id, passed, group)
        except AstrocyteError as error:
            return results | dict.fromkeys(passed, error)

    async def _judged(
        self,
        caller: Caller,
        bank_id: str,
        passed: Mapping[int, tuple[RetainItem, Warnings]],
        group: Mapping[int, Replay | None],
    ) -> dict[int, RetainResult | AstrocyteError]:
        """What became of items that passed the barriers."""
        if not passed:
            return {}
        kept, refused = await self._quality.judge(caller.tenant, bank_id, [(item, "") for item, _ in passed.values()])
        places = [index for place, index in enumerate(passed) if place not in refused]
        warnings = {index: said for index, (_, said) in passed.items()}
        told = {
            index: retelling(replay, [warnings[index]], {}) for index in places if (replay := group[index]) is not None
        }
        results: dict[int, RetainResult | AstrocyteError] = {
            index: with_refusals((), {0: refused[place]})[0] for place, index in enumerate(passed) if place in refused
        }
        try:
            replays = [
                replace(replay, place=places.index(index)) for index, replay in told.items() if replay is not None
            ]
            stored = await self._store_or_wait(caller, bank_id, kept, replays) if kept else []
            results |= zip(places, stored, strict=True)
        except (ValidationError, MemoryNotFound, Conflict):
            for index, one in zip(places, kept, strict=True):
                results[index] = await self._alone(caller, bank_id, one, told.get(index))
        fresh = [
            (one, result)
            for index, one in zip(places, kept, strict=True)
            if isinstance(result := results[index], RetainResult)
        ]
        self._quality.note(caller.tenant, bank_id, [one for one, _ in fresh], [result for _, result in fresh])
        return {
            index: with_warnings([result], [warnings[index]])[0] if isinstance(result, RetainResult) else result
            for index, result in results.items()
        }

    async def _alone(
        self, caller: Caller, bank_id: str, item: tuple[RetainItem, str], replay: Replay | None
    ) -> RetainResult | AstrocyteError:
        """What became of an item that was judged before."""
        try:
            response = None if replay is None else self._store.find_response(caller.tenant, replay.key)
            if replay is not None and response is not None:
                return replay.decode(response)[0]
            return (await self._store_or_wait(caller, bank_id, [item], [] if replay is None else [replay]))[0]
        except AstrocyteError as error:
            return error

    async def _retain(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], replay: Replay | None
    ) -> list[RetainResult]:
        if replay is not None:
            response = self._store.find_response(caller.tenant, replay.key)
            if response is not None:
                return replay.decode(response)
        return await self._new(caller, bank_id, items, [] if replay is None else [replay])

    async def _new(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], replays: Sequence[Replay]
    ) -> list[RetainResult]:
        """Store what has not been answered before, or let it wait for a provider."""
        items, warnings = await self._screened(caller, bank_id, items)
        kept, refused = await self._quality.judge(caller.tenant, bank_id, items)
        told = [one for replay in replays if (one := retelling(replay, warnings, refused)) is not None]
        results = await self._store_or_wait(caller, bank_id, kept, told) if kept else []
        if refused and len(results) == len(items):
            # An equal request was answered first, and this is all of its answer.
            return results
        self._quality.note(caller.tenant, bank_id, kept, results)
        return with_warnings(with_refusals(results, refused), warnings)

    async def _store_or_wait(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], replays: Sequence[Replay]
    ) -> list[RetainResult]:
        engine = self._engines.only(caller, bank_id)
        if engine is not None:
            return await self._elsewhere(caller, engine, bank_id, items, replays)
        waiting = self._banks.known(caller, bank_id)
        if waiting is not None and self._escalation.retries.holds(waiting):
            return await self._wait(caller, bank_id, items, replays)
        try:
            return await self._store_new(caller, bank_id, items, replays)
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
        items: Sequence[tuple[RetainItem, str]],
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
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], replays: Sequence[Replay]
    ) -> list[RetainResult]:
        """Put items into the retry queue."""
        bank = self._bank_or_draft(caller, bank_id)
        drafts = await self._pipeline.check(bank, items)
        if not bank.key:
            bank = await self._banks.make(caller, bank_id)
        limit = self._overrides.of[bank_id].homeostasis.quotas.storage_bytes_per_bank
        async with self._storage.room(bank, _size(drafts) if limit is not None else 0, limit):
            try:
                return await self._escalation.retries.put(caller, bank, drafts, self._access.name(caller), replays)
            except Conflict:
                # An equal request came first.
                for replay in replays:
                    response = self._store.find_response(caller.tenant, replay.key) if replay.place is None else None
                    if response is not None:
                        return replay.decode(response)
                raise

    async def _store_new(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], replays: Sequence[Replay]
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
        items: Sequence[tuple[RetainItem, str]],
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
        principal, copies = self._access.name(caller), self._engines.order(caller, bank.bank_id)
        async with self._storage.room(bank, 0 if limit is None else _size(drafts), limit):
            return await self._pipeline.store(bank, drafts, principal, dedup, replays, copies=copies)

    async def _validate(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]]
    ) -> list[RetainResult]:
        """What would be said of items, which are not stored."""
        items, warnings = await self._screened(caller, bank_id, items, quiet=True)
        await self._pipeline.check(self._bank_or_draft(caller, bank_id), items)
        return with_warnings([RetainResult(stored=False)] * len(items), warnings)

    async def _screened(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], *, quiet: bool = False
    ) -> tuple[list[tuple[RetainItem, str]], list[Warnings]]:
        """Items with what their profiles add, as the barriers let them pass, and what is said about each."""
        # Who may not write learns nothing of what the bank takes.
        self._bank_or_draft(caller, bank_id)
        return await self._intake.taken(bank_id, items, quiet=quiet)

    async def _prepared(
        self, caller: Caller, bank_id: str, items: Sequence[tuple[RetainItem, str]], rulings: Sequence[Ruling] = ()
    ) -> tuple[Bank, list[Draft]]:
        """Drafts, and the bank, made if it may be and if the items are right for it: a refused write makes none."""
        bank = self._bank_or_draft(caller, bank_id)
        drafts = await self._pipeline.prepare(bank, items)
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
        return self._banks.expected(caller, "Retain", bank_id)

    def _most_bytes(self, bank_id: str) -> int:
        return self._overrides.of[bank_id].homeostasis.retain_max_content_bytes

    @staticmethod
    def _replay(request_id: str | None, operation: str, *parts: object) -> Replay | None:
        key = key_of(request_id, operation, *parts)
        return None if key is None else Replay(key, encode_results, decode_results)


def _size(drafts: Sequence[Draft]) -> int:
    """Bytes of the contents."""
    return sum(len(draft.content.encode()) for draft in drafts)


def with_warnings(results: Sequence[RetainResult], warnings: Sequence[Warnings]) -> list[RetainResult]:
    """Results with what profiles and barriers say about each, before what the pipeline says."""
    return [
        replace(result, warnings=(*said, *result.warnings)) if said else result
        for result, said in zip(results, warnings, strict=True)
    ]


def retelling(replay: Replay, warnings: Sequence[Warnings], refused: Mapping[int, str]) -> Replay | None:
    """A replay for what is left of its request; its answer, when it is given again, says what the first one said.

    None for a request whose only item was refused: it is judged anew when it comes again.
    """
    place = replay.place
    if place is None:
        if not (refused or any(warnings)):
            return replay
        return replace(
            replay, encode=lambda results: encode_results(with_warnings(with_refusals(results, refused), warnings))
        )
    if place in refused:
        return None
    said = warnings[place : place + 1]
    before = sum(other < place for other in refused)
    encode = (lambda results: encode_results(with_warnings(results, said))) if any(said) else replay.encode
    return replace(replay, encode=encode, place=place - before)
