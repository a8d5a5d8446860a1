"""Archiving and restoring memories, each inside one transaction.

Archiving ends the current version and adds a copy of it at `ARCHIVE_INSTANT`, which recalls of now and of the past do
not meet. Restoring puts a copy that begins now in the place of that one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import apsw

from astrocyte.model import ChangeKind
from astrocyte.stores.lifecycle import ARCHIVE_INSTANT
from astrocyte.stores.records import VersionRecord
from astrocyte.stores.sqlite.engine.transaction import BankWork
from astrocyte.stores.sqlite.tables.version_records import spared_records
from astrocyte.stores.sqlite.version_rows import VersionRows

# The last version of a memory m, archived or not.
LATEST = "(m.known_until IS NULL OR m.archived_at IS NOT NULL)"
_CURRENT = (
    "m.bank_key = ? AND m.memory_id IN (SELECT value FROM json_each(?)) AND m.known_until IS NULL"
    " AND m.forgotten_at IS NULL"
)
_ARCHIVED = "m.bank_key = ? AND m.memory_id = ? AND m.archived_at IS NOT NULL AND m.forgotten_at IS NULL"


def archive(
    connection: apsw.Connection,
    work: BankWork,
    memory_ids: Sequence[str],
    reason: str,
    merged_into: Mapping[str, str] | None = None,
) -> list[tuple[str, int]]:
    """Archive memories that are current; returns their ids with the positions of the changes.

    Args:
        connection: In a transaction.
        work: The changes of the bank.
        memory_ids: The memories.
        reason: unused, expired or merged.
        merged_into: The memory that each of them is part of, for merged ones.
    """
    bindings = (work.bank.key, json.dumps(list(memory_ids)))
    # Ends of versions are of no concern: none has one.
    records = spared_records(connection, work.bank, _CURRENT, bindings, at_position=work.position)
    rows = VersionRows(connection, work)
    changes = []
    for record in records:
        memory_id = record.memory.memory_id
        position = work.change(ChangeKind.ARCHIVED, memory_id)
        _end(connection, work, record, position)
        rows.add(
            record.memory,
            version=record.version + 1,
            retained_at=record.retained_at,
            position=position,
            times=(ARCHIVE_INSTANT, ARCHIVE_INSTANT + 1, position),
            archived=(work.now, reason, (merged_into or {}).get(memory_id)),
        )
        _cite(connection, work, record, record.version + 1)
        changes.append((memory_id, position))
    rows.write()
    return changes


def tag(connection: apsw.Connection, work: BankWork, memory_id: str, tags: Sequence[str]) -> int:
    """Give a current memory a version with these tags; returns the position of the change."""
    (record,) = spared_records(
        connection, work.bank, _CURRENT, (work.bank.key, json.dumps([memory_id])), at_position=work.position
    )
    position = work.change(ChangeKind.UPDATED, memory_id)
    _end(connection, work, record, position)
    rows = VersionRows(connection, work)
    memory = replace(record.memory, tags=tuple(tags))
    rows.add(memory, version=record.version + 1, retained_at=record.retained_at, position=position)
    rows.write()
    _cite(connection, work, record, record.version + 1)
    return position


def restore(connection: apsw.Connection, work: BankWork, memory_id: str) -> int | None:
    """Make an archived memory current again; returns the position of the change, None if it is not archived."""
    found = spared_records(connection, work.bank, _ARCHIVED, (work.bank.key, memory_id), at_position=work.position)
    if not found:
        return None
    record = found[0]
    position = work.change(ChangeKind.RESTORED, memory_id)
    work.remove(record.row_key)
    # The archived copy stays a part of the history, of which it is no instant that anybody asks for.
    connection.execute(
        "UPDATE memories SET archived_at = NULL, archive_reason = NULL, merged_into = NULL, known_from = ?,"
        " known_until = ? WHERE row_key = ?",
        (work.now, work.now, record.row_key),
    )
    rows = VersionRows(connection, work)
    rows.add(record.memory, version=record.version + 1, retained_at=record.retained_at, position=position)
    rows.write()
    _cite(connection, work, record, record.version + 1)
    return position


def _end(connection: apsw.Connection, work: BankWork, record: VersionRecord, position: int) -> None:
    connection.execute(
        "UPDATE memories SET known_until = ?, ended_position = ? WHERE row_key = ?",
        (work.now, position, record.row_key),
    )
    work.end(record.row_key)


def _cite(connection: apsw.Connection, work: BankWork, record: VersionRecord, version: int) -> None:
    """Let what rests on a version rest on its copy: the memory says what it said."""
    connection.execute(
        "UPDATE knowledge_sources SET version = ? WHERE bank_key = ? AND memory_id = ? AND version = ?",
        (version, work.bank.key, record.memory.memory_id, record.version),
    )
