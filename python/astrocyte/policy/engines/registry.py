"""The engines beside the pipeline: the engine of each bank, and guarded calls to it.

A call has a deadline and passes the engine's own circuit breaker. What an engine does wrong becomes
`ProviderUnavailable`, or `DeadlineExceeded` where it was late; what it refuses, such as a caller whom it does not let
in, becomes `FailedPrecondition` and says nothing about its health. Messages of engines are never repeated: they may
hold anything. The metadata of all three have ``engine`` and, where it said one, its reason as ``cause``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from astrocyte.config import Settings
from astrocyte.config.engines import PIPELINE, HybridSettings
from astrocyte.errors import (
    AccessDenied,
    AlreadyExists,
    AstrocyteError,
    CapabilityNotSupported,
    ConfigError,
    Conflict,
    DeadlineExceeded,
    FailedPrecondition,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    ProviderUnavailable,
    QuotaExceeded,
    RateLimited,
    ValidationError,
)
from astrocyte.model import DEFAULT_PRINCIPAL, Bank, Caller, EngineInfo, ForgetResult, ForgetSelector, RetainResult
from astrocyte.policy.glob_patterns import matches
from astrocyte.providers.circuit_breaker import Breaker
from astrocyte.providers.engines import EngineCall, EngineHealth, EngineItem, EngineProvider
from astrocyte.providers.hybrid import HybridEngineProvider

T = TypeVar("T")
# What an engine may say without being broken.
REFUSALS = (
    AccessDenied,
    AlreadyExists,
    CapabilityNotSupported,
    Conflict,
    FailedPrecondition,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    QuotaExceeded,
    RateLimited,
    ValidationError,
)
# How long somebody waits who asks how an engine is.
HEALTH_SECONDS = 2.0
# Of what an engine says about its health.
SHOWN_CHARS = 200


class Engine:
    """One engine, guarded.

    Args:
        name: What traces and errors call it.
        kind: Its provider's name.
        settings: What it does, and for which banks.
        provider: It.
        breaker: Its own.
        is_source: It is asked in recalls beside the bank's engine, and takes part in nothing else.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        settings: HybridSettings,
        provider: EngineProvider,
        breaker: Breaker,
        *,
        is_source: bool = False,
    ) -> None:
        self.is_source = is_source
        self.name = name
        self.kind = kind
        self.settings = settings
        self.provider = provider
        self.breaker = breaker
        self.able = provider.capabilities()
        self._check()

    def stands_beside(self, tenant: str, bank_id: str) -> bool:
        """True if the engine serves the bank."""
        return tenant == self.settings.tenant and any(matches(one, bank_id) for one in self.settings.banks)

    def too_far(self, caller: Caller) -> bool:
        """True if a call has passed as many servers as allowed: one more could close a cycle."""
        return caller.hops >= self.settings.most_hops

    def call_for(self, caller: Caller, principal: str, bank_id: str, timeout_seconds: float) -> EngineCall:
        """The call for the engine; ``principal`` is the caller's effective principal."""
        name = caller.on_behalf_of or principal
        return EngineCall(
            bank_id, caller.tenant, "" if name == DEFAULT_PRINCIPAL else name, caller.hops + 1, timeout_seconds
        )

    async def ask(self, work: Callable[[], Awaitable[T]], seconds: float) -> T:
        """The engine's answer.

        Raises:
            FailedPrecondition: It works, and does not do that.
            DeadlineExceeded: It did not answer in time.
            ProviderUnavailable: It failed; or `CircuitOpen`, it did so often, and was not asked.
        """
        refusal: AstrocyteError | None = None
        with self.breaker.call():
            try:
                async with asyncio.timeout(seconds):
                    return await work()
            except REFUSALS as error:
                refusal = error
            except (TimeoutError, DeadlineExceeded) as error:
                raise DeadlineExceeded(
                    f"engine {self.name!r} did not answer in {seconds:g} s", metadata={"engine": self.name}
                ) from error
            except AstrocyteError as error:
                raise self._failure(error.reason) from error
            except Exception as error:
                raise self._failure(type(error).__name__) from error
        raise FailedPrecondition(
            f"engine {self.name!r} refused: {refusal.reason}",
            metadata={"engine": self.name, "cause": refusal.reason},
        ) from refusal

    async def retain(self, call: EngineCall, items: Sequence[EngineItem]) -> list[RetainResult]:
        """The results of items that are stored there.

        Raises:
            AstrocyteError: As `ask`; it may have stored some of them.
        """
        results = list(await self.ask(lambda: self.provider.retain(call, items), call.timeout_seconds))
        if len(results) != len(items) or not all(isinstance(result, RetainResult) for result in results):
            raise ProviderUnavailable(
                f"engine {self.name!r} did not return one result for each item",
                metadata={"engine": self.name, "cause": "not_an_answer"},
            )
        return results

    async def forget(
        self, call: EngineCall, selector: ForgetSelector, *, compliance: bool = False, reason: str | None = None
    ) -> int:
        """The number of memories that are forgotten there.

        Raises:
            AstrocyteError: As `ask`; it may still hold them.
        """
        result: object = await self.ask(
            lambda: self.provider.forget(call, selector, compliance=compliance, reason=reason), call.timeout_seconds
        )
        if not isinstance(result, ForgetResult):
            raise ProviderUnavailable(
                f"engine {self.name!r} returned no valid result of the forget",
                metadata={"engine": self.name, "cause": "not_an_answer"},
            )
        return max(0, result.deleted_count)

    async def describe(self) -> EngineInfo:
        """The description of the engine and its health."""
        health = EngineHealth(healthy=False)
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                health = await self.provider.health()
        except AstrocyteError as error:
            health = EngineHealth(healthy=False, detail=error.reason)
        except Exception as error:  # noqa: BLE001 - whatever an engine does, somebody asked how it is
            health = EngineHealth(healthy=False, detail=type(error).__name__)
        return EngineInfo(
            name=self.name,
            provider=self.kind,
            banks=self.settings.banks,
            retain_target=self.settings.retain_target,
            read_only=self.settings.read_only,
            healthy=health.healthy,
            circuit=str(self.breaker.state),
            capabilities=self.able.names(),
            detail=str(health.detail)[:SHOWN_CHARS],
        )

    def _check(self) -> None:
        """Refuse settings that need a missing ability of the engine."""
        settings = self.settings
        wanted = {
            "retain": settings.retain_target != PIPELINE,
            "forget": not settings.read_only,
            "reflect": settings.reflect_target != PIPELINE,
        }
        for ability, needed in wanted.items():
            if needed and not getattr(self.able, ability):
                hint = "; set read_only" if ability == "forget" and settings.retain_target == PIPELINE else ""
                raise ConfigError(
                    f"engines.{self.name}: its provider does not support {ability}, which the settings require{hint}",
                    metadata={"key": f"engines.{self.name}"},
                )

    def _failure(self, cause: str) -> ProviderUnavailable:
        return ProviderUnavailable(
            f"engine {self.name!r} failed ({cause})", metadata={"engine": self.name, "cause": cause}
        )


