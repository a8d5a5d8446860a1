"""From an item to a draft: normalised, hashed, counted, cut, with vectors and entities."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace

from astrocyte.core import count_tokens
from astrocyte.errors import DimensionMismatch, ValidationError
from astrocyte.model import Bank, Embedding, Entity, RetainItem
from astrocyte.pipelines.extraction.entities import EntityExtraction
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces, check_space
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.pipelines.retain.draft_chunks import DraftChunks
from astrocyte.pipelines.retain.draft_vectors import DraftVectors
from astrocyte.pipelines.retain.drafts import Draft, Kept, compute, identity_hash
from astrocyte.pipelines.text.normalisation import normalise
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.records import NewMemory

# Content types of things that happened, against things that are known.
EPISODIC = frozenset({"conversation", "transcript", "email", "event"})
SPOKEN = frozenset({"conversation", "transcript"})
# Longer values under a speaker's or session's metadata key are something else.
NAME_CHARS = 256
FLOAT_BYTES = 4


class DraftBuilder:
    """Builds drafts by the configured rules; what may take long runs in the executor.

    Args:
        spaces: The embedders.
        profiles: The rules for contents of a kind.
        entities: Finds the entities that contents name.
        chunks: Cuts contents.
        vectors: Embeds contents, where that is not done at once.
        executor: Where what takes long runs.
    """

    def __init__(
        self,
        spaces: EmbeddingSpaces,
        profiles: Profiles,
        entities: EntityExtraction,
        chunks: DraftChunks,
        vectors: DraftVectors,
        executor: Executor,
    ) -> None:
        self._spaces = spaces
        self._profiles = profiles
        self._entities = entities
        self._chunks = chunks
        self.vectors = vectors
        self.executor = executor

    async def drafts(self, bank: Bank, items: Sequence[tuple[RetainItem, str]]) -> list[Draft]:
        """Drafts of items, given with their paths in the request; without vectors but those that the caller sent.

        Raises:
            ValidationError: An item is wrong for this bank.
        """
        contents = [item.content for item, _ in items]
        drafts = await compute(self.executor, lambda: [self.draft(bank, item, at) for item, at in items], contents)
        await self._chunks.cut_by_others(bank.bank_id, drafts)
        return drafts

    async def embedded(self, bank: Bank, items: Sequence[tuple[RetainItem, str]]) -> list[Draft]:
        """Drafts of items with their vectors.

        Raises:
            ValidationError: An item is wrong for this bank.
            ProviderUnavailable: The embedder failed.
        """
        embedder = self._spaces.by_model.get(bank.embedding_model)
        target = self._spaces.target(bank) if self._spaces.targets else None
        remote = (embedder is not None and not embedder.local) or (target is not None and not target.local)
        if remote or self._chunks.custom is not None:
            drafts = await self.drafts(bank, items)
            await self.vectors.embed(drafts, embedder, target)
        else:

            def work() -> list[Draft]:
                drafts = [self.draft(bank, item, at) for item, at in items]
                _embed_now(drafts, embedder, target)
                return drafts

            drafts = await compute(self.executor, work, [item.content for item, _ in items])
        if self._entities.asks:
            await self._name(bank, drafts)
        return drafts

    async def restored(self, bank: Bank, kept: Sequence[Kept]) -> list[Draft]:
        """Drafts of versions out of an archive, as `embedded`, with their vectors where these are of the bank's model.

        Raises:
            ValidationError: The bank's model is not on this server, and a version has no vectors.
            ProviderUnavailable: The embedder failed.
        """
        embedder = self._spaces.by_model.get(bank.embedding_model)
        target = self._spaces.target(bank) if self._spaces.targets else None
        contents = [one.item.content for one in kept]
        drafts = await compute(
            self.executor, lambda: [self._kept(bank, one, embeds=embedder is not None) for one in kept], contents
        )
        await self._chunks.cut_by_others(bank.bank_id, drafts)
        for draft, one in zip(drafts, kept, strict=True):
            _take_kept(bank, draft, one)
        await self.vectors.embed(drafts, embedder, target)
        if self._entities.asks:
            await self._name(bank, [draft for draft, one in zip(drafts, kept, strict=True) if one.entities is None])
        return drafts

    def _kept(self, bank: Bank, kept: Kept, *, embeds: bool) -> Draft:
        item = kept.item
        if not embeds and kept.model == bank.embedding_model and kept.vector is not None:
            # Nobody here can make another.
            item = replace(item, embedding=Embedding(kept.model, bank.dimensions, kept.vector))
        draft = self.draft(bank, item, verbatim=True)
        if kept.layer is not None:
            draft.layer = kept.layer
        if kept.entities is not None:
            draft.entities = kept.entities
        return draft

    def draft(self, bank: Bank, item: RetainItem, at: str = "", *, verbatim: bool = False) -> Draft:
        """An item normalised, hashed, counted and cut, with the caller's vector where one came.

        Speaker and session are taken from the metadata keys ``speaker`` and ``session_id`` where the item does not say
        them itself. A ``verbatim`` item is taken as it is: it was stored so before.

        Raises:
            ValidationError: Nothing is left of the content, or the vector does not belong into this bank.
        """
        profile = (
            self._profiles.of(bank.bank_id, item) if item.extraction_profile else self._profiles.default[bank.bank_id]
        )
        kind = profile.content_type or item.content_type
        content = item.content if verbatim else normalise(item.content, kind)
        if not content:
            raise ValidationError("is empty; send text to store", field=f"{at}content")
        speaker, session_id = item.speaker, item.session_id
        if item.metadata and not verbatim:
            speaker = speaker or _text(item.metadata.get("speaker"))
            session_id = session_id or _text(item.metadata.get("session_id"))
        occurred_at = None if item.occurred_at is None else to_ms(item.occurred_at)
        draft = Draft(
            item=item,
            content=content,
            content_hash=identity_hash(content, speaker, session_id, occurred_at),
            tokens=count_tokens(content),
            fact_type=item.fact_type or profile.fact_type or ("experience" if kind in SPOKEN else "world"),
            layer="episodic" if kind in EPISODIC else "semantic",
            # An empty name is nobody's.
            speaker=speaker or None,
            session_id=session_id or None,
        )
        if self._entities.enabled or profile.entity_extraction:
            draft.entities = self._entities.now(bank.bank_id, item, content, speaker)
        chunks = self._chunks
        if draft.tokens > chunks.whole_tokens or chunks.counts_chars or profile.chunk_size is not None:
            draft.chunks = chunks.cut(draft, kind, profile)
        self._take_vector(bank, draft, at)
        return draft

    def entities_of(self, bank: Bank, memory: NewMemory) -> tuple[Entity, ...]:
        """The entities of a memory whose metadata changed: other ones only where the metadata name them."""
        item = RetainItem(memory.content, metadata=memory.metadata)
        if self._entities.mode(bank.bank_id, item) != "metadata":
            return memory.entities
        return self._entities.now(bank.bank_id, item, memory.content, memory.speaker)

    async def _name(self, bank: Bank, drafts: Sequence[Draft]) -> None:
        """Give the drafts the entities that somebody else has to find."""
        waiting = [draft for draft in drafts if self._entities.waits(bank.bank_id, draft.item)]
        found = await asyncio.gather(
            *[self._entities.of(bank.bank_id, draft.item, draft.content, draft.speaker) for draft in waiting]
        )
        for draft, (entities, told) in zip(waiting, found, strict=True):
            draft.entities = entities
            draft.warnings += told

    def _take_vector(self, bank: Bank, draft: Draft, at: str) -> None:
        embedding = draft.item.embedding
        if embedding is not None:
            check_space(bank, embedding, at)
            draft.vector = embedding.values
        elif bank.embedding_model not in self._spaces.by_model:
            own = self._spaces.default.model_id
            raise DimensionMismatch(
                f"bank {bank.bank_id!r} holds vectors of {bank.embedding_model!r}, this server makes "
                f"{own!r}; send a vector of the bank's model",
                field=f"{at}embedding",
                metadata={"bank_model": bank.embedding_model, "server_model": own},
            )
        draft.model = bank.embedding_model


def _embed_now(drafts: Sequence[Draft], embedder: Embedder | None, target: Embedder | None) -> None:
    """As `DraftVectors.embed`, by local embedders, on this thread."""
    texts: list[str] = []
    waiting: list[Draft] = []
    for draft in drafts:
        if draft.vector is None:
            waiting.append(draft)
            texts += draft.texts()
    if texts and embedder is not None:
        vectors = iter(embedder.embed_now(texts))
        for draft in waiting:
            draft.take(vectors)
    if target is not None:
        vectors = iter(target.embed_now([text for draft in drafts for text in draft.texts()]))
        for draft in drafts:
            draft.take_spare(target.model_id, vectors)


def _take_kept(bank: Bank, draft: Draft, kept: Kept) -> None:
    """Give a draft the vectors of an archive, where they are of the bank's model and of the draft's texts."""
    if kept.model != bank.embedding_model or kept.vector is None:
        return
    texts = [text for text, _ in kept.chunks]
    vectors = [kept.vector, *[vector for _, vector in kept.chunks if vector is not None]]
    same = texts == [chunk.text for chunk in draft.chunks]
    if same and all(len(vector) == FLOAT_BYTES * bank.dimensions for vector in vectors):
        draft.vector, draft.chunk_vectors = kept.vector, [vector for _, vector in kept.chunks]


def _text(value: object) -> str | None:
    """A name out of metadata, where it could be one."""
    return value if isinstance(value, str) and value.isprintable() and 0 < len(value) <= NAME_CHARS else None
