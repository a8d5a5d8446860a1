"""Retain: from items to durable memories.

1. draft: normalise, hash, count tokens, cut into chunks (`preparing`);
2. embed the whole and the chunks, unless the caller sent a vector;
3. find near duplicates: by cosine in the index and within the batch, then the guard of `deduplication`;
4. decide: insert, insert and flag, replace, or leave out;
5. commit all writes in one transaction; exact duplicates are decided inside it;
6. the store's commit feeds the index before this returns, so the next recall finds the memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TypeVar

from astrocyte.config import Settings
from astrocyte.core import Core, Row
from astrocyte.errors import Conflict, MemoryNotFound
from astrocyte.model import Bank, DedupAction, Memory, RetainItem, RetainResult, RetentionAction
from astrocyte.pipelines.analysis import DAY_MS, to_ms
from astrocyte.pipelines.deduplication import differs
from astrocyte.pipelines.indexing import ID_PREFIX, id_to_bytes
from astrocyte.pipelines.preparing import Draft, Preparer
from astrocyte.pipelines.registry import BankIndex, IndexRegistry
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.protocols import Insert, MemoryStore, NewMemory, Replace, RequestKey, Write, WriteOutcome

# So many small items are prepared on the loop itself: they take less than a millisecond, a change of thread costs more.
INLINE_ITEMS = 2
INLINE_CHARS = 4_096

T = TypeVar("T")
Encode = Callable[[Sequence[RetainResult]], bytes]
Decode = Callable[[bytes], list[RetainResult]]


@dataclass(frozen=True, slots=True)
class Near:
    """A near duplicate that the guard let pass."""

    memory_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Replay:
    """A client's request id, and how the answer to it is written down."""

    key: RequestKey
    encode: Encode
    decode: Decode


@dataclass(slots=True)
class _Decision:
    """What will be done with a draft. ``write`` is None where it is left out."""

    draft: Draft
    write: Write | None
    near: Near | None = None