class Engines:
    """All engines, in the order of the configuration.

    Args:
        settings: When a circuit opens.
        around: What is laid around each, given its name; None lays nothing.
    """

    def __init__(
        self, settings: Settings, around: Callable[[str, EngineProvider], EngineProvider] | None = None
    ) -> None:
        self._settings = settings
        self._around = around or (lambda _, engine: engine)
        # Empty in most servers, whose calls ask for nothing then.
        self.all: list[Engine] = []
        self._watch: Callable[[Breaker], None] | None = None

    def subscribe(self, watch: Callable[[Breaker], None]) -> None:
        """Call ``watch`` with the breaker of each engine, also of engines added later."""
        self._watch = watch
        for engine in self.all:
            watch(engine.breaker)

    def __iter__(self) -> Iterator[Engine]:
        """Those that may hold what this server stores: all but sources."""
        return (one for one in self.all if not one.is_source)

    def add(
        self, name: str, kind: str, settings: HybridSettings, provider: EngineProvider, *, is_source: bool = False
    ) -> None:
        """Register an engine for its banks; or a source, of which a bank may have several.

        Raises:
            ConfigError: There is one of that name, the name is the pipeline's, or it cannot do what it should.
        """
        if name == PIPELINE or any(one.name == name for one in self.all):
            raise ConfigError(
                f"engines.{name}: the name is in use; choose another", metadata={"key": f"engines.{name}"}
            )
        breaker = Breaker(f"engine:{name}", self._settings.escalation.circuit_breaker)
        self.all.append(Engine(name, kind, settings, self._around(name, provider), breaker, is_source=is_source))
        if self._watch is not None:
            self._watch(breaker)

    def replace_pipeline(self, name: str, engine: EngineProvider) -> None:
        """Register an engine for all banks without another engine, for retain, recall and, if able, reflect.

        Raises:
            ConfigError: As `add`.
        """
        self.attach(HybridEngineProvider(engine, retain_target="engine", pipeline_recall_weight=0.0, name=name))

    def attach(self, hybrid: HybridEngineProvider | EngineProvider) -> None:
        """As `add`, for an engine that a program brings; a bare one takes the place of the pipeline.

        Raises:
            ConfigError: As `add`; or the pipeline of the hybrid is not the one that there is.
            ValidationError: It is no engine.
        """
        if not isinstance(hybrid, HybridEngineProvider):
            hybrid = HybridEngineProvider(hybrid, retain_target="engine", pipeline_recall_weight=0.0)
        if hybrid.pipeline is not None:
            hybrid.pipeline.check(self._settings)
        self.add(hybrid.name, type(hybrid.engine).__name__, hybrid.settings(), hybrid.engine)

    def beside(self, tenant: str, bank_id: str) -> Engine | None:
        """The first engine of any of the banks."""
        return next((one for one in self.all if not one.is_source and one.stands_beside(tenant, bank_id)), None)

    def of_bank(self, bank: Bank) -> Engine | None:
        """As `beside`."""
        return self.beside(bank.tenant, bank.bank_id)

    def recalled_for(self, bank: Bank) -> list[Engine]:
        """All that a recall of the bank asks: its engine first, if it has one, then its sources."""
        engine = self.of_bank(bank)
        sources = [one for one in self.all if one.is_source and one.stands_beside(bank.tenant, bank.bank_id)]
        return sources if engine is None else [engine, *sources]

    async def describe(self) -> list[EngineInfo]:
        """Descriptions of all engines, with their health, queried concurrently."""
        return list(await asyncio.gather(*[one.describe() for one in self.all]))

    async def close(self) -> None:
        """Release the connections of all engines, even if one fails."""
        await asyncio.gather(*[one.provider.close() for one in self.all], return_exceptions=True)


def cause_of(error: AstrocyteError) -> str:
    """The reason for which a side did not answer: the engine's own, where it said one."""
    return error.metadata.get("cause") or error.reason
