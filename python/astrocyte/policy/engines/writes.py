"""Retains and forgets at the engines beside the banks.

This server's own side comes first, for it knows the legal holds. What both sides should keep waits for the engine from
the commit on (`astrocyte.policy.engines.outbox_relay`): it is brought to it before the caller hears of it, or else
later. What is to be forgotten must be forgotten by the engine too before anybody hears that it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from astrocyte.errors import AstrocyteError, FailedPrecondition
from astrocyte.model import (
    Bank,
    Caller,
    EngineForget,
    EngineInfo,
    EngineOutcome,
    ForgetResult,
    ForgetSelector,
    Memory,
    RetainResult,
    RetentionAction,
)
from astrocyte.policy.engines.outbox_relay import BOTH, OutboxRelay
from astrocyte.policy.engines.registry import Engine, Engines, cause_of
from astrocyte.policy.events import emit
from astrocyte.providers.engines import EngineCall, EngineItem
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.protocols import MemoryStore

ENGINE = "engine"
READ_ONLY, DRY_RUN, HOP_LIMIT = "read_only", "dry_run", "hop_limit"


class EngineWriting:
    """Stores and forgets at engines.

    Args:
        engines: All of them.
        outbox_relay: Delivers queued memories to the engines.
        store: Knows the banks.
        name_of: Who a caller counts as.
    """

    def __init__(
        self, engines: Engines, outbox_relay: OutboxRelay, store: MemoryStore, name_of: Callable[[Caller], str]
    ) -> None:
        self._engines = engines
        self._outbox_relay = outbox_relay
        self._store = store
        self._name_of = name_of

    def only(self, caller: Caller, bank_id: str) -> Engine | None:
        """The engine that is the only target of retains into a bank, if any."""
        engine = self._engines.beside(caller.tenant, bank_id)
        return engine if engine is not None and engine.settings.retain_target == ENGINE else None

    def order(self, caller: Caller, bank_id: str) -> CopyOrder | None:
        """The outbox order for the engine of a bank; it is written in the caller's commit."""
        return self._outbox_relay.order(caller.tenant, bank_id, self._name_of(caller), caller.on_behalf_of, caller.hops)

    @asynccontextmanager
    async def turn(self, caller: Caller, bank_id: str) -> AsyncIterator[None]:
        """Hold the exclusive right to change a bank at its engine: no copy comes between two forgets."""
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is None:
            yield
            return
        async with self._outbox_relay.turn(engine, bank_id):
            yield

    async def store(
        self, caller: Caller, engine: Engine, bank_id: str, items: Sequence[EngineItem]
    ) -> list[RetainResult]:
        """Store items at an engine, all or none.

        Raises:
            FailedPrecondition: It refused, or the call has passed too many servers.
            ProviderUnavailable: It failed, and may have stored them: repeat the call with the same request id.
        """
        if engine.too_far(caller):
            raise _too_far(engine)
        return [_theirs(result) for result in await engine.retain(self._call(caller, engine, bank_id), items)]

    async def copy(self, caller: Caller, bank_id: str, results: Sequence[RetainResult]) -> list[RetainResult]:
        """Results of a retain, what they stored being brought to the engine where both sides keep it.

        Raises:
            ProviderUnavailable: It was not, both are required; this side has it, and brings it there later: repeat the
                call to know that it did.
        """
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is None or engine.settings.retain_target != BOTH:
            return list(results)
        bank = self._store.get_bank(caller.tenant, bank_id)
        kept = [one.memory_id for one in results if one.memory_id is not None and not _queued(one)]
        problem, left = None, set[str]()
        if bank is not None and kept:
            problem, left = await self._brought(caller, engine, bank, kept, "Retain")
        return [
            replace(one, warnings=(*one.warnings, said)) if (said := _missing(engine, one, problem, left)) else one
            for one in results
        ]

    async def changed(self, caller: Caller, bank: Bank, memory: Memory, operation: str) -> None:
        """Update the engine's copy of a memory.

        A copy that lags behind is never shown, so that is no failure unless both sides are required.
        """
        engine = self._engines.of_bank(bank)
        if engine is not None and engine.settings.retain_target == BOTH:
            await self._brought(caller, engine, bank, [memory.memory_id], operation)

    async def _brought(
        self, caller: Caller, engine: Engine, bank: Bank, memory_ids: Sequence[str], operation: str
    ) -> tuple[AstrocyteError | None, set[str]]:
        """Deliver memories to an engine; returns the failure, if any, and the memories that are not delivered."""
        try:
            if engine.too_far(caller):
                raise _too_far(engine)
            await self._outbox_relay.bring(engine, bank, memory_ids)
        except AstrocyteError as error:
            emit("engine_failed", operation=operation, bank_id=bank.bank_id, engine=engine.name, reason=cause_of(error))
            if engine.settings.require_both:
                raise
            left = set(memory_ids) if engine.too_far(caller) else self._outbox_relay.left(engine, bank, memory_ids)
            return error, left
        return None, set()

    def check_forget(self, caller: Caller, bank_id: str) -> None:
        """Refuse a forget that an engine cannot do, before anything is changed.

        Raises:
            FailedPrecondition: The call has passed too many servers.
        """
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is not None and not engine.settings.read_only and engine.too_far(caller):
            raise _too_far(engine)

    async def forget(
        self,
        caller: Caller,
        bank: Bank,
        selector: ForgetSelector,
        result: ForgetResult,
        *,
        compliance: bool,
        reason: str | None,
    ) -> ForgetResult:
        """The result of a forget with what the engine did: it forgets what the selector meets, there and here.

        Raises:
            ProviderUnavailable: The engine failed and may still hold it; this side has forgotten: repeat the call.
            FailedPrecondition: The engine refused, and holds it.
        """
        engine = self._engines.of_bank(bank)
        if engine is None:
            return result
        reason_not = READ_ONLY if engine.settings.read_only else DRY_RUN if result.dry_run else ""
        if reason_not:
            done = EngineForget(engine.name, EngineOutcome.NOT_ASKED, reason=reason_not)
            return replace(result, engines=(done,))
        call = self._call(caller, engine, bank.bank_id)
        try:
            count = await engine.forget(call, selector, compliance=compliance, reason=reason)
            if engine.settings.retain_target == BOTH:
                count += await self._outbox_relay.forgotten(engine, call, bank, selector, result.position)
        except AstrocyteError:
            # What is copied here it will be told all the same, whether the caller comes again or not.
            self._outbox_relay.note(engine.name)
            raise
        deleted = result.deleted_count
        if engine.settings.retain_target != BOTH:
            count += await self._further(engine, call, selector, result, compliance=compliance, reason=reason)
            # Its memories are its own; copies of ours are counted already.
            deleted = result.deleted_count + count
        done = EngineForget(engine.name, EngineOutcome.ANSWERED, count)
        return replace(result, deleted_count=deleted, engines=(done,))

    @staticmethod
    async def _further(
        engine: Engine,
        call: EngineCall,
        selector: ForgetSelector,
        result: ForgetResult,
        *,
        compliance: bool,
        reason: str | None,
    ) -> int:
        """As much, of what was met here and may not be met there, by labels or times that differ since."""
        ids = tuple(one for one in result.memory_ids if one not in selector.memory_ids)
        if not ids or selector.scope:
            return 0
        return await engine.forget(call, ForgetSelector(memory_ids=ids), compliance=compliance, reason=reason)

    async def forget_bank(self, caller: Caller, bank_id: str) -> None:
        """Erase a deleted bank at its engine.

        Raises:
            ProviderUnavailable: It failed and may still hold it; repeat the deletion with the same request id.
        """
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is not None and not engine.settings.read_only:
            call = self._call(caller, engine, bank_id)
            await engine.forget(call, ForgetSelector(scope="all"), compliance=True, reason="the bank was deleted")

    async def describe(self, caller: Caller) -> list[EngineInfo]:
        """All engines and how each is; with what waits for it, where it is of banks of the caller's tenant."""
        own = {one.name: one for one in self._engines if one.settings.tenant == caller.tenant}
        return [
            replace(info, outbox=self._outbox_relay.state(own[info.name])) if info.name in own else info
            for info in await self._engines.describe()
        ]

    def _call(self, caller: Caller, engine: Engine, bank_id: str) -> EngineCall:
        return engine.call_for(caller, self._name_of(caller), bank_id, engine.settings.write_timeout_seconds)


