"""Drafts: items on their way to be stored, with what is known of the memory before it has an id."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar

from astrocyte.core import content_hash
from astrocyte.model import Curation, CurationAction, Entity, RetainItem
from astrocyte.pipelines.index.embedding_spaces import usable
from astrocyte.pipelines.index.rows import ID_PREFIX, embedded_text
from astrocyte.pipelines.query.time_windows import to_ms
from astrocyte.pipelines.text.chunking import Chunk
from astrocyte.stores.records import ChunkRecord, NewMemory, SpareVectors

# So many small items are prepared on the loop itself: they take less than a millisecond, a change of thread costs more.
INLINE_ITEMS = 2
INLINE_CHARS = 4_096
# Between the parts of an identity: neither a label nor a content may hold it.
PART_END = "\x00"

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
        """True if it was decided not to store it."""
        decided = self.curation
        return decided is not None and decided.applied and decided.action is CurationAction.SKIP

    def texts(self) -> list[str]:
        """The texts to embed: the whole, then each chunk."""
        whole = embedded_text(self.content, self.speaker)
        return [whole, *[embedded_text(chunk.text, self.speaker) for chunk in self.chunks]] if self.chunks else [whole]

    def take(self, vectors: Iterator[bytes]) -> None:
        """Take the vectors of its texts, in their order."""
        vector = next(vectors)
        # As `usable` has it, without another call.
        self.vector = vector if any(vector) else None
        if self.chunks:
            self.chunk_vectors = [usable(next(vectors)) for _ in self.chunks]

    def take_spare(self, model: str, vectors: Iterator[bytes]) -> None:
        """Take the vectors of its texts in the space that the bank is moving to."""
        whole = usable(next(vectors))
        self.spare = SpareVectors(model, whole, tuple(usable(next(vectors)) for _ in self.chunks))

    def memory(self, principal: str, memory_id: str | None = None) -> NewMemory:
        """The memory to store, under a new id unless one is given."""
        item = self.item
        chunks: tuple[ChunkRecord, ...] = ()
        if self.chunks:
            vectors = self.chunk_vectors or [None] * len(self.chunks)
            pairs = zip(self.chunks, vectors, strict=True)
            chunks = tuple(ChunkRecord(chunk.text, chunk.tokens, vector) for chunk, vector in pairs)
        return NewMemory(
            memory_id=memory_id or self.memory_id or new_memory_id(),
            content=self.content,
            content_hash=self.content_hash,
            content_type=item.content_type,
            fact_type=self.fact_type,
            memory_layer=self.layer,
            token_count=self.tokens,
            vector=self.vector,
            chunks=chunks,
            tags=tuple(dict.fromkeys(item.tags)),
            metadata=dict(item.metadata),
            source=item.source,
            session_id=self.session_id,
            speaker=self.speaker,
            principal=principal,
            occurred_at=None if item.occurred_at is None else to_ms(item.occurred_at),
            valid_from=None if item.valid_from is None else to_ms(item.valid_from),
            valid_until=None if item.valid_until is None else to_ms(item.valid_until),
            entities=self.entities,
            model=self.model,
            spare=self.spare,
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """A version of a memory out of an archive, to be stored as it is.

    ``entities`` None: they are to be extracted. ``model`` names the space of the vectors, empty for none; those of the
    chunks stand beside their texts.
    """

    item: RetainItem
    layer: str | None = None
    entities: tuple[Entity, ...] | None = None
    model: str = ""
    vector: bytes | None = None
    chunks: tuple[tuple[str, bytes | None], ...] = ()


def new_memory_id() -> str:
    """``mem_`` and a UUID of version 7 in hexadecimal: ids sort by the time of their making."""
    random = int.from_bytes(os.urandom(10))
    value = (time.time_ns() // 1_000_000) << 80 | 0x7 << 76 | (random >> 68) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    return f"{ID_PREFIX}{value:032x}"


def identity_hash(content: str, speaker: str | None, session_id: str | None, occurred_at: int | None) -> bytes:
    """The hash of what makes two memories the same: content, speaker, session and instant.

    A content without the other three has its plain content hash. The same sentence of another day, session or speaker
    is another memory.

    Args:
        content: The normalised content.
        speaker: The speaker; None or empty where there is none.
        session_id: The session; None or empty where there is none.
        occurred_at: Milliseconds since the epoch; None where the item has no date.
    """
    occasion = "" if occurred_at is None else str(occurred_at)
    if session_id or occasion:
        return content_hash(PART_END.join((speaker or "", session_id or "", occasion, content)))
    return content_hash(f"{speaker}{PART_END}{content}" if speaker else content)


def hash_fits(
    stored: bytes, content: str, speaker: str | None, session_id: str | None, occurred_at: int | None
) -> bool:
    """Return whether a stored hash is that of a memory, or of content and speaker, as earlier versions have it."""
    return stored in {
        identity_hash(content, speaker, session_id, occurred_at),
        identity_hash(content, speaker, None, None),
    }


async def compute(executor: Executor, work: Callable[[], T], contents: Sequence[str], *, inline: bool = True) -> T:
    """The result of ``work`` on contents: on the loop where it is sure to be short, and ``inline`` allows it."""
    if inline and len(contents) <= INLINE_ITEMS and max(map(len, contents), default=0) <= INLINE_CHARS:
        return work()
    return await asyncio.get_running_loop().run_in_executor(executor, work)
