"""Update: the next version of a memory.

1. read the current version with its vectors;
2. put the named fields in place; new content goes through the same steps as in retain;
3. commit: the old version ends at the instant at which the new one begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from astrocyte.core import content_hash
from astrocyte.errors import MemoryNotFound
from astrocyte.model import Bank, Memory, MemoryUpdate, RetainItem
from astrocyte.pipelines.analysis import from_ms
from astrocyte.pipelines.indexing import embedded_text
from astrocyte.pipelines.preparing import Preparer, optional_ms
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.protocols import MemoryStore, NewMemory, Replace, RequestKey, VersionRecord, WriteOutcome


class UpdatePipeline:
    """Makes new versions."""

    def __init__(self, store: MemoryStore, embedder: Embedder, preparer: Preparer) -> None:
        self._store = store
        self._embedder = embedder
        self._preparer = preparer

    async def run(self, bank: Bank, update: MemoryUpdate, request: RequestKey | None) -> Memory:
        """The version that this update makes, or that the first one with the same request id made.

        Raises:
            MemoryNotFound: There is none, or it was forgotten.
            Conflict: ``update.etag`` is not the current one.
        """
        response = None if request is None else self._store.find_response(bank.tenant, request)
        if response is None:
            memory = await self.next_version(bank, update)
            # Of the answer its version is kept, and no content, which must not outlive an erasure.
            outcomes, response = await self._store.commit(
                bank, [Replace(memory, update.etag)], request=request, respond=_version
            )
            response = _version(outcomes) if response is None else response
        made = self._store.memory(bank, update.memory_id, version=int(response))
        if made is None:
            raise MemoryNotFound(update.memory_id, bank.bank_id)
        return made

    async def next_version(self, bank: Bank, update: MemoryUpdate) -> NewMemory:
        """The current version with the update's fields in place.

        Raises:
            MemoryNotFound: There is none, or it was forgotten.
        """
        current = self._store.version(bank, update.memory_id)
        if current is None:
            raise MemoryNotFound(update.memory_id, bank.bank_id)
        memory = _fields(current.memory, update)
        if "content" in update.fields:
            memory = await self._content(bank, current, memory, update)
        return memory

    async def _content(self, bank: Bank, current: VersionRecord, memory: NewMemory, update: MemoryUpdate) -> NewMemory:
        """``memory`` with the update's content, normalised, cut and embedded as the first version was."""
        item = RetainItem(
            content=update.content,
            content_type=memory.content_type,
            fact_type=memory.fact_type,
            speaker=memory.speaker,
            session_id=memory.session_id,
            occurred_at=None if memory.occurred_at is None else from_ms(memory.occurred_at),
            embedding=update.embedding,
        )
        draft = self._preparer.draft(bank, item)
        if self._embedder.local:
            self._preparer.embed_now([draft])
        else:
            await self._preparer.embed([draft])
        made = draft.memory(memory.principal, current.memory.memory_id)
        return replace(
            memory,
            content=made.content,
            content_hash=content_hash(embedded_text(made.content, memory.speaker)),
            token_count=made.token_count,
            vector=made.vector,
            chunks=made.chunks,
        )


def _version(outcomes: Sequence[WriteOutcome]) -> bytes:
    return str(outcomes[0].version).encode()


def _fields(memory: NewMemory, update: MemoryUpdate) -> NewMemory:
    """The memory with every named field but the content replaced."""
    named = update.fields
    return replace(
        memory,
        tags=tuple(dict.fromkeys(update.tags)) if "tags" in named else memory.tags,
        metadata=dict(update.metadata) if "metadata" in named else memory.metadata,
        source=update.source if "source" in named else memory.source,
        occurred_at=optional_ms(update.occurred_at) if "occurred_at" in named else memory.occurred_at,
        valid_from=optional_ms(update.valid_from) if "valid_from" in named else memory.valid_from,
        valid_until=optional_ms(update.valid_until) if "valid_until" in named else memory.valid_until,
    )
