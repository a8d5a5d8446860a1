"""The records that pass between a memory store and its callers. Times are milliseconds since the epoch, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from astrocyte.model import (
    Bank,
    Entity,
    Metadata,
)

# Ordinal of a version's whole among its passages.
WHOLE = -1


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """A piece of a memory that has several.

    ``vector`` is little-endian f32, or None when the caller sent the whole's.
    """

    text: str
    tokens: int
    vector: bytes | None


@dataclass(frozen=True, slots=True)
class SpareVectors:
    """Vectors of a memory in another space than its bank's: of the whole, and of its chunks in order."""

    model: str
    whole: bytes | None
    chunks: tuple[bytes | None, ...]


@dataclass(slots=True)
class NewMemory:
    """A memory ready to be stored. ``chunks`` is empty when the whole is the only chunk.

    ``model`` names the space of its vectors; empty, it is the bank's. ``spare`` has those of the space that the bank is
    moving to.
    """

    memory_id: str
    content: str
    content_hash: bytes
    content_type: str
    fact_type: str
    memory_layer: str
    token_count: int
    vector: bytes | None
    chunks: tuple[ChunkRecord, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)
    source: str | None = None
    session_id: str | None = None
    speaker: str | None = None
    principal: str = "local"
    occurred_at: int | None = None
    valid_from: int | None = None
    valid_until: int | None = None
    entities: tuple[Entity, ...] = ()
    model: str = field(default="", compare=False)
    spare: SpareVectors | None = field(default=None, compare=False)

    def in_space(self, model: str) -> NewMemory | None:
        """The memory with its vectors of a model; None where it has none of that."""
        if self.model in {"", model}:
            return self
        spare = self.spare
        if spare is None or spare.model != model:
            return None
        parts = zip(self.chunks, spare.chunks, strict=True)
        chunks = tuple(ChunkRecord(chunk.text, chunk.tokens, vector) for chunk, vector in parts)
        own = SpareVectors(self.model, self.vector, tuple(chunk.vector for chunk in self.chunks))
        return replace(self, vector=spare.whole, chunks=chunks, model=model, spare=own)


@dataclass(slots=True)
class VersionRecord:
    """A version of a memory as the index needs it.

    ``row_key`` names the version for ever; ``known_from``/``known_until`` bound when the service held it as the truth,
    the end not included. ``retained_at`` is when the memory's first version was stored. ``archived_at`` is set where
    this is the copy that an archived memory has, with ``archive_reason`` and, of a merged one, ``merged_into``.
    """

    row_key: int
    version: int
    retained_at: int
    known_from: int
    known_until: int | None
    memory: NewMemory
    archived_at: int | None = None
    archive_reason: str | None = None
    merged_into: str | None = None

    @property
    def etag(self) -> str:
        """The etag of this version, as `Memory.etag`."""
        return memory_etag(self.row_key)


def memory_etag(row_key: int) -> str:
    """The etag of a version: its row key, which no other version ever has."""
    return f"{row_key:x}"


@dataclass(frozen=True, slots=True)
class Insert:
    """Store a new memory, unless the bank holds one of the same content hash."""

    memory: NewMemory


@dataclass(frozen=True, slots=True)
class Replace:
    """Make ``memory`` the next version of ``memory.memory_id``; ``expected_etag`` None replaces whatever is there."""

    memory: NewMemory
    expected_etag: str | None = None


@dataclass(frozen=True, slots=True)
class PastVersion:
    """A version of a memory of an archive, with the times at which its bank held it as the truth.

    ``retained_at`` and ``known_from`` None are the time of the commit; later times than that are taken as that. The
    last version of an archived memory has ``archived_at``, and no other times of its own.
    """

    version: int
    memory: NewMemory
    retained_at: int | None = None
    known_from: int | None = None
    known_until: int | None = None
    archived_at: int | None = None
    archive_reason: str | None = None
    merged_into: str | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """Store a memory with its history, oldest version first, unless the bank has, or had, one with its id.

    It is not stored either if a memory that was stored up to the position ``known`` has the content of its last
    version.
    """

    versions: tuple[PastVersion, ...]
    known: int

    @property
    def memory(self) -> NewMemory:
        """The last version."""
        return self.versions[-1].memory


Write = Insert | Replace | Restore


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """The outcome of one write. ``duplicate_of`` is set, and nothing stored, when the content was there already."""

    memory_id: str
    position: int
    version: int
    duplicate_of: str | None = None


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A client's request id and a digest of the request, so that a retry is told from another request."""

    request_id: str
    operation: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class IndexBatch:
    """The changes of one commit in one bank, for the index: applied in order, once, after the commit.

    ``ended`` holds (row_key, known_until) of versions that stopped being current but stay visible in history;
    ``removed`` holds versions that must never be returned again. ``erased`` says that rows of some of them are gone for
    good, and that nobody may keep what they held. ``moved`` says that from here on the bank's vectors are those of the
    model that ``bank`` names, and that nothing else changed. ``refers`` is True where a memory that names other banks
    (`astrocyte.model.references`) may have come or gone. ``after`` is the position of the bank before the commit: an
    index that is not there yet lacks what other processes committed.
    """

    bank: Bank
    position: int
    upserts: tuple[VersionRecord, ...] = ()
    ended: tuple[tuple[int, int], ...] = ()
    removed: tuple[int, ...] = ()
    erased: bool = False
    moved: bool = False
    refers: bool = False
    after: int = 0


class Passage(NamedTuple):
    """A passage that recall reads back: a version, and which chunk (-1: none, the whole is the chunk)."""

    row_key: int
    ordinal: int


class HydratedRow(NamedTuple):
    """A version that the database says is visible, as far as a hit shows it, with the text of the chunk asked for.

    Not a `Memory`, and a tuple, with times in milliseconds since the epoch: every recall reads ten of these. The core
    writes them on the wire by the places of their fields (rust_core/python/src/hit_encoding.rs).
    """

    row_key: int
    ordinal: int
    memory_id: str
    version: int
    content: str
    chunk_text: str
    fact_type: str
    memory_layer: str
    tags: tuple[str, ...]
    metadata: Metadata
    source: str | None
    session_id: str | None
    speaker: str | None
    principal: str
    occurred_at: int | None
    retained_at: int
    chunk_count: int
    token_count: int


@dataclass(frozen=True, slots=True)
class Visibility:
    """The times of a query: knowledge as of ``as_of`` (None: now), validity at ``valid_at`` (None: any time)."""

    as_of: int | None = None
    valid_at: int | None = None
