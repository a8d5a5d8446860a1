"""Erasure: hide the memories, delete their rows in slices, then clean the files.

A slice is one transaction, small enough for the ballast and short enough for the writes that wait: they come between
two slices. From the first commit on the work will be done, whatever happens. After a crash the next erasure, or `purge`
at the next start, finishes what has a note, so that a repeated call gets the whole receipt and the audit trail has the
end of each erasure. Deleted banks are those without a tenant.

Erasures take turns, those of other processes too: a receipt counts what its own erasure took, and a cleaning is of all
that was erased before it. Only a bank's hiding does not wait.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

import apsw
import structlog

from astrocyte.errors import AstrocyteError, DiskFull, FailedPrecondition
from astrocyte.model import AuditEventKind, Bank, ChangeKind, ErasureReceipt, ForgetSelector
from astrocyte.stores.outbox import CopyOrder
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.deletion import receipts, soft_delete, unfinished_erasures
from astrocyte.stores.sqlite.deletion.bank_rows import delete_some
from astrocyte.stores.sqlite.deletion.batched_deletes import SLICE_MEMORIES, delete_versions, first_slice
from astrocyte.stores.sqlite.deletion.receipts import Answer
from astrocyte.stores.sqlite.deletion.vacuum import Cleaner
from astrocyte.stores.sqlite.engine.data_directory import note_unclean
from astrocyte.stores.sqlite.engine.transaction import BankWork, Transaction
from astrocyte.stores.sqlite.engine.writer import Slices, Writer
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank, fetch, key_array, to_datetime
from astrocyte.stores.sqlite.tables import audit, idempotency, legal_holds
from astrocyte.stores.sqlite.tables.activity import ERASE_UNANSWERED
from astrocyte.stores.sqlite.tables.knowledge.consolidation import ERASE_SCOPE_DONE
from astrocyte.stores.sqlite.tables.knowledge.rows import erase_sources

log = structlog.get_logger(__name__)

T = TypeVar("T")
# Who did it, in the trail: nobody asked for it then.
PURGER = "astrocyte"
# Between two looks whether another process has ended its erasure.
OTHERS_SECONDS = 0.002


class Eraser:
    """Makes the jobs that the writer runs in slices.

    Args:
        writer: Runs them.
        cleaner: Cleans the files.
        shred: Destroys the key of a deleted bank; False if it has none, or none any more.
    """

    def __init__(self, writer: Writer, cleaner: Cleaner, shred: Callable[[int], bool]) -> None:
        self._writer = writer
        self._shred = shred
        self._cleaner = cleaner
        self._busy = False

    def erase(
        self,
        bank: Bank,
        selector: ForgetSelector,
        tombstone: soft_delete.Tombstone,
        request: RequestKey | None,
        copies: CopyOrder | None = None,
    ) -> Slices[Answer]:
        """Erase what the selector meets; see `MemoryStore.erase`."""
        return self._in_turn(self._erase(bank, selector, tombstone, request, copies))

    def delete_bank(
        self,
        bank: Bank,
        expected_etag: str | None,
        request: RequestKey | None,
        principal: str,
        at_once: Callable[[Transaction], None],
    ) -> Slices[int]:
        """Delete a bank with all its rows; see `MemoryStore.delete_bank`. ``at_once`` is done as the bank is hidden."""

        def hide(transaction: Transaction) -> tuple[int, bool]:
            earlier = idempotency.stored(transaction.connection, bank.tenant, request)
            if earlier is not None:
                return int(earlier), False
            count = unfinished_erasures.hide_bank(transaction, bank, expected_etag)
            at_once(transaction)
            event, details = AuditEventKind.BANK_DELETED, {"count": count}
            audit.record(transaction, bank.tenant, event, principal, bank_key=bank.key, details=details)
            if request is not None:
                response, now = str(count).encode(), transaction.clock()
                idempotency.store(
                    transaction.connection, bank.tenant, request, response, now, bank_key=None, outlives_bank=True
                )
            return count, True

        count, hidden = self._writer.transact(hide)
        if hidden:
            yield
            yield from self._in_turn(self._drop(bank.key))
        # Or else the bank of that id may be another one by now.
        return count

    def finish_deletions(self) -> Slices[None]:
        """Delete what is left of banks whose deletion was interrupted, or failed."""
        yield from self._in_turn(self._finish_deletions())

    def purge(self, now: int) -> Slices[int]:
        """Finish interrupted erasures, erase the memories that are due and the rows of deleted banks.

        Returns:
            How many memories went.
        """
        total = sum([len(done.chosen) for done, _ in (yield from self._in_turn(self._finish_interrupted()))])
        left_out: set[int] = set()
        while (erased := (yield from self._in_turn(self._purge_slice(now, left_out)))) is not None:
            total += erased
            yield
        return total

    def _in_turn(self, work: Slices[T]) -> Slices[T]:
        while self._busy:
            yield
        self._busy = True
        sharing = self._writer.sharing
        try:
            while sharing is not None and not sharing.erasing.taken():
                # The writes that wait here come between, and are not kept long.
                time.sleep(OTHERS_SECONDS)
                yield
            try:
                return (yield from work)
            finally:
                if sharing is not None:
                    sharing.erasing.release()
        finally:
            self._busy = False

    def _erase(
        self,
        bank: Bank,
        selector: ForgetSelector,
        tombstone: soft_delete.Tombstone,
        request: RequestKey | None,
        copies: CopyOrder | None,
    ) -> Slices[Answer]:
        finished = yield from self._finish_interrupted()
        if request is None:
            selector_digest = unfinished_erasures.digest(selector, tombstone.principal)
            for erasure, answer in finished:
                if erasure.bank.key == bank.key and erasure.selector == selector_digest:
                    return answer
        begun = self._writer.transact(
            lambda transaction: unfinished_erasures.begin(transaction, bank, selector, tombstone, request, copies)
        )
        if not isinstance(begun, unfinished_erasures.Erasure):
            return begun
        return (yield from self._finish(begun))

    def _finish_interrupted(self) -> Slices[list[tuple[unfinished_erasures.Erasure, Answer]]]:
        """Finish the erasures that have notes.

        The note of a bank whose key is lost, or not here, stays, and no other waits for it.
        """
        finished: list[tuple[unfinished_erasures.Erasure, Answer]] = []
        # Without a transaction where there is none, which is nearly always.
        after = 0
        while (key := self._writer.read(partial(unfinished_erasures.interrupted, after=after))) is not None:
            try:
                erasure = self._writer.transact(partial(unfinished_erasures.unfinished, key=key))
                finished.append((erasure, (yield from self._finish(erasure))))
            except FailedPrecondition as error:
                log.warning("erasure_left_out", erasure_key=key, reason=error.reason)
                after = key
        return finished

    def _finish(self, erasure: unfinished_erasures.Erasure) -> Slices[Answer]:
        """Carry out an erasure that has begun, up to its receipt."""
        bank = erasure.bank
        try:
            yield
            hidden_at, position = yield from self._hide(bank, erasure)
            yield from self._repeat(lambda transaction: _blank(transaction, bank, hidden_at))
            counts, position = yield from self._erase_all(erasure, position)
            if erasure.queued:
                counts["queued"] = len(erasure.queued)
            yield from self._cleaner.clean()
        except DiskFull as error:
            raise DiskFull(
                "the disk of the data directory is full; the erasure is incomplete; free space and erase again"
            ) from error
        after, completed_at = self._writer.transact(lambda transaction: _left(transaction, bank, erasure.before))
        receipt = yield from receipts.receipt(
            erasure.chosen, counts, before=erasure.before, after=after, completed_at=to_datetime(completed_at)
        )
        answer = ([*erasure.chosen, *erasure.queued][: soft_delete.LISTED_IDS], position, receipt)
        self._writer.transact(lambda transaction: _complete(transaction, erasure, answer))
        return answer

    def _hide(self, bank: Bank, erasure: unfinished_erasures.Erasure) -> Slices[tuple[int, int]]:
        """Hide what is not hidden yet; returns when that was done, and the position after it."""
        done = erasure.begun
        for start in range(0, len(erasure.chosen), unfinished_erasures.HIDE_AT_ONCE):
            part = erasure.chosen[start : start + unfinished_erasures.HIDE_AT_ONCE]
            done = self._writer.transact(
                partial(unfinished_erasures.hide, bank=bank, chosen=part, tombstone=erasure.tombstone)
            )
            yield
        return done

    def _erase_all(self, erasure: unfinished_erasures.Erasure, position: int) -> Slices[tuple[Counter[str], int]]:
        """Delete the rows; returns how many, by table, and the position of the last change."""
        counts: Counter[str] = Counter(dict.fromkeys(("memories", "versions", "chunks", "embeddings"), 0))
        counts.update(erasure.counts)
        chosen, erased = erasure.chosen, 0
        while erased < len(chosen):
            rest = chosen[erased : erased + SLICE_MEMORIES]
            went, some, position = self._writer.transact(partial(_erase_slice, erasure=erasure, rest=rest))
            counts.update(some)
            erased += went
            yield
        return counts, position

    def _drop(self, bank_key: int) -> Slices[None]:
        self._destroy_key(bank_key)
        yield from self._repeat(lambda transaction: _drop_slice(transaction.connection, bank_key))
        yield from self._cleaner.clean()

    def _destroy_key(self, bank_key: int) -> None:
        """Destroy the key of a deleted bank.

        In no transaction: other servers write while a key store does not answer.
        """
        if self._shred(bank_key):
            # After that: a process that died between has left the id, and the next one destroys the key again.
            self._writer.transact(partial(_forget_key, bank_key=bank_key))

    def _finish_deletions(self) -> Slices[None]:
        for (bank_key,) in self._writer.read(partial(fetch, sql="SELECT bank_key FROM banks WHERE tenant = ''")):
            yield from self._drop(bank_key)

    def _purge_slice(self, now: int, left_out: set[int]) -> Slices[int | None]:
        """A slice of what is due. None when nothing is left to do and the files are clean.

        Banks whose key is lost, or cannot be destroyed, are left out from then on.
        """
        bank_key = self._writer.transact(lambda transaction: _going(transaction.connection, left_out))
        if bank_key is not None:
            try:
                self._destroy_key(bank_key)
            except AstrocyteError as error:
                log.warning("purge_left_out", bank_key=bank_key, reason=error.reason)
                left_out.add(bank_key)
            else:
                # Its memories were counted when it was deleted.
                self._writer.transact(lambda transaction: _drop_slice(transaction.connection, bank_key))
            return 0
        at: list[int] = []
        try:
            erased = self._writer.transact(lambda transaction: _purge_slice(transaction, now, left_out, at))
        except FailedPrecondition as error:
            if not at:
                raise
            log.warning("purge_left_out", bank_key=at[-1], reason=error.reason)
            left_out.add(at[-1])
            return 0
        if erased is None and self._cleaner.needed():
            yield from self._cleaner.clean()
        return erased

    def _repeat(self, slice_: Callable[[Transaction], bool]) -> Slices[None]:
        """Commit slices as long as they say that there is more."""
        while self._writer.transact(slice_):
            yield


def _blank(transaction: Transaction, bank: Bank, until: int) -> bool:
    note_unclean(transaction.connection, unclean=True)
    return idempotency.blank(transaction.connection, bank.key, until) > 0


def _erase_slice(
    transaction: Transaction, *, erasure: unfinished_erasures.Erasure, rest: Sequence[str]
) -> tuple[int, Counter[str], int]:
    """The number of memories of this slice, the rows that went, and the position after it."""
    part = first_slice(transaction.connection, erasure.bank.key, rest)
    work = transaction.bank(erasure.bank)
    counts = _erase_memories(transaction.connection, work, part)
    unfinished_erasures.note_counts(transaction.connection, erasure.key, counts)
    return len(part), counts, work.position


def _erase_memories(connection: apsw.Connection, work: BankWork, memory_ids: Sequence[str]) -> Counter[str]:
    note_unclean(connection, unclean=True)
    bindings = (work.bank.key, json.dumps(memory_ids))
    rows = fetch(
        connection,
        "SELECT row_key, memory_id FROM memories"
        " WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?)) ORDER BY row_key",
        bindings,
    )
    counts = delete_versions(connection, work.bank.key, [row_key for row_key, _ in rows])
    connection.execute(
        "DELETE FROM absences WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))", bindings
    )
    for row_key, _ in rows:
        work.remove(row_key)
    present = {memory_id for _, memory_id in rows}
    for memory_id in memory_ids:
        if memory_id in present:
            work.change(ChangeKind.ERASED, memory_id)
    counts += erase_sources(connection, work.bank.key, memory_ids)
    # They may quote what is erased.
    connection.execute(ERASE_UNANSWERED, (work.bank.key,))
    connection.execute(ERASE_SCOPE_DONE, (work.bank.key,))
    counts["memories"] = len(present)
    return counts


def _left(transaction: Transaction, bank: Bank, before: Sequence[str]) -> tuple[list[str], int]:
    """The memories that are left of those that the bank had when the erased ones were hidden; and the time.

    They are read, not computed: this is what the receipt proves. What came meanwhile is not its matter.
    """
    then = set(before)
    left = [
        memory_id for memory_id in unfinished_erasures.memory_ids(transaction.connection, bank) if memory_id in then
    ]
    return left, transaction.bank(bank).now


def _complete(transaction: Transaction, erasure: unfinished_erasures.Erasure, answer: Answer) -> None:
    """Record what the receipt says, and keep the answer for the retries of its request."""
    bank, request = erasure.bank, erasure.request
    now = transaction.bank(bank).now
    event, details = AuditEventKind.ERASE_COMPLETED, _proof(answer[2])
    audit.record(transaction, bank.tenant, event, erasure.tombstone.principal, bank_key=bank.key, details=details)
    unfinished_erasures.complete(transaction.connection, erasure.key)
    if request is None:
        return
    response = receipts.encode(answer)
    idempotency.store(transaction.connection, bank.tenant, request, response, now, bank_key=bank.key)


def _proof(receipt: ErasureReceipt) -> dict[str, str | int]:
    """The part of a receipt that the trail keeps, by which the receipt can be recognised."""
    roots = {"root_hash_before": receipt.root_hash_before, "root_hash_after": receipt.root_hash_after}
    return {"count": len(receipt.salted_ids), **roots}


def _others(left_out: Collection[int]) -> tuple[str, tuple[object, ...]]:
    """A condition that leaves banks out, and its value."""
    return (" AND bank_key NOT IN (SELECT value FROM carray(?))", (key_array(left_out),)) if left_out else ("", ())


def _going(connection: apsw.Connection, left_out: Collection[int]) -> int | None:
    """A deleted bank that still has rows."""
    others, skipped = _others(left_out)
    rows = fetch(connection, f"SELECT bank_key FROM banks WHERE tenant = ''{others} LIMIT 1", skipped)
    return rows[0][0] if rows else None


def _forget_key(transaction: Transaction, bank_key: int) -> None:
    transaction.connection.execute("DELETE FROM sealed_banks WHERE bank_key = ?", (bank_key,))


def _purge_slice(transaction: Transaction, now: int, left_out: Collection[int], at: list[int]) -> int | None:
    """The memories that went; ``at`` gets the banks that it comes to."""
    connection = transaction.connection
    others, skipped = _others(left_out)
    due = fetch(
        connection,
        "SELECT bank_key, memory_id, forgotten_at FROM memories m"
        " WHERE m.forgotten_at IS NOT NULL AND (m.known_until IS NULL OR m.archived_at IS NOT NULL)"
        " AND m.purge_after <= ?"
        # What an erasure hid was not held then, and must go.
        f" AND (erasing IS NOT NULL OR NOT {legal_holds.HELD}){others}"
        " ORDER BY bank_key, purge_after LIMIT ?",
        (now, *skipped, SLICE_MEMORIES),
    )
    if not due:
        return None
    total = 0
    for bank_key, rows in groupby(due, itemgetter(0)):
        memories = list(rows)
        at.append(bank_key)
        (row,) = fetch(connection, f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key = ?", (bank_key,))
        bank = decode_bank(row)
        if _blank(transaction, bank, max(forgotten_at for _, _, forgotten_at in memories)):
            # More may be left: the memories come with a later slice.
            break
        part = first_slice(connection, bank_key, [memory_id for _, memory_id, _ in memories])
        _erase_memories(connection, transaction.bank(bank), part)
        event, details = AuditEventKind.PURGED, {"count": len(part)}
        audit.record(transaction, bank.tenant, event, PURGER, bank_key=bank_key, details=details)
        total += len(part)
    return total


def _drop_slice(connection: apsw.Connection, bank_key: int) -> bool:
    """Delete some rows of a hidden bank, at last the bank itself; returns whether it is still there."""
    note_unclean(connection, unclean=True)
    return delete_some(connection, bank_key)
