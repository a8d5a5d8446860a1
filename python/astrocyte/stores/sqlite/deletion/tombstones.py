"""Hides what is to be erased first: at once or, where it is a lot, some at a time behind a durable note."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from astrocyte.errors import BankNotFound
from astrocyte.model import AuditEventKind, Bank, ForgetSelector
from astrocyte.stores.outbox import CopyAction, CopyOrder
from astrocyte.stores.protocols import RequestKey
from astrocyte.stores.sqlite.deletion import receipts
from astrocyte.stores.sqlite.deletion.receipts import Answer
from astrocyte.stores.sqlite.deletion.soft_delete import Tombstone, bury, selected
from astrocyte.stores.sqlite.engine.data_directory import note_unclean
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank, fetch
from astrocyte.stores.sqlite.tables import audit, holds, idempotency, outbox, retry_queue
from astrocyte.stores.sqlite.tables.banks import check_etag

# Memories that one commit hides: some ten milliseconds' worth, that other writes wait for.
HIDE_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Erasure:
    """The memories of an erasure, and all that the bank had then.

    ``begun`` is when, and the position after it; ``key`` is the note's, None where all is hidden already. ``queued`` is
    what waited to be stored, and went at once.
    """

    before: list[str]
    chosen: list[str]
    tombstone: Tombstone
    begun: tuple[int, int]
    key: int | None
    queued: list[str]


def begin(
    transaction: Transaction,
    bank: Bank,
    selector: ForgetSelector,
    tombstone: Tombstone,
    request: RequestKey | None,
    copies: CopyOrder | None = None,
) -> Answer | Erasure:
    """Decide what goes; after this commit it will go, whatever happens. Or what an equal request was answered."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return receipts.decode(earlier)
    work = transaction.bank(bank)
    chosen = selected(connection, bank, selector, forgotten=True)
    # From here on it goes, whatever is held later: the note, or the mark on each memory, is committed with this.
    holds.check_memories(connection, bank, chosen)
    holds.check_queue(connection, bank, selector)
    queued = retry_queue.drop(connection, bank, selector)
    outbox.put(connection, work, copies, CopyAction.ERASE, [(one, work.position) for one in chosen])
    before = memory_ids(connection, bank)
    event, details = AuditEventKind.ERASE_BEGUN, {"count": len(chosen), "queued": len(queued)}
    audit.record(transaction, bank.tenant, event, tombstone.principal, bank_key=bank.key, details=details)
    if len(chosen) <= HIDE_AT_ONCE:
        return Erasure(before, chosen, tombstone, hide(transaction, bank, chosen, tombstone), None, queued)
    connection.execute(
        "INSERT INTO erasures (bank_key, memory_ids, reason, principal) VALUES (?, ?, ?, ?)",
        (bank.key, json.dumps(chosen), tombstone.reason, tombstone.principal),
    )
    return Erasure(before, chosen, tombstone, (work.now, work.position), connection.last_insert_rowid(), queued)


def hide(transaction: Transaction, bank: Bank, chosen: Sequence[str], tombstone: Tombstone) -> tuple[int, int]:
    """Hide memories until they are erased, forgotten ones included; returns the time, and the position after it."""
    connection, work = transaction.connection, transaction.bank(bank)
    bindings = (bank.key, json.dumps(chosen))
    visible = fetch(
        connection,
        "SELECT memory_id FROM memories WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
        " AND known_until IS NULL AND forgotten_at IS NULL ORDER BY row_key",
        bindings,
    )
    bury(connection, work, [row[0] for row in visible], tombstone)
    # What was forgotten before, and was to be kept longer.
    connection.execute(
        "UPDATE memories SET erasing = 1, purge_after = ? WHERE bank_key = ?"
        " AND memory_id IN (SELECT value FROM json_each(?)) AND erasing IS NULL",
        (tombstone.purge_after, *bindings),
    )
    return work.now, work.position


def hidden(connection: apsw.Connection, key: int) -> None:
    """All of the erasure of that note is hidden."""
    connection.execute("DELETE FROM erasures WHERE erasure_key = ?", (key,))


def resume(transaction: Transaction) -> bool:
    """Hide some of what an erasure that was cut short left visible; False when there is none."""
    connection = transaction.connection
    rows = fetch(connection, "SELECT erasure_key, bank_key, memory_ids, reason, principal FROM erasures LIMIT 1")
    if not rows:
        return False
    key, bank_key, chosen, reason, principal = rows[0]
    left = fetch(
        connection,
        "SELECT memory_id FROM memories WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
        " AND known_until IS NULL AND erasing IS NULL LIMIT ?",
        (bank_key, chosen, HIDE_AT_ONCE),
    )
    if left:
        (row,) = fetch(connection, f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key = ?", (bank_key,))
        hide(transaction, decode_bank(row), [one for (one,) in left], Tombstone(reason, principal, 0, erasing=True))
    else:
        hidden(connection, key)
    return True


def memory_ids(connection: apsw.Connection, bank: Bank) -> list[str]:
    """All memories of the bank, forgotten ones included."""
    return selected(connection, bank, ForgetSelector(scope="all"), forgotten=True)


def hide_bank(transaction: Transaction, bank: Bank, expected_etag: str | None) -> int:
    """Take the bank out of sight: a bank without tenant is one whose rows are going. Returns its visible memories."""
    connection = transaction.connection
    rows = fetch(connection, "SELECT revision FROM banks WHERE bank_key = ? AND tenant = ?", (bank.key, bank.tenant))
    if not rows:
        raise BankNotFound(bank.bank_id)
    check_etag(bank, rows[0][0], expected_etag)
    holds.check_bank(connection, bank)
    retry_queue.drop(connection, bank, ForgetSelector(scope="all"))
    count: int = fetch(
        connection,
        "SELECT count(*) FROM memories WHERE bank_key = ? AND known_until IS NULL AND forgotten_at IS NULL",
        (bank.key,),
    )[0][0]
    connection.execute(
        "UPDATE banks SET tenant = '', bank_id = ?, display_name = '', description = '', created_by = ''"
        " WHERE bank_key = ?",
        (str(bank.key), bank.key),
    )
    idempotency.clear_names(connection, bank.key)
    note_unclean(connection, unclean=True)
    return count
