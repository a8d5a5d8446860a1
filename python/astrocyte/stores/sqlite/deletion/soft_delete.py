"""Soft deletion: selects memories, forgets them behind tombstones, and brings them back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from astrocyte.errors import MemoryNotFound
from astrocyte.model import AuditEventKind, Bank, ChangeKind, ForgetSelector
from astrocyte.stores.outbox import CopyAction, CopyOrder
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.archiving import LATEST, restore
from astrocyte.stores.sqlite.engine.transaction import BankWork, Transaction
from astrocyte.stores.sqlite.rows import fetch, to_milliseconds
from astrocyte.stores.sqlite.tables import audit, idempotency, legal_holds, outbox, retry_queue
from astrocyte.stores.sqlite.tables.version_records import spared_records

# Ids that an answer lists; the count says how many there are in all.
LISTED_IDS = 1_000


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The mark on a forgotten memory: reason, principal, and when it may be erased.

    ``erasing`` marks what is hidden only until it is erased: it never comes back, whatever the clock says.
    """

    reason: str
    principal: str
    purge_after: int
    erasing: bool = False

    @property
    def said(self) -> dict[str, str]:
        """The reason as a detail of an audit event; empty where none was given."""
        return {"reason": self.reason} if self.reason else {}


def selection(bank: Bank, selector: ForgetSelector, *, forgotten: bool = False) -> tuple[str, list[object]]:
    """A query for the ids of the memories that the selector meets, in order of arrival, by their latest versions.

    Args:
        bank: Where to look.
        selector: Its parts combine with AND; of several tags or ids, any will do.
        forgotten: Whether forgotten memories count too.
    """
    clauses = ["m.bank_key = ?", LATEST]
    bindings: list[object] = [bank.key]
    if not forgotten:
        clauses.append("m.forgotten_at IS NULL")
    if selector.memory_ids:
        clauses.append("m.memory_id IN (SELECT value FROM json_each(?))")
        bindings.append(json.dumps(selector.memory_ids))
    if selector.tags:
        clauses.append(
            "m.row_key IN (SELECT row_key FROM tags WHERE bank_key = ? AND tag IN (SELECT value FROM json_each(?)))"
        )
        bindings += [bank.key, json.dumps(selector.tags)]
    if selector.before_date is not None:
        clauses.append("coalesce(m.occurred_at, m.retained_at) < ?")
        bindings.append(to_milliseconds(selector.before_date))
    # The plus has the memories found by their ids: SQLite would read the bank in order.
    order = "+m.row_key" if selector.memory_ids else "m.row_key"
    return f"SELECT m.memory_id FROM memories m WHERE {' AND '.join(clauses)} ORDER BY {order}", bindings


def selected(connection: apsw.Connection, bank: Bank, selector: ForgetSelector, *, forgotten: bool) -> list[str]:
    """The ids that the selector meets."""
    sql, bindings = selection(bank, selector, forgotten=forgotten)
    return [row[0] for row in fetch(connection, sql, bindings)]


