"""From an item to a memory ready to be stored: normalised, hashed, counted, cut and embedded."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import TypeVar

from astrocyte.config import ExtractionProfileSettings, Settings
from astrocyte.core import content_hash, count_tokens, count_tokens_many
from astrocyte.errors import DimensionMismatch, ProviderUnavailable, ValidationError
from astrocyte.model import Bank, Curation, CurationAction, Entity, RetainItem
from astrocyte.pipelines.custom.chunking import CustomChunking
from astrocyte.pipelines.extraction.entities import EntityExtraction
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.pipelines.index.embedding_spaces import Spaces, check_space, usable
from astrocyte.pipelines.index.rows import ID_PREFIX, embedded_text
from astrocyte.pipelines.query.time_windows import optional_ms
from astrocyte.pipelines.text.chunking import Chunk, split
from astrocyte.pipelines.text.normalisation import normalise
from astrocyte.providers.protocols import Embedder
from astrocyte.stores.protocols import ChunkRecord, NewMemory, SpareVectors

# Content types of things that happened, against things that are known.
EPISODIC = frozenset({"conversation", "transcript", "email", "event"})
SPOKEN = frozenset({"conversation", "transcript"})
# A content a little above the chunk size stays whole: a short last piece finds less than the whole does.
SLACK = 1.25
# Longer values under a speaker's or session's metadata key are something else.
NAME_CHARS = 256
# So many small items are prepared on the loop itself: they take less than a millisecond, a change of thread costs more.
INLINE_ITEMS = 2
INLINE_CHARS = 4_096
# Between a speaker and what was said: neither a label nor a content may hold it.
SPEAKER_END = "\x00"
# Strategies: of another, and where that gives nothing.
CUSTOM, SENTENCE = "custom", "sentence"
# Contents of a batch that another cuts at once.
PARALLEL = 8
# Room above an even share, so that pieces end at boundaries without one more piece for the rest.
EVEN_SHARE = 1.15

T = TypeVar("T")


@dataclass(slots=True)
class Draft:
    """An item on its way: what is known of the memory before it has a vector."""

    item: RetainItem
    content: str
    content_hash: bytes
    tokens: int
    fact_type: str
    layer: str
    speaker: str | None
    session_id: str | None
    chunks: list[Chunk] = field(default_factory=list)
    vector: bytes | None = None
    chunk_vectors: list[bytes | None] = field(default_factory=list)
    # The space of these vectors, and those of the space that the bank is moving to.
    model: str = ""
    spare: SpareVectors | None = None
    # The id that was promised for it, where it waited in the retry queue.
    memory_id: str | None = None
    entities: tuple[Entity, ...] = ()
    # What its caller is to be told.
    warnings: tuple[str, ...] = ()
    # Its kind, and what a piece should have at the most, in characters, where another has still to say where it is cut.
    uncut: tuple[str, int] | None = None
    # What a language model decided, and the etag of the memory that it is to replace.
    curation: Curation | None = None
    target_etag: str | None = None

    @property
    def left_out(self) -> bool:
        """Whether it was decided not to store it."""
        decided = self.curation
        return decided is not None and decided.applied and decided.action is CurationAction.SKIP

    def texts(self) -> list[str]:
        """What is embedded: the whole, then each chunk."""
        return [embedded_text(text, self.speaker) for text in (self.content, *(chunk.text for chunk in self.chunks))]

    def memory(self, principal: str, memory_id: str | None = None) -> NewMemory:
        """The memory to store, under a new id unless one is given."""
        item = self.item
        vectors = self.chunk_vectors or [None] * len(self.chunks)
        return NewMemory(
            memory_id=memory_id or self.memory_id or new_memory_id(),
            content=self.content,
            content_hash=self.content_hash,
            content_type=item.content_type,
            fact_type=self.fact_type,
            memory_layer=self.layer,
            token_count=self.tokens,
            vector=self.vector,
            chunks=tuple(
                ChunkRecord(chunk.text, chunk.tokens, vector)
                for chunk, vector in zip(self.chunks, vectors, strict=True)
            ),
            tags=tuple(dict.fromkeys(item.tags)),
            metadata=dict(item.metadata),
            source=item.source,
            session_id=self.session_id,
            speaker=self.speaker,
            principal=principal,
            occurred_at=optional_ms(item.occurred_at),
            valid_from=optional_ms(item.valid_from),
            valid_until=optional_ms(item.valid_until),
            entities=self.entities,
            model=self.model,
            spare=self.spare,
        )


def new_memory_id() -> str:
    """``mem_`` and a UUID of version 7 in hexadecimal: ids sort by the time of their making."""
    random = int.from_bytes(os.urandom(10))
    value = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | (random >> 68) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    return f"{ID_PREFIX}{value:032x}"


def hash_of(content: str, speaker: str | None) -> bytes:
    """The content hash of what a speaker, or nobody in particular, said."""
    return content_hash(f"{speaker}{SPEAKER_END}{content}" if speaker else content)


class Preparer:
    """Turns items into drafts by the configured rules; what may take long runs in the executor.

    Args:
        settings: How contents are cut.
        spaces: Makes vectors.
        executor: Where what takes long runs.
        profiles: What holds for the contents of a kind.
        entities: Finds what they name.
        chunking: Cuts where a strategy is custom.
    """

    def __init__(
        self,
        settings: Settings,
        spaces: Spaces,
        executor: Executor,
        profiles: Profiles,
        entities: EntityExtraction,
        chunking: CustomChunking | None = None,
    ) -> None:
        self._settings = settings.retain
        self._chunking = settings.pipeline.chunking
        self._spaces = spaces
        self._executor = executor
        self._profiles = profiles
        self._entities = entities
        self._custom = chunking
        self._places = asyncio.Semaphore(PARALLEL)

    async def drafts(self, bank: Bank, items: Sequence[tuple[RetainItem, str]]) -> list[Draft]:
        """Drafts of items, given with their paths in the request; without vectors but those that the caller sent.

        Raises:
            ValidationError: An item is wrong for this bank.
        """
        drafts = await self.compute(
            lambda: [self.draft(bank, item, at) for item, at in items], [item.content for item, _ in items]
        )
        if self._custom is not None:
            waiting = [draft for draft in drafts if draft.uncut is not None]
            await asyncio.gather(*[self._ask(self._custom, bank.bank_id, draft) for draft in waiting])
        return drafts

    async def embedded(self, bank: Bank, items: Sequence[tuple[RetainItem, str]]) -> list[Draft]:
        """Drafts of items with their vectors.

        Raises:
            ValidationError: An item is wrong for this bank.
            ProviderUnavailable: The embedder failed.
        """
        embedder, target = self._spaces.embedder(bank.embedding_model), self._spaces.target(bank)
        if self._custom is not None or any(one is not None and not one.local for one in (embedder, target)):
            drafts = await self.drafts(bank, items)
            await self._embed(drafts, embedder, target)
            await self._name(bank, drafts)
            return drafts

        def work() -> list[Draft]:
            drafts = [self.draft(bank, item, at) for item, at in items]
            _embed_now(drafts, embedder, target)
            return drafts

        drafts = await self.compute(work, [item.content for item, _ in items])
        await self._name(bank, drafts)
        return drafts

    async def compute(self, work: Callable[[], T], contents: Sequence[str], *, inline: bool = True) -> T:
        """The result of ``work`` on contents: on the loop where it is sure to be short, and ``inline`` allows it."""
        if inline and len(contents) <= INLINE_ITEMS and all(len(content) <= INLINE_CHARS for content in contents):
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def draft(self, bank: Bank, item: RetainItem, at: str = "") -> Draft:
        """An item normalised, hashed, counted and cut, with the caller's vector where one came.

        Speaker and session are taken from the metadata keys ``speaker`` and ``session_id`` where the item does not say
        them itself.

        Raises:
            ValidationError: Nothing is left of the content, or the vector does not belong into this bank.
        """
        profile = self._profiles.of(bank.bank_id, item)
        kind = profile.content_type or item.content_type
        content = normalise(item.content, kind)
        if not content:
            raise ValidationError("is empty; there is nothing to remember", field=f"{at}content")
        speaker = item.speaker or _text(item.metadata.get("speaker"))
        draft = Draft(
            item=item,
            content=content,
            content_hash=hash_of(content, speaker),
            tokens=count_tokens(content),
            fact_type=item.fact_type or profile.fact_type or ("experience" if kind in SPOKEN else "world"),
            layer="episodic" if kind in EPISODIC else "semantic",
            speaker=speaker,
            session_id=item.session_id or _text(item.metadata.get("session_id")),
        )
        draft.entities = self._entities.now(bank.bank_id, item, content, speaker)
        draft.chunks = self._cut(draft, kind, profile, self._strategy(kind, profile))
        self._take_vector(bank, draft, at)
        return draft

    def entities_of(self, bank: Bank, memory: NewMemory) -> tuple[Entity, ...]:
        """The entities of a memory whose metadata changed: other ones only where the metadata name them."""
        item = RetainItem(memory.content, metadata=memory.metadata)
        if self._entities.mode(bank.bank_id, item) != "metadata":
            return memory.entities
        return self._entities.now(bank.bank_id, item, memory.content, memory.speaker)

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
            await self._embed(waiting, self._spaces.embedder(bank.embedding_model), None)

    async def spared(self, bank: Bank, memory: NewMemory) -> NewMemory:
        """A memory that is stored as it is, with vectors of the model that its bank is moving to, if it is."""
        target = self._spaces.target(bank)
        if target is None:
            return memory
        whole = [memory.content, *(chunk.text for chunk in memory.chunks)]
        vectors = await self._spare_vectors(target, [embedded_text(text, memory.speaker) for text in whole])
        return memory if vectors is None else replace(memory, spare=_spare(target, vectors))

    async def _embed(self, drafts: Sequence[Draft], embedder: Embedder | None, target: Embedder | None) -> None:
        """Give each draft that lacks them its vectors, and those of another model too, if that can be had now.

        Raises:
            ProviderUnavailable: The embedder failed.
        """
        waiting, texts = _waiting(drafts)
        if texts and embedder is not None:
            _hand_out(waiting, await self._vectors(embedder, texts))
        if target is None:
            return
        vectors = await self._spare_vectors(target, [text for draft in drafts for text in draft.texts()])
        if vectors is not None:
            _hand_out_spare(drafts, target, vectors)

    async def _vectors(self, embedder: Embedder, texts: list[str]) -> list[bytes]:
        return (
            await self.compute(lambda: embedder.embed_now(texts), texts)
            if embedder.local
            else await embedder.embed(texts)
        )

    async def _spare_vectors(self, target: Embedder, texts: list[str]) -> list[bytes] | None:
        """Vectors for later. None where they cannot be had: no write fails for them, and they are made by and by."""
        try:
            return await self._vectors(target, texts)
        except ProviderUnavailable:
            return None

    async def _name(self, bank: Bank, drafts: Sequence[Draft]) -> None:
        """Give the drafts the entities that somebody else has to find."""
        waiting = [draft for draft in drafts if self._entities.waits(bank.bank_id, draft.item)]
        found = await asyncio.gather(
            *[self._entities.of(bank.bank_id, draft.item, draft.content, draft.speaker) for draft in waiting]
        )
        for draft, (entities, told) in zip(waiting, found, strict=True):
            draft.entities = entities
            draft.warnings += told

    async def _ask(self, custom: CustomChunking, bank_id: str, draft: Draft) -> None:
        """Give a draft the chunks that another cuts; those of sentences where it gives none."""
        kind, size = draft.uncut or ("", 0)
        async with self._places:
            pieces, problem = await custom.split(bank_id, draft.content, size, kind)
        draft.uncut = None
        if problem:
            draft.warnings += (f"chunking: the custom chunker gave none ({problem}); it was cut by sentence",)
            draft.chunks = self._cut(draft, kind, self._profiles.of(bank_id, draft.item), SENTENCE)
        elif len(pieces) > 1:
            draft.chunks = [Chunk(*one) for one in zip(pieces, count_tokens_many(pieces), strict=True)]

    def _cut(self, draft: Draft, kind: str, profile: ExtractionProfileSettings, strategy: str) -> list[Chunk]:
        """Chunks of about equal size; none where the whole is short enough, no boundary was found, or another cuts.

        Sizes are in tokens, or in characters where the profile, or the settings of the pipeline, say one.
        """
        settings = self._settings
        content, most, length, count = draft.content, settings.chunk_tokens, draft.tokens, count_tokens_many
        chars = profile.chunk_size or self._chunking.max_chunk_size
        if chars is not None:
            most, length, count = chars, len(content), _lengths
        if length <= SLACK * most:
            return []
        pieces = math.ceil(length / most)
        size = min(most, math.ceil(EVEN_SHARE * length / pieces))
        overlap = min(most * settings.overlap_tokens // settings.chunk_tokens, size // 2)
        if strategy == CUSTOM:
            draft.uncut = (kind, most if chars is not None else len(content) * most // length)
            return []
        chunks = split(content, strategy, size=size, overlap=overlap, count_tokens=count)
        if len(chunks) < 2:  # noqa: PLR2004 - one piece is the whole
            return []
        if chars is None:
            return chunks
        tokens = count_tokens_many([chunk.text for chunk in chunks])
        return [Chunk(chunk.text, number) for chunk, number in zip(chunks, tokens, strict=True)]

    def _strategy(self, kind: str, profile: ExtractionProfileSettings) -> str:
        """Where contents of a kind are cut: text, and what has no joints of its own, as the pipeline says."""
        named = profile.chunking_strategy
        if named is None and kind != "text":
            named = self._settings.chunking.get(kind)
        return named or self._chunking.strategy or self._settings.chunking.get("text", "sentence")

    def _take_vector(self, bank: Bank, draft: Draft, at: str) -> None:
        embedding = draft.item.embedding
        if embedding is not None:
            check_space(bank, embedding, at)
            draft.vector = embedding.values
        elif self._spaces.embedder(bank.embedding_model) is None:
            own = self._spaces.default.model_id
            raise DimensionMismatch(
                f"bank {bank.bank_id!r} holds vectors of {bank.embedding_model!r}, this server makes "
                f"{own!r}; send a vector of the bank's model",
                field=f"{at}embedding",
                metadata={"bank_model": bank.embedding_model, "server_model": own},
            )
        draft.model = bank.embedding_model


def _embed_now(drafts: Sequence[Draft], embedder: Embedder | None, target: Embedder | None) -> None:
    """Give each draft that lacks them its vectors, and those of another model too, by local embedders."""
    waiting, texts = _waiting(drafts)
    if texts and embedder is not None:
        _hand_out(waiting, embedder.embed_now(texts))
    if target is not None:
        _hand_out_spare(drafts, target, target.embed_now([text for draft in drafts for text in draft.texts()]))


def _waiting(drafts: Sequence[Draft]) -> tuple[list[Draft], list[str]]:
    waiting = [draft for draft in drafts if draft.vector is None]
    return waiting, [text for draft in waiting for text in draft.texts()]


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


def _hand_out_spare(drafts: Sequence[Draft], target: Embedder, vectors: list[bytes]) -> None:
    start = 0
    for draft in drafts:
        end = start + 1 + len(draft.chunks)
        draft.spare = _spare(target, vectors[start:end])
        start = end


def _spare(target: Embedder, vectors: Sequence[bytes]) -> SpareVectors:
    whole, *chunks = map(usable, vectors)
    return SpareVectors(target.model_id, whole, tuple(chunks))


def _hand_out(drafts: list[Draft], vectors: list[bytes]) -> None:
    start = 0
    for draft in drafts:
        end = start + 1 + len(draft.chunks)
        draft.vector, *draft.chunk_vectors = map(usable, vectors[start:end])
        start = end


def _lengths(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def _text(value: object) -> str | None:
    """A name out of metadata, where it could be one."""
    return value if isinstance(value, str) and value.isprintable() and 0 < len(value) <= NAME_CHARS else None