class RetainPipeline:
    """Stores items in one bank at a time."""

    def __init__(
        self,
        store: MemoryStore,
        registry: IndexRegistry,
        embedder: Embedder,
        settings: Settings,
        executor: Executor,
    ) -> None:
        self._store = store
        self._registry = registry
        self._embedder = embedder
        self._settings = settings
        self._executor = executor
        self._preparer = Preparer(settings.retain, embedder)

    def draft(self, bank: Bank, item: RetainItem, at: str = "") -> Draft:
        """The first step, which finds what is wrong with an item for this bank."""
        return self._preparer.draft(bank, item, at)

    async def run(
        self, bank: Bank, items: Sequence[tuple[RetainItem, str]], principal: str, replay: Replay | None = None
    ) -> list[RetainResult]:
        """Store all items, given with their paths in the request, in one transaction.

        Raises:
            ValidationError: An item is wrong for this bank.
            ProviderUnavailable: The embedder failed.
            StoreError: The commit failed; nothing was stored.
        """
        drafts = await self._drafts(bank, items)
        try:
            return await self._store_drafts(bank, drafts, principal, replay)
        except (MemoryNotFound, Conflict):
            if replay is not None and self._store.find_response(bank.tenant, replay.key) is not None:
                raise
            # A memory that a near duplicate was to replace went away between the look and the commit: look again.
            return await self._store_drafts(bank, drafts, principal, replay)

    async def _drafts(self, bank: Bank, items: Sequence[tuple[RetainItem, str]]) -> list[Draft]:
        local = self._embedder.local

        def prepare() -> list[Draft]:
            drafts = [self._preparer.draft(bank, item, at) for item, at in items]
            if local:
                self._preparer.embed_now(drafts)
            return drafts

        drafts = await self._compute(prepare, [item for item, _ in items])
        if not local:
            await self._preparer.embed(drafts)
        return drafts

    async def _store_drafts(
        self, bank: Bank, drafts: list[Draft], principal: str, replay: Replay | None
    ) -> list[RetainResult]:
        index = await self._registry.get(bank)
        decisions = await self._compute(
            lambda: self._decide(bank, index, drafts, principal), [draft.item for draft in drafts], index
        )
        writes = [decision.write for decision in decisions if decision.write is not None]
        if replay is None:
            outcomes, _ = await self._store.commit(bank, writes) if writes else ([], None)
            return _results(decisions, outcomes)
        _, response = await self._store.commit(
            bank, writes, request=replay.key, respond=lambda outcomes: replay.encode(_results(decisions, outcomes))
        )
        if response is None:
            raise AssertionError("the store returned no response for a request id")
        return replay.decode(response)

    async def _compute(self, work: Callable[[], T], items: Sequence[RetainItem], index: BankIndex | None = None) -> T:
        """The result of ``work``, on the loop where it is sure to be short."""
        small = len(items) <= INLINE_ITEMS and all(len(item.content) <= INLINE_CHARS for item in items)
        if small and (index is None or index.small(self._settings.recall.inline_rows)):
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def _decide(self, bank: Bank, index: BankIndex, drafts: list[Draft], principal: str) -> list[_Decision]:
        found = self._similar(index, drafts)
        within = _Batch(bank.dimensions) if len(drafts) > 1 else None
        decisions = []
        for draft, candidate in zip(drafts, found, strict=True):
            near = self._guard(bank, draft, candidate) if candidate else None
            if near is None and within is not None:
                near = within.near(draft, self._threshold(draft.item))
            decision = self._decision(bank, draft, near, principal)
            if within is not None and isinstance(decision.write, Insert):
                within.add(draft, decision.write.memory.memory_id)
            decisions.append(decision)
        return decisions

    def _similar(self, index: BankIndex, drafts: list[Draft]) -> list[tuple[int, bytes, float] | None]:
        """The nearest stored memory of each draft, where it reaches the draft's threshold."""
        vectors = [draft.vector for draft in drafts if draft.vector is not None]
        if not vectors:
            return [None] * len(drafts)
        thresholds = [self._threshold(draft.item) for draft in drafts]
        nearest = iter(index.core.near_duplicates(vectors, min(thresholds)))
        found = [next(nearest) if draft.vector is not None else None for draft in drafts]
        return [
            hit if hit is not None and hit[2] >= threshold else None
            for hit, threshold in zip(found, thresholds, strict=True)
        ]

    def _guard(self, bank: Bank, draft: Draft, hit: tuple[int, bytes, float]) -> Near | None:
        _, identity, similarity = hit
        memory_id = f"{ID_PREFIX}{identity.hex()}"
        kept = self._store.memory(bank, memory_id)
        if kept is None or _same(kept, draft) or _distinct(kept, draft):
            return None
        return Near(memory_id, similarity)

    def _threshold(self, item: RetainItem) -> float:
        wish = item.dedup_threshold
        return self._settings.retain.dedup_threshold if wish is None else wish

    def _decision(self, bank: Bank, draft: Draft, near: Near | None, principal: str) -> _Decision:
        action = draft.item.dedup_action or DedupAction(self._settings.retain.dedup_action)
        if near is None or action is DedupAction.WARN:
            return _Decision(draft, Insert(draft.memory(principal)), near)
        if action is DedupAction.SKIP:
            return _Decision(draft, None, near)
        kept = self._store.version(bank, near.memory_id)
        memory = draft.memory(principal, near.memory_id)
        return _Decision(draft, Replace(memory if kept is None else _filled(memory, kept.memory)), near)


