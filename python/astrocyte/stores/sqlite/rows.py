"""Between rows and domain values. Every SELECT that feeds a decoder names its columns here, in the decoder's order."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import apsw

from astrocyte.model import ArchiveReason, Bank, Entity, Memory, MemoryState, Metadata
from astrocyte.stores.records import ChunkRecord, NewMemory, VersionRecord

Row = tuple[Any, ...]

BANK_COLUMNS = (
    "bank_key, tenant, bank_id, display_name, description, embedding_model, dimensions, created_at, updated_at, "
    "position, revision, created_by"
)
# m is memories, c is contents.
MEMORY_COLUMNS = (
    "m.row_key, m.memory_id, m.version, c.content, m.content_type, m.fact_type, m.memory_layer, c.tags, c.metadata, "
    "c.source, m.session_id, c.speaker, m.principal, m.occurred_at, m.valid_from, m.valid_until, m.retained_at, "
    "m.known_from, m.forgotten_at, m.purge_after, m.chunk_count, m.token_count, m.position, c.entities, m.archived_at, "
    "m.archive_reason, m.merged_into"
)
RECORD_COLUMNS = (
    "m.row_key, m.memory_id, m.version, c.content, m.content_type, m.fact_type, m.memory_layer, c.tags, c.metadata, "
    "c.source, m.session_id, c.speaker, m.principal, m.occurred_at, m.valid_from, m.valid_until, m.retained_at, "
    "m.known_from, m.known_until, m.content_hash, m.token_count, m.ended_position, c.entities, m.archived_at, "
    "m.archive_reason, m.merged_into"
)

# A version has at most this many passages, its whole included; content of the largest size allowed has far fewer.
PASSAGES_PER_ROW = 1 << 16
# Rows of one INSERT: enough that the cost of a call vanishes, few enough that each size stays in the statement cache.
# It matters under load: every call into SQLite hands the interpreter lock to whoever waits for it.
ROWS_PER_STATEMENT = 64

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
# What the encoder wrote has no space around it, so nobody need look for some: half the time of `json.loads`.
_decode_json = json.JSONDecoder().raw_decode


def to_datetime(value: int) -> datetime:
    """Milliseconds since the epoch as a UTC datetime."""
    return _EPOCH + timedelta(milliseconds=value)


def to_milliseconds(value: datetime) -> int:
    """A datetime as milliseconds since the epoch, rounded down."""
    return (value - _EPOCH) // timedelta(milliseconds=1)


def passage_key(row_key: int, ordinal: int) -> int:
    """The key of a version's chunk, or of its whole (ordinal -1), in ``chunks`` and ``embeddings``."""
    return row_key * PASSAGES_PER_ROW + ordinal + 1


def bank_etag(bank_key: int, revision: int) -> str:
    """The etag of a bank: changes with its description, not with its memories."""
    return f"{bank_key:x}-{revision:x}"


def fetch(connection: apsw.Connection, sql: str, bindings: Sequence[object] = ()) -> list[Row]:
    """All rows of a statement."""
    return connection.execute(sql, bindings).fetchall()


class Array:
    """Values of one type as one binding, for ``carray`` in a statement; the engine gives them to its database.

    Attributes:
        values: Numbers, texts or byte strings.
    """

    __slots__ = ("values",)

    def __init__(self, values: Sequence[int] | Sequence[str] | Sequence[bytes]) -> None:
        self.values = values


class BankDigests(Array):
    """Values that are looked up in a column whose values a sealed bank has as digests of its own.

    Attributes:
        bank_key: Key of the bank.
        table: Name of the table.
        column: Name of the column.
    """

    __slots__ = ("bank_key", "column", "table")

    def __init__(self, values: Sequence[str] | Sequence[bytes], bank_key: int, table: str, column: str) -> None:
        super().__init__(values)
        self.bank_key, self.table, self.column = bank_key, table, column


def key_array(keys: Iterable[int]) -> Array:
    """Keys of rows as a binding of ``carray``, which takes no empty array; -1 is the key of no row."""
    return Array(array("q", keys) or array("q", [-1]))


def bound(cursor: apsw.Cursor, number: int, value: object) -> Any:  # noqa: ANN401 - apsw does not export the class
    """Return the binding of SQLite for a value that it does not know."""
    del cursor, number
    if isinstance(value, Array):
        return apsw.carray(value.values)
    raise TypeError(f"a value of the type {type(value).__name__} cannot be bound")


def insert_rows(connection: apsw.Connection, table: str, rows: Sequence[Sequence[object]]) -> None:
    """Insert rows of all columns, many to a statement."""
    start = 0
    while start < len(rows):
        left = len(rows) - start
        # Powers of two, so that few statements serve every number of rows.
        count = min(ROWS_PER_STATEMENT, 1 << (left.bit_length() - 1))
        part = rows[start : start + count]
        values = ",".join([f"({','.join('?' * len(part[0]))})"] * count)
        connection.execute(f"INSERT INTO {table} VALUES {values}", tuple(chain.from_iterable(part)))
        start += count


def encode_tags(tags: Sequence[str]) -> str:
    """Tags as JSON, in their order."""
    return _encode_json(list(tags)) if tags else "[]"


def decode_tags(text: str) -> tuple[str, ...]:
    """The inverse of `encode_tags`."""
    return () if text == "[]" else tuple(_decode_json(text)[0])