def forget(
    transaction: Transaction,
    bank: Bank,
    selector: ForgetSelector,
    tombstone: Tombstone,
    request: RequestKey | None = None,
    copies: CopyOrder | None = None,
) -> tuple[int, list[str], int, int]:
    """Tombstone what the selector meets; see `MemoryStore.forget`."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        count, listed, position, *archived = json.loads(earlier)
        return count, listed, position, archived[0] if archived else 0
    work = transaction.bank(bank)
    memory_ids = selected(connection, bank, selector, forgotten=False)
    legal_holds.check_memories(connection, bank, memory_ids)
    legal_holds.check_queue(connection, bank, selector)
    archived = archived_among(connection, bank, memory_ids)
    bury(connection, work, memory_ids, tombstone)
    outbox.put(connection, work, copies, CopyAction.FORGET, [(one, work.position) for one in memory_ids])
    # What waits to be stored is not stored any more.
    memory_ids += retry_queue.drop(connection, bank, selector)
    answer = (len(memory_ids), memory_ids[:LISTED_IDS], work.position, archived)
    details: dict[str, str | int] = {"count": len(memory_ids), "position": work.position, **tombstone.said}
    actor = tombstone.principal
    audit.record(transaction, bank.tenant, AuditEventKind.FORGET, actor, bank_key=bank.key, details=details)
    if request is not None:
        idempotency.store(connection, bank.tenant, request, json.dumps(answer).encode(), work.now, bank_key=bank.key)
    return answer


def archived_among(connection: apsw.Connection, bank: Bank, memory_ids: Sequence[str]) -> int:
    """The number of these memories that are archived."""
    ((count,),) = fetch(
        connection,
        "SELECT count(*) FROM memories WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
        " AND archived_at IS NOT NULL",
        (bank.key, json.dumps(memory_ids)),
    )
    return int(count)


def bury(connection: apsw.Connection, work: BankWork, memory_ids: Sequence[str], tombstone: Tombstone) -> None:
    """Put a tombstone on every version of visible memories, so that no as_of shows one."""
    for memory_id in memory_ids:
        work.change(ChangeKind.FORGOTTEN, memory_id)
    rows = fetch(
        connection,
        "UPDATE memories SET forgotten_at = ?, forgotten_position = ?, purge_after = ?, forget_reason = ?,"
        " forgotten_by = ?, erasing = ? WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
        " RETURNING row_key",
        (
            work.now,
            # They all go with one commit: no reader sees the positions in between.
            work.position,
            tombstone.purge_after,
            tombstone.reason,
            tombstone.principal,
            tombstone.erasing or None,
            work.bank.key,
            json.dumps(memory_ids),
        ),
    )
    for (row_key,) in rows:
        work.remove(row_key)


def undelete(
    transaction: Transaction,
    bank: Bank,
    memory_id: str,
    principal: str,
    request: RequestKey | None = None,
    copies: CopyOrder | None = None,
) -> int:
    """Bring back a forgotten memory, or restore an archived one; others stay as they are. Returns the latest version.

    Raises:
        MemoryNotFound: There is none, its time to come back is over, or an erasure took it.
    """
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return int(earlier)
    work = transaction.bank(bank)
    rows = fetch(
        connection,
        f"SELECT m.forgotten_at, m.version FROM memories m WHERE m.bank_key = ? AND m.memory_id = ? AND {LATEST}"
        # What is due is as good as purged: when the purge comes by is nobody's business.
        " AND (m.forgotten_at IS NULL OR (m.purge_after > ? AND m.erasing IS NULL))",
        (bank.key, memory_id, work.now),
    )
    if not rows:
        raise MemoryNotFound(memory_id, bank.bank_id)
    forgotten_at, version = rows[0]
    if forgotten_at is not None:
        _bring_back(connection, work, memory_id)
        outbox.put(connection, work, copies, CopyAction.REPLACE, [(memory_id, work.position)])
        event, details = AuditEventKind.UNDELETE, {"count": 1, "position": work.position}
        audit.record(transaction, bank.tenant, event, principal, bank_key=bank.key, details=details)
    else:
        version += _restored(transaction, work, memory_id, principal, copies)
    if request is not None:
        idempotency.store(connection, bank.tenant, request, str(version).encode(), work.now, bank_key=bank.key)
    return int(version)


def _restored(
    transaction: Transaction, work: BankWork, memory_id: str, principal: str, copies: CopyOrder | None
) -> int:
    """Restore a memory if it is archived; returns the number of versions that this made."""
    position = restore(transaction.connection, work, memory_id)
    if position is None:
        return 0
    outbox.put(transaction.connection, work, copies, CopyAction.REPLACE, [(memory_id, position)])
    details: dict[str, str | int] = {"count": 1, "position": position}
    event = AuditEventKind.MEMORIES_RESTORED
    audit.record(transaction, work.bank.tenant, event, principal, bank_key=work.bank.key, details=details)
    return 1


def _bring_back(connection: apsw.Connection, work: BankWork, memory_id: str) -> None:
    bank = work.bank
    position = work.change(ChangeKind.UNDELETED, memory_id)
    connection.execute(
        "INSERT INTO absences SELECT bank_key, memory_id, forgotten_position, ? FROM memories m"
        f" WHERE bank_key = ? AND memory_id = ? AND {LATEST}",
        (position, bank.key, memory_id),
    )
    connection.execute(
        "UPDATE memories SET forgotten_at = NULL, forgotten_position = NULL, purge_after = NULL, forget_reason = NULL,"
        " forgotten_by = NULL, restored_position = ? WHERE bank_key = ? AND memory_id = ?",
        (position, bank.key, memory_id),
    )
    clause = "m.bank_key = ? AND m.memory_id = ?"
    for record in spared_records(connection, bank, clause, (bank.key, memory_id), at_position=position):
        work.upsert(record)