class _Batch:
    """The drafts of one batch that will be stored, searched for near duplicates among themselves."""

    def __init__(self, dimensions: int) -> None:
        self._bank = Core().bank(dimensions)
        self._drafts: list[tuple[Draft, str]] = []

    def near(self, draft: Draft, threshold: float) -> Near | None:
        """An earlier draft of the batch that this one nearly repeats."""
        if draft.vector is None or not self._drafts:
            return None
        hit = self._bank.near_duplicates([draft.vector], threshold)[0]
        if hit is None:
            return None
        other, memory_id = self._drafts[hit[0] - 1]
        if other.content_hash == draft.content_hash or _distinct_drafts(other, draft):
            return None
        return Near(memory_id, hit[2])

    def add(self, draft: Draft, memory_id: str) -> None:
        """Let later drafts find this one."""
        if draft.vector is None:
            return
        self._drafts.append((draft, memory_id))
        key = len(self._drafts)
        identity = id_to_bytes(memory_id) or bytes(16)
        self._bank.apply(key, [Row(key, identity, draft.content_hash, "", draft.vector, tokens=0, known_from=0)])


def _same(kept: Memory, draft: Draft) -> bool:
    """Whether the kept memory is the same content, which the store finds by hash."""
    return kept.content == draft.content and (kept.speaker or None) == draft.speaker


def _distinct(kept: Memory, draft: Draft) -> bool:
    """Whether likeness deceives: another speaker, another day, or another negation, number, date or name."""
    happened = None if kept.occurred_at is None else to_ms(kept.occurred_at)
    return (
        (kept.speaker or None) != draft.speaker or _other_day(happened, draft) or differs(kept.content, draft.content)
    )


def _distinct_drafts(first: Draft, second: Draft) -> bool:
    happened = first.item.occurred_at
    return (
        first.speaker != second.speaker
        or _other_day(None if happened is None else to_ms(happened), second)
        or differs(first.content, second.content)
    )


def _other_day(happened: int | None, draft: Draft) -> bool:
    occurred_at = draft.item.occurred_at
    if happened is None or occurred_at is None:
        return False
    return happened // DAY_MS != to_ms(occurred_at) // DAY_MS


def _filled(memory: NewMemory, kept: NewMemory) -> NewMemory:
    """The new version with what the item leaves open taken from the kept one."""
    return replace(
        memory,
        tags=memory.tags or kept.tags,
        metadata=memory.metadata or kept.metadata,
        source=memory.source or kept.source,
        session_id=memory.session_id or kept.session_id,
        speaker=memory.speaker or kept.speaker,
        occurred_at=kept.occurred_at if memory.occurred_at is None else memory.occurred_at,
        valid_from=kept.valid_from if memory.valid_from is None else memory.valid_from,
        valid_until=kept.valid_until if memory.valid_until is None else memory.valid_until,
    )


def _results(decisions: list[_Decision], outcomes: Sequence[WriteOutcome]) -> list[RetainResult]:
    written = iter(outcomes)
    return [_result(decision, next(written) if decision.write is not None else None) for decision in decisions]


def _result(decision: _Decision, outcome: WriteOutcome | None) -> RetainResult:
    draft, near = decision.draft, decision.near
    if outcome is None or outcome.duplicate_of is not None:
        kept = outcome.duplicate_of if outcome is not None else near.memory_id if near is not None else None
        return RetainResult(
            stored=False,
            memory_id=kept,
            deduplicated=True,
            retention_action=RetentionAction.SKIPPED.value,
            memory_layer=draft.layer,
            similarity=near.similarity if near is not None and near.memory_id == kept else 1.0,
        )
    updated = isinstance(decision.write, Replace)
    return RetainResult(
        stored=True,
        memory_id=outcome.memory_id,
        deduplicated=updated,
        retention_action=(RetentionAction.UPDATED if updated else RetentionAction.CREATED).value,
        memory_layer=draft.layer,
        position=outcome.position,
        chunk_count=max(1, len(draft.chunks)),
        token_count=draft.tokens,
        was_update=updated,
        near_duplicate_of=near.memory_id if near is not None and not updated else None,
        similarity=near.similarity if near is not None else None,
    )