def encode_entities(entities: Sequence[Entity]) -> str:
    """Entities as JSON, in their order: name, type, and the name as it is looked for."""
    return _encode_json([[*entity, entity.folded] for entity in entities]) if entities else "[]"


def decode_entities(text: str) -> tuple[Entity, ...]:
    """The inverse of `encode_entities`."""
    return tuple(Entity(name, kind) for name, kind, _ in _decode_json(text)[0])


def encode_metadata(metadata: Metadata) -> str:
    """Metadata as JSON; it has no NaN and no infinity."""
    return _encode_json(dict(metadata)) if metadata else "{}"


def decode_metadata(text: str) -> Metadata:
    """The inverse of `encode_metadata`."""
    if text == "{}":
        return {}
    metadata: Metadata = _decode_json(text)[0]
    return metadata


def decode_bank(row: Row) -> Bank:
    """A bank from `BANK_COLUMNS`."""
    (
        key, tenant, bank_id, display_name, description, model, dimensions, created_at, updated_at, position, revision,
        created_by,
    ) = row  # fmt: skip
    return Bank(
        key,
        tenant,
        bank_id,
        display_name,
        description,
        model,
        dimensions,
        _EPOCH + timedelta(0, 0, 0, created_at),
        _EPOCH + timedelta(0, 0, 0, updated_at),
        position,
        f"{key:x}-{revision:x}",
        created_by,
    )


def decode_memory(row: Row, bank_id: str) -> Memory:
    """A memory from `MEMORY_COLUMNS`."""
    (
        row_key, memory_id, version, content, content_type, fact_type, layer, tags, metadata, source, session_id,
        speaker, principal, occurred_at, valid_from, valid_until, retained_at, known_from, forgotten_at, purge_after,
        chunk_count, token_count, position, entities, archived_at, archive_reason, merged_into,
    ) = row  # fmt: skip
    if archived_at is not None:
        known_from = archived_at
    retained = _EPOCH + timedelta(0, 0, 0, retained_at)
    return Memory(
        memory_id=memory_id,
        bank_id=bank_id,
        version=version,
        content=content,
        content_type=content_type,
        fact_type=fact_type,
        memory_layer=layer,
        tags=() if tags == "[]" else decode_tags(tags),
        metadata={} if metadata == "{}" else decode_metadata(metadata),
        source=source,
        session_id=session_id,
        speaker=speaker,
        principal=principal,
        occurred_at=None if occurred_at is None else _EPOCH + timedelta(0, 0, 0, occurred_at),
        valid_from=None if valid_from is None else _EPOCH + timedelta(0, 0, 0, valid_from),
        valid_until=None if valid_until is None else _EPOCH + timedelta(0, 0, 0, valid_until),
        retained_at=retained,
        updated_at=retained if known_from == retained_at else _EPOCH + timedelta(0, 0, 0, known_from),
        forgotten_at=None if forgotten_at is None else _EPOCH + timedelta(0, 0, 0, forgotten_at),
        purge_after=None if purge_after is None else _EPOCH + timedelta(0, 0, 0, purge_after),
        chunk_count=chunk_count,
        token_count=token_count,
        position=position,
        etag=f"{row_key:x}",
        state=_state(forgotten_at, archived_at),
        archived_at=None if archived_at is None else _EPOCH + timedelta(0, 0, 0, archived_at),
        archive_reason=None if archive_reason is None else ArchiveReason(archive_reason),
        merged_into=merged_into,
        entities=() if entities == "[]" else decode_entities(entities),
    )


def _state(forgotten_at: int | None, archived_at: int | None) -> MemoryState:
    if forgotten_at is not None:
        return MemoryState.FORGOTTEN
    return MemoryState.ACTIVE if archived_at is None else MemoryState.ARCHIVED


def decode_record(
    row: Row,
    chunks: tuple[ChunkRecord, ...],
    vector: bytes | None,
    model: str,
    at_position: int,
    known_tags: dict[str, tuple[str, ...]],
) -> VersionRecord:
    """A version from `RECORD_COLUMNS`, as it was at a position: an end that came later is left out.

    ``known_tags`` has the sets of tags of rows before, by their text: banks have few of them.
    """
    (
        row_key, memory_id, version, content, content_type, fact_type, layer, tags, metadata, source, session_id,
        speaker, principal, occurred_at, valid_from, valid_until, retained_at, known_from, known_until, content_hash,
        token_count, ended_position, entities, archived_at, archive_reason, merged_into,
    ) = row  # fmt: skip
    ended = ended_position is not None and ended_position <= at_position
    own_tags = known_tags.get(tags)
    if own_tags is None:
        own_tags = known_tags[tags] = decode_tags(tags)
    memory = NewMemory(
        memory_id=memory_id,
        content=content,
        content_hash=content_hash,
        content_type=content_type,
        fact_type=fact_type,
        memory_layer=layer,
        token_count=token_count,
        vector=vector,
        chunks=chunks,
        tags=own_tags,
        metadata={} if metadata == "{}" else decode_metadata(metadata),
        source=source,
        session_id=session_id,
        speaker=speaker,
        principal=principal,
        occurred_at=occurred_at,
        valid_from=valid_from,
        valid_until=valid_until,
        entities=() if entities == "[]" else decode_entities(entities),
        model=model,
    )
    until = known_until if ended else None
    copied = (archived_at, archive_reason, merged_into)
    return VersionRecord(row_key, version, retained_at, known_from, until, memory, *copied)
