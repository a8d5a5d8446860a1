"""An engine that a test fills and breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AstrocyteError
from astrocyte.model import (
    ForgetResult,
    ForgetSelector,
    MemoryHit,
    RecallQuery,
    ReflectQuery,
    ReflectResult,
    RetainResult,
)
from astrocyte.providers.engines import (
    EngineAnswer,
    EngineCall,
    EngineCapabilities,
    EngineHealth,
    EngineItem,
    EngineReflection,
)
from astrocyte.providers.hybrid import HybridEngineProvider


@dataclass
class Shelf:
    """`EngineProvider` over a list: it recalls whatever it has, by words in common, and does as it is told."""

    able: EngineCapabilities = field(default_factory=lambda: EngineCapabilities(time_travel=True))
    rows: dict[str, MemoryHit] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[str, EngineCall]] = field(default_factory=list)
    received: list[EngineItem] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    refuses: dict[str, AstrocyteError] = field(default_factory=dict)
    loses_answers: bool = False
    failure: BaseException | None = None
    hangs: bool = False
    answer: Any = None
    closed: bool = False
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    def capabilities(self) -> EngineCapabilities:
        return self.able

    def put(self, text: str, **values: Any) -> str:
        number = f"shelf-{len(self.rows) + len(self.requests)}-{len(self.calls)}"
        self.rows[number] = MemoryHit(text, 0.0, memory_id=number, **values)
        return number

    @property
    def texts(self) -> list[str]:
        return [row.text for row in self.rows.values()]

    async def _begin(self, name: str, call: EngineCall) -> None:
        self.calls.append((name, call))
        self.asked.set()
        if self.hangs:
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        if self.failure is not None:
            raise self.failure

    async def health(self) -> EngineHealth:
        await self._begin("health", EngineCall(""))
        return EngineHealth(healthy=True, detail="fine")

    async def retain(self, call: EngineCall, items: Sequence[EngineItem]) -> Sequence[RetainResult]:
        await self._begin("retain", call)
        self.received += items
        for one in items:
            if one.item.content in self.refuses:
                raise self.refuses[one.item.content]
        results = []
        for one in items:
            known = self.requests.get(one.request_id or "")
            number = known or self.put(one.item.content, tags=one.item.tags, metadata=one.item.metadata)
            if one.request_id is not None:
                self.requests[one.request_id] = number
            if one.origin is not None:
                self.origins[number] = one.origin
            results.append(RetainResult(stored=True, memory_id=number, retention_action="created"))
        if self.loses_answers:
            raise ConnectionResetError
        return results

    async def recall(self, call: EngineCall, query: RecallQuery) -> EngineAnswer:
        await self._begin("recall", call)
        if self.answer is not None:
            return self.answer  # type: ignore[no-any-return]  # whatever a test wants it to say
        words = set(query.query.lower().split())
        scored = [(len(words & set(row.text.lower().split())), row) for row in self.rows.values()]
        hits = [MemoryHit(**{**vars_of(row), "score": float(score)}) for score, row in scored]
        return EngineAnswer(sorted(hits, key=lambda hit: -hit.score), dict(self.origins))

    async def reflect(self, call: EngineCall, query: ReflectQuery) -> EngineReflection:
        await self._begin("reflect", call)
        if self.answer is not None:
            return self.answer  # type: ignore[no-any-return]  # as above
        result = ReflectResult(f"The shelf says: {'; '.join(self.texts)}", 0.9, tuple(self.rows.values()))
        return EngineReflection(result, dict(self.origins))

    async def forget(
        self, call: EngineCall, selector: ForgetSelector, *, compliance: bool, reason: str | None
    ) -> ForgetResult:
        await self._begin("forget", call)
        if compliance:
            self.erased += selector.memory_ids
        gone = [number for number, row in self.rows.items() if self._meets(number, row, selector)]
        for number in gone:
            del self.rows[number]
        return ForgetResult(len(gone))

    def _meets(self, number: str, row: MemoryHit, selector: ForgetSelector) -> bool:
        named = not selector.memory_ids or bool({number, self.origins.get(number)} & set(selector.memory_ids))
        return named and (not selector.tags or bool(set(selector.tags) & set(row.tags or ())))

    async def close(self) -> None:
        self.closed = True


def vars_of(hit: MemoryHit) -> dict[str, Any]:
    return {name: getattr(hit, name) for name in MemoryHit.__dataclass_fields__}


def hybrid_app(shelf: Shelf, *, settings: dict[str, Any] | None = None, **options: Any) -> App:
    """An application in memory with the shelf beside all banks of the tenant."""
    app = App(Settings.from_mapping({"vector_store": "in_memory", **(settings or {})}))
    app.providers.engines.attach(HybridEngineProvider(shelf, name="shelf", options=options))
    return app
