"""The protocol of engines: memory systems beside this server's pipeline. Implementations import it from here.

A distribution registers ``create(options)`` under the entry point group ``astrocyte.engine_providers``, where it
returns an `EngineProvider`; ``engines.<name>.provider`` in the settings names the entry point.

An engine is asked only by callers who may do in the bank what they ask, after rates, barriers and limits. What it
answers is text from outside: it is held against the query's filter, the limits and the barriers before anybody sees it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol, runtime_checkable

from astrocyte.model import (
    ForgetResult,
    ForgetSelector,
    MemoryHit,
    RecallQuery,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    RetainResult,
)

GROUP = "astrocyte.engine_providers"


@dataclass(frozen=True, slots=True)
class EngineCapabilities:
    """The abilities of an engine. A call that needs another ability is never sent to it.

    ``retain``, ``forget`` and ``reflect`` are the methods of these names. ``time_travel``: it honours ``as_of`` and
    ``valid_at``. ``temporal_search`` and ``graph_search`` say that it is good at questions about times, and at those
    about several people or things: the router sends it more of these.
    """

    retain: bool = True
    forget: bool = True
    reflect: bool = False
    time_travel: bool = False
    temporal_search: bool = False
    graph_search: bool = False

    def names(self) -> tuple[str, ...]:
        """The names of the abilities that it has."""
        return tuple(one.name for one in fields(self) if getattr(self, one.name))


@dataclass(frozen=True, slots=True)
class EngineCall:
    """The context of a call to an engine: the caller and the bank.

    ``principal`` is who calls, or for whom that one acts; "" where nobody said a name. ``hops`` counts the servers that
    the call has passed, this one included. It is given up after ``timeout_seconds``.
    """

    bank_id: str
    tenant: str = "default"
    principal: str = ""
    hops: int = 1
    timeout_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class EngineItem:
    """A memory to store.

    ``origin`` is its id in this server where both keep it: a later `EngineProvider.forget` may name it by that, and
    `EngineAnswer.origins` should say it. The same ``request_id`` with the same item is stored once.
    """

    item: RetainItem
    origin: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """Hits, best first, and the ``origin`` of those that were stored with one, by ``memory_id``."""

    hits: Sequence[MemoryHit]
    origins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineReflection:
    """An answer to a question, and the ``origin`` of those of its sources that were stored with one."""

    result: ReflectResult
    origins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """The availability of an engine, and the reason where it is unavailable."""

    healthy: bool
    detail: str = ""


@runtime_checkable
class EngineProvider(Protocol):
    """A memory system beside the pipeline. Used from one event loop.

    A method that fails raises; an `astrocyte.errors.AstrocyteError` is told by its reason, anything else by its class.
    `ProviderUnavailable`, `DeadlineExceeded`, `Unavailable` and unknown exceptions count as failures of the engine, and
    open its circuit when they come in a row; refusals such as `AccessDenied` do not. A call that takes too long is
    cancelled.
    """

    def capabilities(self) -> EngineCapabilities:
        """The abilities of the engine; constant during its life."""

    async def health(self) -> EngineHealth:
        """The current availability of the engine."""

    async def retain(self, call: EngineCall, items: Sequence[EngineItem]) -> Sequence[RetainResult]:
        """Store all items, or none; results in their order, ``memory_id`` the engine's own.

        Copies, which have an ``origin``, come again after a failure, perhaps with others: of these some may be stored.
        """

    async def recall(self, call: EngineCall, query: RecallQuery) -> EngineAnswer:
        """At most ``query.max_results`` hits, with metadata, tags and times, which the query's filter is held against.

        What a bank does not hold is an empty answer. Of the query's fields an engine may leave out what it does not
        know: what it brings is filtered again.
        """

    async def reflect(self, call: EngineCall, query: ReflectQuery) -> EngineReflection:
        """An answer to a question, with all of its sources.

        An answer whose sources name a memory that the server has forgotten, archived or changed is not shown.
        """

    async def forget(
        self, call: EngineCall, selector: ForgetSelector, *, compliance: bool, reason: str | None
    ) -> ForgetResult:
        """Forget the memories that meet all parts of the selector; return when none of them can be recalled again.

        ``memory_ids`` are ids of the engine's own and ``origin``s mixed; unknown ones are passed over. With
        ``compliance`` nothing of it may be left when this returns: an engine that cannot promise that raises.
        """

    async def close(self) -> None:
        """Release connections."""
