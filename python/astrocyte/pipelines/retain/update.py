"""Update: the next version of a memory.

1. read the current version with its vectors;
2. put the named fields in place; new content goes through the same steps as in retain;
3. commit, unless another write made a version meanwhile: then once more from the start, or the caller's etag is stale.
   The old version ends at the instant at which the new one begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from astrocyte.errors import MemoryNotFound
from astrocyte.model import Bank, Memory, MemoryUpdate, RetainItem
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces
from astrocyte.pipelines.query.time_windows import from_ms, optional_ms
from astrocyte.pipelines.retain.draft_builder import DraftBuilder
from astrocyte.pipelines.retain.drafts import identity_hash
from astrocyte.pipelines.retain.pipeline import persist
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import NewMemory, Replace, RequestKey, VersionRecord, WriteOutcome


class UpdatePipeline:
    """Makes new versions."""

    def __init__(self, store: MemoryStore, builder: DraftBuilder, spaces: EmbeddingSpaces) -> None:
        self._store = store
        self._builder = builder
        self._spaces = spaces

    async def run(
        self, bank: Bank, update: MemoryUpdate, request: RequestKey | None, copies: CopyOrder | None = None
    ) -> Memory:
        """The version that this update makes, or that the first one with the same request id made.

        ``copies`` names the engine that is to have it too, for which it waits from its commit on.

        Raises:
            MemoryNotFound: There is none, or it was forgotten.
            Conflict: ``update.etag`` is not the current one; without it, other writes came first every time.
            RateLimited: Too much waits for the engine.
        """
        response = None if request is None else self._store.find_response(bank.tenant, request)
        if response is None:
            if update.etag is None:
                response = await persist(lambda: self._attempt(bank, update, request, copies))
            else:
                response = await self._attempt(bank, update, request, copies)
        made = self._store.memory(bank, update.memory_id, version=int(response))
        if made is None:
            raise MemoryNotFound(update.memory_id, bank.bank_id)
        return made

    async def check(self, bank: Bank, update: MemoryUpdate) -> None:
        """Find what is wrong with an update.

        Raises:
            MemoryNotFound: There is none, or it was forgotten.
            ValidationError: The new content or its vector does not belong into this bank.
        """
        await self._next_version(bank, self._current(bank, update), update)

    async def _attempt(
        self, bank: Bank, update: MemoryUpdate, request: RequestKey | None, copies: CopyOrder | None
    ) -> bytes:
        bank = self._spaces.fresh(bank)
        current = self._current(bank, update)
        memory = await self._next_version(bank, current, update)
        # The fields that are not named come from the version that was read: it must still be the current one.
        write = Replace(memory, current.etag if update.etag is None else update.etag)
        # Of the answer its version is kept, and no content, which must not outlive an erasure.
        outcomes, response = await self._store.commit(bank, [write], request=request, respond=_version, copies=copies)
        return _version(outcomes) if response is None else response

    def _current(self, bank: Bank, update: MemoryUpdate) -> VersionRecord:
        current = self._store.version(bank, update.memory_id)
        if current is None:
            raise MemoryNotFound(update.memory_id, bank.bank_id)
        return current

    async def _next_version(self, bank: Bank, current: VersionRecord, update: MemoryUpdate) -> NewMemory:
        """The current version with the update's fields in place."""
        memory = _fields(current.memory, update)
        if "content" in update.fields:
            return await self._content(bank, current, memory, update)
        memory = await self._builder.vectors.spared(bank, memory)
        if "metadata" in update.fields:
            return replace(memory, entities=self._builder.entities_of(bank, memory))
        return memory

    async def _content(self, bank: Bank, current: VersionRecord, memory: NewMemory, update: MemoryUpdate) -> NewMemory:
        """``memory`` with the update's content, normalised, cut and embedded as the first version was."""
        item = RetainItem(
            content=update.content,
            content_type=memory.content_type,
            metadata=memory.metadata,
            fact_type=memory.fact_type,
            speaker=memory.speaker,
            session_id=memory.session_id,
            occurred_at=None if memory.occurred_at is None else from_ms(memory.occurred_at),
            embedding=update.embedding,
        )
        (draft,) = await self._builder.embedded(bank, [(item, "")])
        made = draft.memory(memory.principal, current.memory.memory_id)
        return replace(
            memory,
            content=made.content,
            content_hash=identity_hash(made.content, memory.speaker, memory.session_id, memory.occurred_at),
            token_count=made.token_count,
            vector=made.vector,
            chunks=made.chunks,
            entities=made.entities,
            model=made.model,
            spare=made.spare,
        )


def _version(outcomes: Sequence[WriteOutcome]) -> bytes:
    return str(outcomes[0].version).encode()


def _fields(memory: NewMemory, update: MemoryUpdate) -> NewMemory:
    """The memory with every named field but the content replaced."""
    named = update.fields
    occurred_at = optional_ms(update.occurred_at) if "occurred_at" in named else memory.occurred_at
    return replace(
        memory,
        content_hash=identity_hash(memory.content, memory.speaker, memory.session_id, occurred_at),
        tags=tuple(dict.fromkeys(update.tags)) if "tags" in named else memory.tags,
        metadata=dict(update.metadata) if "metadata" in named else memory.metadata,
        source=update.source if "source" in named else memory.source,
        occurred_at=occurred_at,
        valid_from=optional_ms(update.valid_from) if "valid_from" in named else memory.valid_from,
        valid_until=optional_ms(update.valid_until) if "valid_until" in named else memory.valid_until,
    )
