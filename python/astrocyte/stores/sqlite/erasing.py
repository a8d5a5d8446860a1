"""Erasing for good: what is to go is hidden in one commit, its rows go in slices, then the files are cleaned.

A slice is one transaction, small enough for the ballast and short enough for the writes that wait: they come between
two slices. A crash at any point shows nothing of what was hidden, and `purge` finishes the work at the next start: of
a deleted bank, which has no tenant any more, and of memories that an erasure marked.

Hiding is at once. The rest is one job's at a time: a receipt counts what its own erasure took, and a cleaning is of
all that was erased before it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TypeVar

import apsw

from astrocyte.errors import BankNotFound, DiskFull
from astrocyte.model import Bank, ChangeKind, ForgetSelector
from astrocyte.stores.protocols import RequestKey
from astrocyte.stores.sqlite import forgetting, receipts, requests
from astrocyte.stores.sqlite.banks import check_etag
from astrocyte.stores.sqlite.cleaning import Cleaner, note_unclean
from astrocyte.stores.sqlite.receipts import Answer
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank, fetch, to_datetime
from astrocyte.stores.sqlite.slices import SLICE_MEMORIES, delete_bank_rows, delete_versions, first_slice
from astrocyte.stores.sqlite.transaction import BankWork, Transaction
from astrocyte.stores.sqlite.writer import Slices, Writer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Hidden:
    """What an erasure hid, with all memories that the bank had then."""

    before: list[str]
    chosen: list[str]
    at: int
    position: int


class Eraser:
    """Makes the jobs that the writer runs in slices."""

    def __init__(self, writer: Writer, cleaner: Cleaner) -> None:
        self._writer = writer
        self._cleaner = cleaner
        self._busy = False

    def erase(
        self, bank: Bank, selector: ForgetSelector, tombstone: forgetting.Tombstone, request: RequestKey | None
    ) -> Slices[Answer]:
        """Erase what the selector meets; see `MemoryStore.erase`."""
        return self._in_turn(self._erase(bank, selector, tombstone, request))

    def delete_bank(self, bank: Bank, expected_etag: str | None, request: RequestKey | None) -> Slices[int]:
        """Delete a bank with all its rows; see `MemoryStore.delete_bank`."""

        def hide(transaction: Transaction) -> tuple[int, bool]:
            earlier = requests.stored(transaction.connection, bank.tenant, request)
            if earlier is not None:
                return int(earlier), False
            count = _hide_bank(transaction, bank, expected_etag)
            if request is not None:
                response, now = str(count).encode(), transaction.clock()
                requests.store(
                    transaction.connection, bank.tenant, request, response, now, bank_key=None, outlives_bank=True
                )
            return count, True

        count, hidden = self._writer.transact(hide)
        if hidden:
            yield
            yield from self._in_turn(self._drop(bank.key))
        # Or else the bank of that id may be another one by now.
        return count

    def purge(self, now: int) -> Slices[int]:
        """Erase the memories that are due and the rows of deleted banks; returns how many memories were due."""
        total = 0
        while (erased := (yield from self._in_turn(self._purge_slice(now)))) is not None:
            total += erased
            yield
        return total

    def _in_turn(self, work: Slices[T]) -> Slices[T]:
        while self._busy:
            yield
        self._busy = True
        try:
            return (yield from work)
        finally:
            self._busy = False

    def _erase(
        self, bank: Bank, selector: ForgetSelector, tombstone: forgetting.Tombstone, request: RequestKey | None
    ) -> Slices[Answer]:
        hidden = self._writer.transact(lambda transaction: _hide(transaction, bank, selector, tombstone, request))
        if not isinstance(hidden, _Hidden):
            return hidden
        try:
            yield
            yield from self._repeat(lambda transaction: _blank(transaction, bank, hidden.at))
            counts, position = yield from self._erase_all(bank, hidden)
            yield from self._cleaner.clean()
        except DiskFull as error:
            raise DiskFull(
                "the disk of the data directory is full; what was to be erased is hidden, but not all of it is erased; "
                "free space and erase again"
            ) from error
        return self._writer.transact(
            lambda transaction: _answer(transaction, bank, request, hidden, counts, position)
        )

    def _erase_all(self, bank: Bank, hidden: _Hidden) -> Slices[tuple[Counter[str], int]]:
        """The rows that went, by table, and the position of the last change."""
        counts: Counter[str] = Counter(dict.fromkeys(("memories", "versions", "chunks", "embeddings"), 0))
        position = hidden.position
        erased = 0
        while erased < len(hidden.chosen):
            went, some, position = self._writer.transact(partial(_erase_slice, bank=bank, rest=hidden.chosen[erased:]))
            counts.update(some)
            erased += went
            yield
        return counts, position

    def _drop(self, bank_key: int) -> Slices[None]:
        yield from self._repeat(lambda transaction: _drop_slice(transaction.connection, bank_key))
        yield from self._cleaner.clean()

    def _purge_slice(self, now: int) -> Slices[int | None]:
        """A slice of what is due. None when nothing is left to do and the files are clean."""
        erased = self._writer.transact(lambda transaction: _purge_slice(transaction, now))
        if erased is None and self._cleaner.needed():
            yield from self._cleaner.clean()
        return erased

    def _repeat(self, slice_: Callable[[Transaction], bool]) -> Slices[None]:
        """Commit slices as long as they say that there is more."""
        while self._writer.transact(slice_):
            yield


def _hide(
    transaction: Transaction,
    bank: Bank,
    selector: ForgetSelector,
    tombstone: forgetting.Tombstone,
    request: RequestKey | None,
) -> Answer | _Hidden:
    connection = transaction.connection
    earlier = requests.stored(connection, bank.tenant, request)
    if earlier is not None:
        return receipts.decode(earlier)
    work = transaction.bank(bank)
    chosen = forgetting.selected(connection, bank, selector, forgotten=True)
    visible = forgetting.selected(connection, bank, selector, forgotten=False)
    before = _memory_ids(connection, bank)
    forgetting.bury(connection, work, visible, tombstone)
    # What was forgotten before, and was to be kept longer.
    connection.execute(
        "UPDATE memories SET erasing = 1, purge_after = ? WHERE bank_key = ? AND erasing IS NULL"
        " AND memory_id IN (SELECT value FROM json_each(?))",
        (tombstone.purge_after, bank.key, json.dumps(chosen)),
    )
    return _Hidden(before, chosen, work.now, work.position)


def _blank(transaction: Transaction, bank: Bank, until: int) -> bool:
    note_unclean(transaction.connection, unclean=True)
    return requests.blank(transaction.connection, bank.key, until) > 0


def _erase_slice(transaction: Transaction, *, bank: Bank, rest: Sequence[str]) -> tuple[int, Counter[str], int]:
    """How many memories this slice was about, the rows that went, and the position after it."""
    part = first_slice(transaction.connection, bank.key, rest)
    work = transaction.bank(bank)
    counts = _erase_memories(transaction.connection, work, part)
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
    counts["memories"] = len(present)
    return counts


def _answer(
    transaction: Transaction,
    bank: Bank,
    request: RequestKey | None,
    hidden: _Hidden,
    counts: Counter[str],
    position: int,
) -> Answer:
    work = transaction.bank(bank)
    before = set(hidden.before)
    # Read, not computed: this is what the receipt proves. What came meanwhile is not its matter.
    after = [memory_id for memory_id in _memory_ids(transaction.connection, bank) if memory_id in before]
    answer = receipts.answer(
        hidden.chosen, position, counts, before=hidden.before, after=after, completed_at=to_datetime(work.now)
    )
    if request is not None:
        requests.store(
            transaction.connection, bank.tenant, request, receipts.encode(answer), work.now, bank_key=bank.key
        )
    return answer


def _memory_ids(connection: apsw.Connection, bank: Bank) -> list[str]:
    return forgetting.selected(connection, bank, ForgetSelector(scope="all"), forgotten=True)


def _purge_slice(transaction: Transaction, now: int) -> int | None:
    connection = transaction.connection
    going = fetch(connection, "SELECT bank_key FROM banks WHERE tenant = '' LIMIT 1")
    if going:
        # Its memories were counted when it was deleted.
        _drop_slice(connection, going[0][0])
        return 0
    due = fetch(
        connection,
        "SELECT bank_key, memory_id, forgotten_at FROM memories"
        " WHERE forgotten_at IS NOT NULL AND known_until IS NULL AND purge_after <= ?"
        " ORDER BY bank_key, purge_after LIMIT ?",
        (now, SLICE_MEMORIES),
    )
    if not due:
        return None
    total = 0
    for bank_key, rows in groupby(due, itemgetter(0)):
        memories = list(rows)
        (row,) = fetch(connection, f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key = ?", (bank_key,))
        bank = decode_bank(row)
        if _blank(transaction, bank, max(forgotten_at for _, _, forgotten_at in memories)):
            # More may be left: the memories come with a later slice.
            break
        part = first_slice(connection, bank_key, [memory_id for _, memory_id, _ in memories])
        _erase_memories(connection, transaction.bank(bank), part)
        total += len(part)
    return total


def _hide_bank(transaction: Transaction, bank: Bank, expected_etag: str | None) -> int:
    """Take the bank out of sight: a bank without tenant is one whose rows are going. Returns its visible memories."""
    connection = transaction.connection
    rows = fetch(connection, "SELECT revision FROM banks WHERE bank_key = ? AND tenant = ?", (bank.key, bank.tenant))
    if not rows:
        raise BankNotFound(bank.bank_id)
    check_etag(bank, rows[0][0], expected_etag)
    count: int = fetch(
        connection,
        "SELECT count(*) FROM memories WHERE bank_key = ? AND known_until IS NULL AND forgotten_at IS NULL",
        (bank.key,),
    )[0][0]
    connection.execute(
        "UPDATE banks SET tenant = '', bank_id = ?, display_name = '', description = '' WHERE bank_key = ?",
        (str(bank.key), bank.key),
    )
    requests.clear_names(connection, bank.key)
    note_unclean(connection, unclean=True)
    return count


def _drop_slice(connection: apsw.Connection, bank_key: int) -> bool:
    """Delete some rows of a hidden bank, at last the bank itself; returns whether it is still there."""
    note_unclean(connection, unclean=True)
    if delete_bank_rows(connection, bank_key) or requests.drop(connection, bank_key):
        return True
    connection.execute("DELETE FROM banks WHERE bank_key = ?", (bank_key,))
    return False
