"""Vectors of drafts, from embedders that may be remote, and in the space that a bank is moving to."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

from astrocyte.errors import ProviderUnavailable
from astrocyte.model import Bank
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces, check_space, usable
from astrocyte.pipelines.index.rows import embedded_text
from astrocyte.pipelines.retain.drafts import Draft, compute
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.records import NewMemory, SpareVectors


class DraftVectors:
    """Makes the vectors of drafts.

    Args:
        spaces: The embedders.
        executor: Where what takes long runs.
    """

    def __init__(self, spaces: EmbeddingSpaces, executor: Executor) -> None:
        self._spaces = spaces
        self._executor = executor

    async def embed(self, drafts: Sequence[Draft], embedder: Embedder | None, target: Embedder | None) -> None:
        """Give each draft that lacks them its vectors, and those of another model too, if that can be had now.

        Raises:
            ProviderUnavailable: The embedder failed.
        """
        waiting = [draft for draft in drafts if draft.vector is None]
        if waiting and embedder is not None:
            vectors = iter(await self._vectors(embedder, _texts(waiting)))
            for draft in waiting:
                draft.take(vectors)
        if target is None:
            return
        spare = await self._spare_vectors(target, _texts(drafts))
        if spare is not None:
            vectors = iter(spare)
            for draft in drafts:
                draft.take_spare(target.model_id, vectors)

    async def match(self, bank: Bank, drafts: Sequence[Draft]) -> None:
        """Give drafts vectors of the model that the bank has, where it has moved since they were made.

        Raises:
            DimensionMismatch: A caller sent a vector of the model before, and there is no other.
            ProviderUnavailable: The embedder failed.
        """
        behind = [draft for draft in drafts if draft.model not in {"", bank.embedding_model}]
        for draft in behind:
            _exchange(bank, draft)
        waiting = [draft for draft in behind if draft.model != bank.embedding_model]
        if waiting:
            for draft in waiting:
                draft.vector, draft.spare, draft.model = None, None, bank.embedding_model
            await self.embed(waiting, self._spaces.embedder(bank.embedding_model), None)

    async def spared(self, bank: Bank, memory: NewMemory) -> NewMemory:
        """A memory that is stored as it is, with vectors of the model that its bank is moving to, if it is."""
        target = self._spaces.target(bank)
        if target is None:
            return memory
        texts = [memory.content, *(chunk.text for chunk in memory.chunks)]
        vectors = await self._spare_vectors(target, [embedded_text(text, memory.speaker) for text in texts])
        if vectors is None:
            return memory
        whole, *chunks = map(usable, vectors)
        return replace(memory, spare=SpareVectors(target.model_id, whole, tuple(chunks)))

    async def _vectors(self, embedder: Embedder, texts: list[str]) -> list[bytes]:
        if embedder.local:
            return await compute(self._executor, lambda: embedder.embed_now(texts), texts)
        return await embedder.embed(texts)

    async def _spare_vectors(self, target: Embedder, texts: list[str]) -> list[bytes] | None:
        """Vectors for later. None where they cannot be had: no write fails for them, and they are made by and by."""
        try:
            return await self._vectors(target, texts)
        except ProviderUnavailable:
            return None


def _texts(drafts: Sequence[Draft]) -> list[str]:
    return [text for draft in drafts for text in draft.texts()]


def _exchange(bank: Bank, draft: Draft) -> None:
    """Put a draft's other vectors in the place of its own, where they are of the bank's model.

    Raises:
        DimensionMismatch: They are not, and its own came from the caller.
    """
    spare = draft.spare
    if spare is not None and spare.model == bank.embedding_model:
        draft.vector, draft.chunk_vectors, draft.model = spare.whole, list(spare.chunks), spare.model
        draft.spare = None
    elif draft.item.embedding is not None:
        check_space(bank, draft.item.embedding, "")
