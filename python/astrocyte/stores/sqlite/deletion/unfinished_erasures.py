"""The first step of an erasure: a durable note of what goes, then hiding it.

The note stays until the erasure is complete. After a crash the next process reads it and finishes the erasure, receipt
and audit event included.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from astrocyte.errors import BankNotFound
from astrocyte.model import AuditEventKind, Bank, ForgetSelector
from astrocyte.stores.outbox import CopyAction, CopyOrder
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.deletion import receipts
from astrocyte.stores.sqlite.deletion.receipts import Answer
from astrocyte.stores.sqlite.deletion.soft_delete import Tombstone, archived_among, bury, selected
from astrocyte.stores.sqlite.engine.data_directory import note_unclean
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank, fetch
from astrocyte.stores.sqlite.tables import audit, idempotency, legal_holds, outbox, retry_queue
from astrocyte.stores.sqlite.tables.banks import check_etag

# Memories that one commit hides: some ten milliseconds' worth, that other writes wait for.
HIDE_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure that has begun.

    Attributes:
        bank: Bank of the memories.
        key: Key of the note.
        before: All memories of the bank when the erasure began.
        chosen: The memories to erase.
        tombstone: Reason and principal.
        begun: Time and position at which it began.
        queued: Items of the retry queue that were dropped at the beginning.
        counts: Rows deleted so far, by table.
        request: The request that it answers.
        selector: Digest of principal and selector.
    """

    bank: Bank
    key: int
    before: list[str]
    chosen: list[str]
    tombstone: Tombstone
    begun: tuple[int, int]
    queued: list[str]
    counts: Counter[str]
    request: RequestKey | None
    selector: bytes


def begin(
    transaction: Transaction,
    bank: Bank,
    selector: ForgetSelector,
    tombstone: Tombstone,
    request: RequestKey | None,
    copies: CopyOrder | None = None,
) -> Answer | Erasure:
    """Choose the memories and write the note, or return the answer of an equal request.

    After this commit the erasure will be completed, whatever happens.
    """
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return receipts.decode(earlier)
    work = transaction.bank(bank)
    chosen = selected(connection, bank, selector, forgotten=True)
    # From here on it goes, whatever is held later: the note, or the mark on each memory, is committed with this.
    legal_holds.check_memories(connection, bank, chosen)
    legal_holds.check_queue(connection, bank, selector)
    archived = archived_among(connection, bank, chosen)
    # Noted before its rows go; as of rows, there is no count of what is not there.
    counts = Counter(archived=archived) if archived else Counter[str]()
    queued = retry_queue.drop(connection, bank, selector)
    outbox.put(connection, work, copies, CopyAction.ERASE, [(one, work.position) for one in chosen])
    before = memory_ids(connection, bank)
    event = AuditEventKind.ERASE_BEGUN
    details: dict[str, str | int] = {"count": len(chosen), "queued": len(queued), **tombstone.said}
    audit.record(transaction, bank.tenant, event, tombstone.principal, bank_key=bank.key, details=details)
    asked = (None, None, None) if request is None else (request.request_id, request.operation, request.fingerprint)
    selector_digest = digest(selector, tombstone.principal)
    connection.execute(
        "INSERT INTO erasures (bank_key, memory_ids, reason, principal, queued, counts, position, request_id,"
        " operation, fingerprint, selector) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            bank.key,
            json.dumps(chosen),
            tombstone.reason,
            tombstone.principal,
            json.dumps(queued),
            json.dumps(counts),
            work.position,
            *asked,
            selector_digest,
        ),
    )
    key = connection.last_insert_rowid()
    begun = work.now, work.position
    if len(chosen) <= HIDE_AT_ONCE:
        begun = hide(transaction, bank, chosen, tombstone)
    return Erasure(bank, key, before, chosen, tombstone, begun, queued, counts, request, selector_digest)


def digest(selector: ForgetSelector, principal: str) -> bytes:
    """Return what tells whether a call repeats an erasure that was not completed."""
    return hashlib.sha256(repr((principal, selector)).encode()).digest()


def interrupted(connection: apsw.Connection, after: int) -> int | None:
    """Return the key of the first note after another: of an erasure that a crash or an error interrupted."""
    rows = fetch(connection, "SELECT min(erasure_key) FROM erasures WHERE erasure_key > ?", (after,))
    key: int | None = rows[0][0]
    return key


def unfinished(transaction: Transaction, key: int) -> Erasure:
    """Return the erasure of a note.

    Raises:
        FailedPrecondition: Its bank is sealed, and this process has no keys.
    """
    connection = transaction.connection
    rows = fetch(
        connection,
        "SELECT bank_key, memory_ids, reason, principal, queued, counts, position, request_id, operation,"
        " fingerprint, selector FROM erasures WHERE erasure_key = ?",
        (key,),
    )
    bank_key, chosen_text, reason, principal, queued, counts, position, *asked, selector = rows[0]
    (row,) = fetch(connection, f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key = ?", (bank_key,))
    bank, chosen = decode_bank(row), json.loads(chosen_text)
    there = fetch(
        connection,
        "SELECT memory_id FROM memories WHERE bank_key = ? GROUP BY memory_id HAVING min(position) <= ?",
        (bank_key, position),
    )
    before = list(dict.fromkeys([*chosen, *[one for (one,) in there]]))
    work = transaction.bank(bank)
    return Erasure(
        bank,
        key,
        before,
        chosen,
        Tombstone(reason, principal, 0, erasing=True),
        (work.now, min(position, work.position)),
        json.loads(queued),
        Counter(json.loads(counts)),
        None if asked[0] is None else RequestKey(*asked),
        selector or b"",
    )


def note_counts(connection: apsw.Connection, key: int, counts: Counter[str]) -> None:
    """Add the rows that a slice deleted to the note, in the transaction of the slice."""
    ((text,),) = fetch(connection, "SELECT counts FROM erasures WHERE erasure_key = ?", (key,))
    total = Counter(json.loads(text)) + counts
    connection.execute("UPDATE erasures SET counts = ? WHERE erasure_key = ?", (json.dumps(total), key))


def hide(transaction: Transaction, bank: Bank, chosen: Sequence[str], tombstone: Tombstone) -> tuple[int, int]:
    """Hide memories until they are erased, forgotten ones included; returns the time, and the position after it."""
    connection, work = transaction.connection, transaction.bank(bank)
    bindings = (bank.key, json.dumps(chosen))
    visible = fetch(
        connection,
        "SELECT memory_id FROM memories WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))"
        # The plus has them found by their ids: SQLite would read the bank in order.
        " AND (known_until IS NULL OR archived_at IS NOT NULL) AND forgotten_at IS NULL ORDER BY +row_key",
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


def complete(connection: apsw.Connection, key: int) -> None:
    """Delete the note of an erasure that is complete."""
    connection.execute("DELETE FROM erasures WHERE erasure_key = ?", (key,))


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
    legal_holds.check_bank(connection, bank)
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
    transaction.tell(Told(Topic.DELETED, bank.key))
    return count
