"""What is stored and forgotten at the engines beside the banks.

This server's own side comes first, for it knows the legal holds, and what it has committed can be told again. A
retain that both sides should keep reads back what was stored and copies that, under an id of its own version: so a
repeated call completes what an engine missed, and stores nothing twice. What is to be forgotten must be forgotten by
the engine too before anybody hears that it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from astrocyte.errors import AstrocyteError, FailedPrecondition, ProviderUnavailable
from astrocyte.model import (
    ALSO_RELEVANT_TO,
    Bank,
    Caller,
    EngineForget,
    EngineOutcome,
    ForgetResult,
    ForgetSelector,
    Memory,
    RetainItem,
    RetainResult,
    RetentionAction,
)
from astrocyte.policy.engines import Engine, Engines, cause_of
from astrocyte.policy.events import emit
from astrocyte.providers.engines import EngineItem
from astrocyte.stores.protocols import MemoryStore

BOTH, ENGINE = "both", "engine"
READ_ONLY, DRY_RUN, HOP_LIMIT = "read_only", "dry_run", "hop_limit"


class EngineWriting:
    """Stores and forgets at engines.

    Args:
        engines: All of them.
        store: Where copies are made from.
        name_of: Who a caller counts as.
    """

    def __init__(self, engines: Engines, store: MemoryStore, name_of: Callable[[Caller], str]) -> None:
        self._engines = engines
        self._store = store
        self._name_of = name_of

    def only(self, caller: Caller, bank_id: str) -> Engine | None:
        """The engine that alone keeps what is retained into a bank, if that is so."""
        engine = self._engines.beside(caller.tenant, bank_id)
        return engine if engine is not None and engine.settings.retain_target == ENGINE else None

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
        seconds = engine.settings.write_timeout_seconds
        call = engine.call_for(caller, self._name_of(caller), bank_id, seconds)
        results = list(await engine.ask(lambda: engine.provider.retain(call, items), seconds))
        if len(results) != len(items) or not all(isinstance(result, RetainResult) for result in results):
            raise ProviderUnavailable(
                f"engine {engine.name!r} answered with something else than a result for each item",
                metadata={"engine": engine.name, "cause": "not_an_answer"},
            )
        return [_theirs(result) for result in results]

    async def copy(self, caller: Caller, bank_id: str, results: Sequence[RetainResult]) -> list[RetainResult]:
        """Results of a retain, what they stored being copied to the engine where both sides keep it.

        Raises:
            ProviderUnavailable: It was not, both are required; this side has it: repeat the call to complete it.
        """
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is None or engine.settings.retain_target != BOTH:
            return list(results)
        bank = self._store.get_bank(caller.tenant, bank_id)
        copied = []
        for result in results:
            problem = None if bank is None else await self._copied(caller, engine, bank, result)
            copied.append(replace(result, warnings=(*result.warnings, problem)) if problem else result)
        return copied

    async def _copied(self, caller: Caller, engine: Engine, bank: Bank, result: RetainResult) -> str | None:
        """What went wrong with a copy, in a sentence for the caller."""
        if result.memory_id is None:
            return None
        if result.retention_action == RetentionAction.QUEUED:
            return f"engine: {engine.name} does not hold it; the memory waits in this server's queue"
        memory = self._store.memory(bank, result.memory_id)
        if memory is None:
            return None
        try:
            if result.was_update:
                await self._forget(caller, engine, bank.bank_id, ForgetSelector(memory_ids=(memory.memory_id,)))
            await self.store(caller, engine, bank.bank_id, [_copy_of(memory)])
        except AstrocyteError as error:
            self._missed(engine, bank.bank_id, "Retain", error)
            return f"engine: {engine.name} does not hold it ({cause_of(error)})"
        return None

    async def changed(self, caller: Caller, bank_id: str, memory: Memory) -> None:
        """Let an engine that keeps a copy of a memory have its new version in place of the old one.

        A copy that lags behind is never shown, so that is no failure unless both sides are required.
        """
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is None or engine.settings.retain_target != BOTH:
            return
        try:
            await self._forget(caller, engine, bank_id, ForgetSelector(memory_ids=(memory.memory_id,)))
            await self.store(caller, engine, bank_id, [_copy_of(memory)])
        except AstrocyteError as error:
            self._missed(engine, bank_id, "UpdateMemory", error)

    def check_forget(self, caller: Caller, bank_id: str) -> None:
        """Refuse to forget what an engine would keep because it cannot be asked, before anything is changed.

        Raises:
            FailedPrecondition: The call has passed too many servers.
        """
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is not None and not engine.settings.read_only and engine.too_far(caller):
            raise _too_far(engine)

    async def forget(
        self,
        caller: Caller,
        bank_id: str,
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
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is None:
            return result
        reason_not = READ_ONLY if engine.settings.read_only else DRY_RUN if result.dry_run else ""
        if reason_not:
            done = EngineForget(engine.name, EngineOutcome.NOT_ASKED, reason=reason_not)
            return replace(result, engines=(done,))
        selectors = [selector]
        further = tuple(one for one in result.memory_ids if one not in selector.memory_ids)
        if further and not selector.scope:
            # Those that were met here may be other ones there, by labels or times that differ since.
            selectors.append(ForgetSelector(memory_ids=further))
        count = 0
        for one in selectors:
            count += await self._forget(caller, engine, bank_id, one, compliance=compliance, reason=reason)
        return replace(result, engines=(EngineForget(engine.name, EngineOutcome.ANSWERED, count),))

    async def forget_bank(self, caller: Caller, bank_id: str) -> None:
        """Let the engine erase all of a bank that is gone here.

        Raises:
            ProviderUnavailable: It failed and may still hold it; repeat the deletion with the same request id.
        """
        engine = self._engines.beside(caller.tenant, bank_id)
        if engine is not None and not engine.settings.read_only:
            await self._forget(
                caller, engine, bank_id, ForgetSelector(scope="all"), compliance=True, reason="the bank was deleted"
            )

    async def _forget(
        self,
        caller: Caller,
        engine: Engine,
        bank_id: str,
        selector: ForgetSelector,
        *,
        compliance: bool = False,
        reason: str | None = None,
    ) -> int:
        seconds = engine.settings.write_timeout_seconds
        call = engine.call_for(caller, self._name_of(caller), bank_id, seconds)
        result: object = await engine.ask(
            lambda: engine.provider.forget(call, selector, compliance=compliance, reason=reason), seconds
        )
        if not isinstance(result, ForgetResult):
            raise ProviderUnavailable(
                f"engine {engine.name!r} did not say what it forgot",
                metadata={"engine": engine.name, "cause": "not_an_answer"},
            )
        return max(0, result.deleted_count)

    @staticmethod
    def _missed(engine: Engine, bank_id: str, operation: str, error: AstrocyteError) -> None:
        """Tell the operator of a copy that was not made, and raise where both sides are required."""
        emit("engine_failed", operation=operation, bank_id=bank_id, engine=engine.name, reason=cause_of(error))
        if engine.settings.require_both:
            raise error


def _too_far(engine: Engine) -> FailedPrecondition:
    return FailedPrecondition(
        f"the call has passed {engine.settings.most_hops} servers, as many as it may before engine {engine.name!r} is "
        "asked; nothing was changed",
        metadata={"engine": engine.name, "cause": HOP_LIMIT},
    )


def _copy_of(memory: Memory) -> EngineItem:
    """The current version of a memory, as it is stored elsewhere, where this server's other banks mean nothing."""
    item = RetainItem(
        content=memory.content,
        content_type=memory.content_type,
        metadata={key: value for key, value in memory.metadata.items() if key != ALSO_RELEVANT_TO},
        tags=memory.tags,
        occurred_at=memory.occurred_at,
        valid_from=memory.valid_from,
        valid_until=memory.valid_until,
        source=memory.source,
        session_id=memory.session_id,
        speaker=memory.speaker,
        fact_type=memory.fact_type,
    )
    return EngineItem(item, memory.memory_id, f"{memory.memory_id}.{memory.position}")


def _theirs(result: RetainResult) -> RetainResult:
    """An engine's result, as far as its words can be believed: a position of its own means nothing here."""
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
