"""Retain: from items to durable memories.

1. draft and embed: normalise, hash, count tokens, cut into chunks, make vectors (`draft_builder`);
2. decide: find exact and near duplicates in the index and within the batch (`dedup_decisions`,
   `statement_differences`);
3. commit all writes in one transaction; exact duplicates are decided inside it, and where they turn out otherwise than
   foreseen, the decisions are made again;
4. the store's commit feeds the index before this returns, so the next recall finds the memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from astrocyte.config import DedupSettings, Settings
from astrocyte.errors import AstrocyteError, Conflict, MemoryNotFound, RequestIdReused
from astrocyte.model import Bank, CurationAction, RetainItem, RetainResult, RetentionAction
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.retain.dedup_decisions import Decider, Decision, check_outcomes
from astrocyte.pipelines.retain.draft_builder import DraftBuilder
from astrocyte.pipelines.retain.drafts import Draft, compute
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import Replace, RequestKey, WriteOutcome

# Why a decision was not followed.
HELD_ALREADY = "the bank holds this content already"
# Each lost race means that another write of the same memory went through; so many in a row mean that the caller had
# better wait.
ATTEMPTS = 10

T = TypeVar("T")
Encode = Callable[[Sequence[RetainResult]], bytes]
Decode = Callable[[bytes], list[RetainResult]]


@dataclass(frozen=True, slots=True)
class Replay:
    """A client's request id, and how the answer to it is written down.

    ``place`` is the item that the request was for, where a commit serves several requests; None where it was for all.
    """

    key: RequestKey
    encode: Encode
    decode: Decode
    place: int | None = None


class RetainPipeline:
    """Stores items in one bank at a time."""

    def __init__(self, store: MemoryStore, registry: IndexRegistry, settings: Settings, builder: DraftBuilder) -> None:
        self._store = store
        self._registry = registry
        self._inline_rows = settings.recall.inline_rows
        self._most_tags = settings.limits.tags
        self._builder = builder

    async def check(self, bank: Bank, items: Sequence[tuple[RetainItem, str]]) -> list[Draft]:
        """Drafts without vectors, by which is found what is wrong with items, each given with its path in the request.

        Raises:
            ValidationError: An item is wrong for this bank.
        """
        return await self._builder.drafts(bank, items)

    async def prepare(self, bank: Bank, items: Sequence[tuple[RetainItem, str]]) -> list[Draft]:
        """Drafts of the items, with their vectors; all of this changes nothing, and the bank need not exist.

        Raises:
            ValidationError: An item is wrong for this bank.
            ProviderUnavailable: The embedder failed.
        """
        return await self._builder.embedded(bank, items)

    async def store(  # noqa: PLR0913 - what goes into one transaction
        self,
        bank: Bank,
        drafts: Sequence[Draft],
        principal: str,
        dedup: DedupSettings,
        replays: Sequence[Replay] = (),
        *,
        dequeue: Sequence[int] = (),
        copies: CopyOrder | None = None,
    ) -> list[RetainResult]:
        """Store all drafts in one transaction, or none of them; ``dedup`` holds where an item does not say.

        ``dequeue`` names the items of the retry queue that they are: these leave it with the same transaction.
        ``copies`` names the engine that is to have copies, which wait for it from then on.

        Raises:
            Conflict: Other writes got in the way every time, or one of several requests was answered meanwhile.
            NotFound: An item of the retry queue was forgotten meanwhile.
            RateLimited: Too much waits for the engine.
            StoreError: The commit failed; nothing was stored.
        """
        return await persist(
            lambda: self._attempt(bank, drafts, principal, dedup, replays, dequeue, copies),
            lambda: self._answer(bank, replays),
            # A memory that a near duplicate was to replace is forgotten: then it is none.
            changed=(Conflict, MemoryNotFound),
        )

    async def _attempt(  # noqa: PLR0913, PLR0917 - the parts of one transaction
        self,
        bank: Bank,
        drafts: Sequence[Draft],
        principal: str,
        dedup: DedupSettings,
        replays: Sequence[Replay],
        dequeue: Sequence[int],
        copies: CopyOrder | None,
    ) -> list[RetainResult]:
        index = await self._registry.get(bank)
        if bank.embedding_model != index.model:
            bank = index.space_of(bank)
        if any(draft.model != bank.embedding_model for draft in drafts):
            await self._builder.vectors.match(bank, drafts)

        def decide() -> list[Decision]:
            return Decider(bank, index.core, self._store, dedup, principal, self._most_tags).decide(drafts)

        def settle(outcomes: Sequence[WriteOutcome]) -> list[tuple[RequestKey, bytes]]:
            check_outcomes(decisions, outcomes)
            if not replays:
                return []
            results = _results(decisions, outcomes)
            return [
                (replay.key, replay.encode(results if replay.place is None else [results[replay.place]]))
                for replay in replays
            ]

        contents = [draft.content for draft in drafts]
        small = index.row_count <= self._inline_rows
        decisions = await compute(self._builder.executor, decide, contents, inline=small)
        writes = [decision.write for decision in decisions if decision.write is not None]
        if not writes and not replays and not dequeue:
            return _results(decisions, [])
        # A single draft without tags rests on no other memory.
        settles = replays or len(drafts) > 1 or drafts[0].item.tags
        outcomes, _ = await self._store.commit(
            bank, writes, settle=settle if settles else None, dequeue=dequeue, copies=copies
        )
        return _results(decisions, outcomes)

    def _answer(self, bank: Bank, replays: Sequence[Replay]) -> list[RetainResult] | None:
        """The answer to the request, if an equal one has got it meanwhile.

        Raises:
            Conflict: One of several has got it, so that they can no longer be served together.
            RequestIdReused: Another request has taken the id.
        """
        for replay in replays:
            response = self._store.find_response(bank.tenant, replay.key)
            if response is not None and replay.place is not None:
                raise Conflict(
                    "a concurrent request with the same request_id was answered; send the request again to get its "
                    "answer"
                )
            if response is not None:
                return replay.decode(response)
        return None


async def persist(
    attempt: Callable[[], Awaitable[T]],
    lost: Callable[[], T | None] = lambda: None,
    *,
    changed: tuple[type[AstrocyteError], ...] = (Conflict,),
) -> T:
    """The result of the first attempt that no other write got in the way of.

    Args:
        attempt: Looks, decides and commits.
        lost: Called after an attempt that failed so; what it returns is the result, None means to try again.
        changed: What an attempt raises where what it looked at has changed.

    Raises:
        Conflict: The last attempt failed too.
    """
    for _ in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except RequestIdReused:
            raise
        except changed:
            result = lost()
            if result is not None:
                return result
    return await attempt()


def _results(decisions: list[Decision], outcomes: Sequence[WriteOutcome]) -> list[RetainResult]:
    written = iter(outcomes)
    return [_result(decision, next(written) if decision.write is not None else None) for decision in decisions]


def _result(decision: Decision, outcome: WriteOutcome | None) -> RetainResult:
    draft, near = decision.draft, decision.near
    if draft.left_out and draft.curation is not None:
        kept = draft.curation.target_id
        return RetainResult(
            stored=False,
            memory_id=kept,
            deduplicated=kept is not None,
            retention_action=RetentionAction.SKIPPED.value,
            curated=True,
            memory_layer=draft.layer if kept is not None else None,
            warnings=draft.warnings,
            curation=draft.curation,
        )
    if decision.new_tags and outcome is not None:
        return RetainResult(
            stored=False,
            memory_id=outcome.memory_id,
            deduplicated=True,
            retention_action=RetentionAction.MERGED.value,
            memory_layer=draft.layer,
            position=outcome.position,
            similarity=1.0,
            warnings=draft.warnings,
            curation=draft.curation and replace(draft.curation, applied=False, reason=HELD_ALREADY),
        )
    if outcome is None or outcome.duplicate_of is not None:
        kept = outcome.duplicate_of if outcome is not None else near.memory_id if near is not None else None
        return RetainResult(
            stored=False,
            memory_id=kept,
            deduplicated=True,
            retention_action=RetentionAction.SKIPPED.value,
            memory_layer=draft.layer,
            similarity=near.similarity if near is not None and near.memory_id == kept else 1.0,
            warnings=draft.warnings,
            curation=draft.curation and replace(draft.curation, applied=False, reason=HELD_ALREADY),
        )
    updated = isinstance(decision.write, Replace)
    return RetainResult(
        stored=True,
        memory_id=outcome.memory_id,
        deduplicated=updated,
        retention_action=_action(draft, updated=updated).value,
        curated=draft.curation is not None and draft.curation.applied,
        memory_layer=draft.layer,
        position=outcome.position,
        chunk_count=max(1, len(draft.chunks)),
        token_count=draft.tokens,
        was_update=updated,
        near_duplicate_of=near.memory_id if near is not None and not updated else None,
        similarity=near.similarity if near is not None else None,
        warnings=draft.warnings,
        curation=draft.curation,
    )


def _action(draft: Draft, *, updated: bool) -> RetentionAction:
    """The retention action of a draft that was stored."""
    if not updated:
        return RetentionAction.CREATED
    decided = draft.curation
    merged = decided is not None and decided.applied and decided.action is CurationAction.MERGE
    return RetentionAction.MERGED if merged else RetentionAction.UPDATED
