"""Rows of new versions, gathered and then written table by table."""

from __future__ import annotations

from dataclasses import replace

import apsw

from astrocyte.errors import AlreadyExists, Conflict, DimensionMismatch
from astrocyte.stores.lifecycle import ARCHIVE_INSTANT
from astrocyte.stores.records import NewMemory, PastVersion, SpareVectors, VersionRecord
from astrocyte.stores.sqlite.engine.transaction import BankWork
from astrocyte.stores.sqlite.rows import (
    Row,
    encode_entities,
    encode_metadata,
    encode_tags,
    fetch,
    insert_rows,
    passage_key,
)
from astrocyte.stores.sqlite.tables import vectors

FLOAT_BYTES = 4
# When a version began and ended, and the position of its end.
PastTimes = tuple[int, int | None, int | None]
# When and why a memory was archived, and what it was merged into.
Archived = tuple[int | None, str | None, str | None]
NOT_ARCHIVED: Archived = (None, None, None)

_LAST_ROW_KEY = "SELECT seq FROM sqlite_sequence WHERE name = 'memories'"


class VersionRows:
    """Rows of new versions, gathered and then written table by table."""

    def __init__(self, connection: apsw.Connection, work: BankWork) -> None:
        self._connection = connection
        self._work = work
        rows = fetch(connection, _LAST_ROW_KEY)
        self._last: int = rows[0][0] if rows else 0
        self._memories: list[Row] = []
        self._contents: list[Row] = []
        self._tags: list[Row] = []
        self._entities: list[Row] = []
        self._chunks: list[Row] = []
        self._embeddings: tuple[list[Row], list[Row]] = ([], [])
        self._building: str | None = None
        self._asked = False

    def add(
        self,
        memory: NewMemory,
        *,
        version: int,
        retained_at: int,
        position: int,
        times: PastTimes | None = None,
        archived: Archived = NOT_ARCHIVED,
    ) -> None:
        """One version that begins now, or that began and perhaps ended before; or the copy that an archived memory has.

        Raises:
            Conflict: Its vectors are of another model than the bank's, which has moved since they were made.
        """
        known_from, known_until, ended_position = (self._work.now, None, None) if times is None else times
        if memory.model != self._work.bank.embedding_model:
            memory = self._fitting(memory)
        self._last += 1
        key, work = self._last, self._work
        self._memories.append((
            key, work.bank.key, memory.memory_id, version, memory.content_hash, memory.content_type, memory.fact_type,
            memory.memory_layer, memory.session_id, memory.principal, memory.token_count, max(1, len(memory.chunks)),
            memory.occurred_at, memory.valid_from, memory.valid_until, retained_at, known_from, known_until, position,
            ended_position, None, None, None, None, None, None, None, *archived,
        ))  # fmt: skip
        self._contents.append((
            key, memory.content, encode_tags(memory.tags) if memory.tags else "[]",
            encode_metadata(memory.metadata) if memory.metadata else "{}", memory.source, memory.speaker,
            encode_entities(memory.entities) if memory.entities else "[]",
        ))  # fmt: skip
        if memory.entities and not work.sealed:
            folded = dict.fromkeys(one.folded for one in memory.entities)
            self._entities += [(work.bank.key, name, key) for name in folded]
        if memory.tags:
            self._tags += [(work.bank.key, tag, key) for tag in dict.fromkeys(memory.tags)]
        self._vector(key, -1, memory.vector)
        for ordinal, chunk in enumerate(memory.chunks):
            self._chunks.append((passage_key(key, ordinal), chunk.text, chunk.tokens))
            self._vector(key, ordinal, chunk.vector)
        if memory.spare is not None:
            self._spare(key, memory.spare)
        work.upsert(VersionRecord(key, version, retained_at, known_from, known_until, memory))

    def add_past(self, past: PastVersion, position: int, ended_position: int | None) -> None:
        """One version of an archive; raises as `add` does."""
        now = self._work.now
        if past.archived_at is not None:
            self.add(
                past.memory,
                version=past.version,
                retained_at=now if past.retained_at is None else min(past.retained_at, now),
                position=position,
                times=(ARCHIVE_INSTANT, ARCHIVE_INSTANT + 1, position),
                archived=(min(past.archived_at, now), past.archive_reason, past.merged_into),
            )
            return
        began = now if past.known_from is None else min(past.known_from, now)
        ended = None if past.known_until is None else min(past.known_until, now)
        retained_at = began if past.retained_at is None else min(past.retained_at, now)
        times = (began, ended, ended_position)
        self.add(past.memory, version=past.version, retained_at=retained_at, position=position, times=times)

    def write(self) -> None:
        """Insert everything that was added.

        Raises:
            AlreadyExists: The bank has a memory of that id.
        """
        try:
            insert_rows(self._connection, "memories", self._memories)
        except apsw.ConstraintError as error:
            raise AlreadyExists("the bank has, or had, a memory with this id; use a new id") from error
        for table, rows in (
            ("contents", self._contents),
            ("tags", self._tags),
            ("entities", self._entities),
            ("chunks", self._chunks),
            *zip(vectors.SETS, self._embeddings, strict=True),
        ):
            if rows:
                insert_rows(self._connection, table, rows)

    def _vector(self, key: int, ordinal: int, vector: bytes | None) -> None:
        if vector is None:
            return
        bank = self._work.bank
        if len(vector) != bank.dimensions * FLOAT_BYTES:
            raise DimensionMismatch(
                f"has {len(vector)} bytes, a vector of bank {bank.bank_id!r} has {bank.dimensions * FLOAT_BYTES}",
                field="embedding",
            )
        self._embeddings[self._work.vector_set].append((passage_key(key, ordinal), bank.embedding_model, vector))

    def _fitting(self, memory: NewMemory) -> NewMemory:
        bank = self._work.bank
        fitting = memory.in_space(bank.embedding_model)
        if fitting is None:
            raise Conflict(
                f"bank {bank.bank_id!r} was reindexed to {bank.embedding_model!r} meanwhile; retry",
                metadata={"bank_id": bank.bank_id, "bank_model": bank.embedding_model},
            )
        # Who looks at the record later must not have to guess.
        return fitting if fitting.model else replace(fitting, model=bank.embedding_model)

    def _spare(self, key: int, spare: SpareVectors) -> None:
        """Vectors of the model that the bank is moving to; of any other they are of no use."""
        if not self._asked:
            self._building, self._asked = vectors.building(self._connection, self._work.bank.key), True
        if spare.model == self._building:
            self._embeddings[1 - self._work.vector_set].extend(
                (passage_key(key, ordinal), spare.model, vector or vectors.NO_DIRECTION)
                for ordinal, vector in enumerate((spare.whole, *spare.chunks), start=-1)
            )
