"""Reading: each method sees one committed state."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from typing import TypeVar

from astrocyte.model import Bank, Change, ChangeKind, ForgetSelector, Memory
from astrocyte.stores.quarantine import HashFits, Quarantine
from astrocyte.stores.records import RequestKey, VersionRecord
from astrocyte.stores.sqlite import damage
from astrocyte.stores.sqlite.archiving import LATEST
from astrocyte.stores.sqlite.bank_reads import BankReads
from astrocyte.stores.sqlite.deletion.soft_delete import LISTED_IDS, archived_among, selected, selection
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.rows import (
    MEMORY_COLUMNS,
    Row,
    decode_memory,
    fetch,
    to_datetime,
)
from astrocyte.stores.sqlite.tables import archives, entities, idempotency, legal_holds, retry_queue, sessions
from astrocyte.stores.sqlite.tables.version_records import records

_MEMORIES = f"SELECT {MEMORY_COLUMNS} FROM memories m JOIN contents c USING (row_key)"
# The bank exists, and is the caller's: a handle is not taken at its word.
_BANK_HOLDS = "EXISTS (SELECT 1 FROM banks b WHERE b.bank_key = ? AND b.tenant = ? AND b.bank_id = ?)"
# Visible now, and as of a position ?2 in bank ?1: there by then, not yet replaced, and not forgotten at that time.
_LISTED = (
    "m.bank_key = ?1 AND m.forgotten_at IS NULL AND m.position <= ?2"
    " AND (m.ended_position IS NULL OR m.ended_position > ?2)"
    " AND (m.restored_position IS NULL OR m.restored_position <= ?2 OR NOT EXISTS (SELECT 1 FROM absences a"
    " WHERE a.bank_key = ?1 AND a.memory_id = m.memory_id AND a.forgotten_position <= ?2 AND a.restored_position > ?2))"
)
# Archived since then and now.
_ARCHIVED = "m.bank_key = ?1 AND m.forgotten_at IS NULL AND m.archived_at IS NOT NULL AND m.position <= ?2"
# What recall may see as of a position, given twice, and has not been forgotten since.
_INDEXED = "m.forgotten_at IS NULL AND m.position <= ? AND (m.restored_position IS NULL OR m.restored_position <= ?)"
# The same by the index of ids: the plus keeps SQLite from walking the listed memories of the whole bank.
_INDEXED_BY_ID = f"+{_INDEXED}"
# Current versions of several memories.
_CURRENT_BY_ID = (
    "m.bank_key = ? AND m.memory_id IN (SELECT value FROM json_each(?))"
    " AND m.known_until IS NULL AND m.forgotten_at IS NULL"
)

# Rows of which one is compared with its content hash when an index is loaded.
ROWS_PER_CHECK = 64
# Row keys read at once where a listing meets damage; a damaged page is met again with each further read.
KEYS_AT_ONCE = 4_096

T = TypeVar("T")


class Reads(BankReads):
    """The methods of `MemoryStore` and `RetryQueue` that read; see there for what each returns."""

    def __init__(self, connections: Connections, quarantine: Quarantine, hash_fits: HashFits | None = None) -> None:
        super().__init__(connections)
        self._quarantine = quarantine
        self._hash_fits = hash_fits

    def find_response(self, tenant: str, request: RequestKey) -> bytes | None:
        """The stored response of an earlier, equal request, or None."""
        return idempotency.matching(self._connections.query(idempotency.FIND, (tenant, request.request_id)), request)

    def memory(
        self, bank: Bank, memory_id: str, *, version: int | None = None, include_forgotten: bool = False
    ) -> Memory | None:
        """The current version, or the one of that number, or None, also where it is damaged."""
        forgotten = " AND m.erasing IS NULL" if include_forgotten else " AND m.forgotten_at IS NULL"
        which = (LATEST, ()) if version is None else ("m.version = ?", (version,))
        found = self._memories(bank, memory_id, which[0] + forgotten, which[1])
        return found[0] if found else None

    def version(self, bank: Bank, memory_id: str) -> VersionRecord | None:
        """The current version with its chunks and vectors, or None, also where it is damaged."""
        found = self.current_versions(bank, [memory_id])
        return found[0] if found else None

    def current_versions(self, bank: Bank, memory_ids: Sequence[str]) -> list[VersionRecord]:
        """As `version`, of several memories; those that are gone or damaged are left out."""
        bindings = (bank.key, json.dumps(list(memory_ids)))
        return self._records(bank, memory_ids, _CURRENT_BY_ID, bindings, at_position=0)

    def versions(self, bank: Bank, memory_id: str) -> list[Memory]:
        """All versions that are not damaged, oldest first."""
        return self._memories(bank, memory_id, "m.forgotten_at IS NULL", ())

    def _memories(self, bank: Bank, memory_id: str, condition: str, bindings: Sequence[object]) -> list[Memory]:
        """Return the versions of a memory that meet a condition over ``m`` and are not damaged, oldest first."""
        listing = f"{_MEMORIES} WHERE m.bank_key = ? AND m.memory_id = ? AND {condition} AND {_BANK_HOLDS}"
        values = (bank.key, memory_id, *bindings, bank.key, bank.tenant, bank.bank_id)

        def read(row_key: int | None) -> list[tuple[int, Memory]]:
            one, key = ("", ()) if row_key is None else (" AND m.row_key = ?", (row_key,))
            rows = self._connections.query(f"{listing}{one} ORDER BY m.version", (*values, *key))
            return [(row[0], _decoded(row, bank)) for row in rows]

        found = self._undamaged(bank, [memory_id], read)
        return [memory for row_key, memory in found if row_key not in self._quarantine]

    def _records(
        self, bank: Bank, memory_ids: Sequence[str], clause: str, bindings: Sequence[object], *, at_position: int
    ) -> list[VersionRecord]:
        """Return the versions of memories that a clause meets and that are not damaged, by row key."""

        def read(row_key: int | None) -> list[VersionRecord]:
            one, key = ("", ()) if row_key is None else (" AND m.row_key = ?", (row_key,))
            with self._connections.snapshot() as connection:
                return records(connection, bank, clause + one, (*bindings, *key), at_position=at_position)

        found = self._undamaged(bank, memory_ids, read)
        return sorted((record for record in found if self._whole(bank, record)), key=lambda record: record.row_key)

    def _undamaged(self, bank: Bank, memory_ids: Sequence[str], read: Callable[[int | None], list[T]]) -> list[T]:
        """Read versions of memories at once, or one by one where that meets damage.

        Args:
            bank: Whose.
            memory_ids: The memories.
            read: Returns what is asked for; given a row key, of that version alone.

        Raises:
            StoreError: The row keys of the memories cannot be read either.
        """
        try:
            return read(None)
        except Exception as error:
            if damage.problem_of(error) is None:
                raise
        # The index of versions alone answers this.
        keys = self._connections.query(
            "SELECT row_key FROM memories WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
            " ORDER BY memory_id, version",
            (bank.key, json.dumps(list(memory_ids))),
        )
        found = damage.around(read, (row_key for (row_key,) in keys), bank, self._quarantine)
        return [one for versions in found for one in versions]

    def list_memories(  # noqa: PLR0913 - a filter and the bounds of a page
        self,
        bank: Bank,
        *,
        tags: Sequence[str],
        session_id: str | None,
        at_position: int,
        after: int,
        limit: int,
        content_chars: int | None = None,
        archived: bool = False,
    ) -> tuple[list[tuple[int, Memory]], int]:
        """Visible memories as they were at a position."""
        clause = _ARCHIVED if archived else _LISTED
        bindings: list[object] = [bank.key, at_position]
        if session_id is not None:
            clause += " AND m.session_id = ?"
            bindings.append(session_id)
        if tags:
            marks = ",".join("?" * len(tags))
            clause += f" AND m.row_key IN (SELECT row_key FROM tags WHERE bank_key = ? AND tag IN ({marks}))"
            bindings += [bank.key, *tags]
        count = f"SELECT count(*) FROM memories m WHERE {clause}"
        listing = f"{_MEMORIES} WHERE {clause} AND {_BANK_HOLDS} AND m.row_key"
        holder = (bank.key, bank.tenant, bank.bank_id)
        try:
            with self._connections.snapshot() as connection:
                ((total,),) = fetch(connection, count, bindings)
                found = connection.execute(
                    f"{listing} > ? ORDER BY m.row_key LIMIT ?", (*bindings, *holder, after, limit)
                )
                with closing(found):
                    memories = ((row[0], _decoded(row, bank)) for row in found)
                    return list(_up_to(memories, content_chars)), total
        except Exception as error:
            if damage.problem_of(error) is None:
                raise
        ((total,),) = self._connections.query(count, bindings)

        def read_one(row_key: int) -> tuple[int, Memory] | None:
            rows = self._connections.query(f"{listing} = ?", (*bindings, *holder, row_key))
            return (row_key, _decoded(rows[0], bank)) if rows else None

        intact = damage.around(read_one, self._keys(bank, after), bank, self._quarantine)
        return list(_up_to(islice(intact, limit), content_chars)), total

    def _keys(self, bank: Bank, after: int) -> Iterator[int]:
        """Yield the row keys of a bank that can be read."""
        while True:
            with self._connections.snapshot() as connection:
                keys = damage.keys_of(connection, bank, after, KEYS_AT_ONCE)
            if not keys:
                return
            yield from keys
            after = keys[-1]

    def select(self, bank: Bank, selector: ForgetSelector, *, include_forgotten: bool = False) -> tuple[int, list[str]]:
        """The number of memories that the selector meets, and the first 1,000 ids."""
        sql, bindings = selection(bank, selector, forgotten=include_forgotten)
        condition, waiting = retry_queue.selection(bank, selector)
        with self._connections.snapshot() as connection:
            rows = fetch(connection, sql, bindings)
            legal_holds.check_memories(connection, bank, [row[0] for row in rows])
            legal_holds.check_queue(connection, bank, selector)
            rows += fetch(
                connection, f"SELECT memory_id FROM queued_retains WHERE {condition} ORDER BY queue_key", waiting
            )
        return len(rows), [row[0] for row in rows[:LISTED_IDS]]

    def archived_among(self, bank: Bank, selector: ForgetSelector, *, include_forgotten: bool = False) -> int:
        """The number of the memories that the selector meets and that are archived."""
        with self._connections.snapshot() as connection:
            return archived_among(connection, bank, selected(connection, bank, selector, forgotten=include_forgotten))

    def changes(self, bank: Bank, *, after: int, limit: int) -> list[Change]:
        """The change log after a position."""
        rows = self._connections.query(
            "SELECT position, kind, memory_id, changed_at FROM changes WHERE bank_key = ? AND position > ?"
            f" AND {_BANK_HOLDS} ORDER BY position LIMIT ?",
            (bank.key, after, bank.key, bank.tenant, bank.bank_id, limit),
        )
        return [Change(row[0], ChangeKind(row[1]), row[2], to_datetime(row[3])) for row in rows]

    def iter_versions(self, bank: Bank, *, batch_size: int = 1_000) -> Iterator[list[VersionRecord]]:
        """Every version that recall may ever see, by row key.

        No transaction stays open between two batches, or an erasure would have to wait for the reader of a large bank.
        The rows themselves say what they were at the position that the first batch met.
        """
        rows = self._connections.query("SELECT position FROM banks WHERE bank_key = ?", (bank.key,))
        position = rows[0][0] if rows else 0
        clause = f"m.bank_key = ? AND m.row_key > ? AND {_INDEXED}"
        after = 0
        while True:
            try:
                with self._connections.snapshot() as connection:
                    batch = records(
                        connection,
                        bank,
                        clause,
                        (bank.key, after, position, position),
                        at_position=position,
                        limit=batch_size,
                    )
            except Exception as error:
                if damage.problem_of(error) is None:
                    raise
                with self._connections.snapshot() as connection:
                    keys = damage.keys_of(connection, bank, after, batch_size)
                batch = list(damage.around(partial(self._record, bank, position), iter(keys), bank, self._quarantine))
                after = keys[-1] if keys else after
            else:
                keys = [record.row_key for record in batch]
                after = keys[-1] if keys else after
            if not keys:
                return
            if whole := [record for record in batch if self._whole(bank, record)]:
                yield whole

    def _record(self, bank: Bank, position: int, row_key: int) -> VersionRecord | None:
        clause = f"m.bank_key = ? AND m.row_key = ? AND {_INDEXED}"
        bindings = (bank.key, row_key, position, position)
        with self._connections.snapshot() as connection:
            found = records(connection, bank, clause, bindings, at_position=position)
        return found[0] if found else None

    def _whole(self, bank: Bank, record: VersionRecord) -> bool:
        """Return whether a version is not damaged, as far as that is known."""
        memory = record.memory
        if record.row_key in self._quarantine:
            return False
        problem = damage.record_problem(record, bank)
        if problem is not None:
            self._quarantine.add(bank.key, record.row_key, problem)
            return False
        if self._hash_fits is None or record.row_key % ROWS_PER_CHECK:
            return True
        fits = self._hash_fits(
            memory.content_hash, memory.content, memory.speaker, memory.session_id, memory.occurred_at
        )
        if not fits:
            self._quarantine.add(bank.key, record.row_key, damage.HASH)
        return fits

    def version_records(self, bank: Bank, memory_ids: Sequence[str], *, at_position: int) -> list[VersionRecord]:
        """Every version of these memories that recall may ever see and that is not damaged."""
        clause = f"m.bank_key = ? AND m.memory_id IN (SELECT value FROM json_each(?)) AND {_INDEXED_BY_ID}"
        bindings = (bank.key, json.dumps(list(memory_ids)), at_position, at_position)
        return self._records(bank, memory_ids, clause, bindings, at_position=at_position)

    def turns_before(self, bank: Bank, memory_ids: Sequence[str]) -> dict[str, str]:
        """Ids of the current memories before others in their sessions."""
        return sessions.turns_before(self._connections, bank, memory_ids)

    def naming(self, bank: Bank, names: Sequence[str], *, as_of: int | None, most: int) -> Mapping[str, Sequence[str]]:
        """Memories by the names that they hold."""
        return entities.naming(self._connections, bank, names, as_of, most)

    def memory_ids(self, bank: Bank, *, after: str, limit: int, at_position: int) -> list[str]:
        """Ids of visible memories."""
        return archives.memory_ids(self._connections, bank, after, limit, at_position)

    def tombstones(self, bank: Bank, *, after: str, limit: int) -> list[tuple[str, int]]:
        """Forgotten memories."""
        return archives.tombstones(self._connections, bank, after, limit)

    def held(self, bank: Bank, memory_ids: Sequence[str]) -> dict[str, bool]:
        """Memories that the bank has, or had."""
        return archives.held(self._connections, bank, memory_ids)

    def same_content(self, bank: Bank, content_hashes: Sequence[bytes]) -> set[bytes]:
        """Content hashes of current memories."""
        return archives.same_content(self._connections, bank, content_hashes)


def _up_to(memories: Iterable[tuple[int, Memory]], content_chars: int | None) -> Iterator[tuple[int, Memory]]:
    """The memories, up to the first one after more than so many characters of content."""
    left = content_chars
    for row_key, memory in memories:
        yield row_key, memory
        if left is not None:
            if left < 0:
                return
            left -= len(memory.content)


def _decoded(row: Row, bank: Bank) -> Memory:
    """Return a memory from `MEMORY_COLUMNS`.

    Raises:
        TypeError: Its metadata is no mapping.
    """
    memory = decode_memory(row, bank.bank_id)
    if type(memory.metadata) is not dict:
        raise TypeError("the metadata of a row is no mapping")
    return memory