def _queued(result: RetainResult) -> bool:
    return result.retention_action == RetentionAction.QUEUED


def _missing(engine: Engine, result: RetainResult, problem: AstrocyteError | None, left: set[str]) -> str | None:
    """The warning about a memory that an engine does not have yet."""
    if _queued(result):
        return f"engine: {engine.name} does not hold it yet; the memory waits in this server's queue"
    if problem is None or result.memory_id not in left:
        return None
    cause = cause_of(problem)
    return f"engine: {engine.name} does not hold it{'' if cause == HOP_LIMIT else ' yet'} ({cause})"


def _too_far(engine: Engine) -> FailedPrecondition:
    return FailedPrecondition(
        f"the call has passed {engine.settings.most_hops} servers, as many as it may before engine {engine.name!r} is "
        "asked; nothing was changed",
        metadata={"engine": engine.name, "cause": HOP_LIMIT},
    )


def _theirs(result: RetainResult) -> RetainResult:
    """An engine's result without its position, which has no meaning here."""
    known = result.retention_action in {action.value for action in RetentionAction}
    action = RetentionAction.CREATED if result.stored else RetentionAction.SKIPPED
    return RetainResult(
        stored=bool(result.stored),
        memory_id=str(result.memory_id)[:256] if result.memory_id else None,
        deduplicated=bool(result.deduplicated),
        error=None if result.stored or result.deduplicated else "the engine did not store it",
        retention_action=str(result.retention_action) if known else action.value,
        memory_layer=str(result.memory_layer)[:64] if result.memory_layer else None,
        was_update=bool(result.was_update),
    )
