"""Erasing for good: rows out in slices, the log emptied, the file scrubbed, a receipt made.

A slice is one transaction, small enough for the ballast; what is to go is hidden in one transaction before the first,
so that a crash between two slices shows nothing and `purge` finishes the work. ``user_version`` is 1 from the first
slice until the files were cleaned, so that a cleaning that a crash cut short is made up for.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from time import monotonic

import apsw

from astrocyte.errors import BankNotFound, DiskFull, StoreError
from astrocyte.model import Bank, ChangeKind, ErasureReceipt, ForgetSelector
from astrocyte.stores.protocols import RequestKey
from astrocyte.stores.sqlite import forgetting, requests
from astrocyte.stores.sqlite.banks import check_etag
from astrocyte.stores.sqlite.failures import translate
from astrocyte.stores.sqlite.rows import (
    BANK_COLUMNS,
    PASSAGES_PER_ROW,
    decode_bank,
    decode_tags,
    fetch,
    to_datetime,
)
from astrocyte.stores.sqlite.scrub import Scrubber
from astrocyte.stores.sqlite.transaction import BankWork, Transaction
from astrocyte.stores.sqlite.writer import Writer

# A slice holds at most so many memories and about so many bytes: its log fits into the ballast many times over.
SLICE_MEMORIES = 512
SLICE_BYTES = 4 << 20
# Rough cost of a memory in the log: a token is about 4 bytes and is there twice, in the whole and in a chunk; a chunk
# has a vector and some index entries.
BYTES_PER_TOKEN = 8
BYTES_PER_CHUNK = 4_096
# How long a reader may keep the log from being emptied: twice what a read is allowed to take.
CLEAN_SECONDS = 10.0
SALT_BYTES = 16

Answer = tuple[list[str], int, ErasureReceipt]


class Eraser:
    """Runs on the writer's thread, as a job of its own."""

    def __init__(self, writer: Writer, scrubber: Scrubber | None) -> None:
        self._writer = writer
        self._scrubber = scrubber

    def erase(
        self, bank: Bank, selector: ForgetSelector, *, reason: str, principal: str, request: RequestKey | None
    ) -> Answer:
        """Erase what the selector meets; see `MemoryStore.erase`."""

        def hide(transaction: Transaction) -> Answer | tuple[list[str], list[str]]:
            earlier = requests.stored(transaction.connection, bank.tenant, request)
            if earlier is not None:
                return _decode(earlier)
            before = _memory_ids(transaction.connection, bank)
            chosen = forgetting.selected(transaction.connection, bank, selector, forgotten=True)
            now = transaction.bank(bank).now
            # Due at once, so that purge takes up what a crash leaves.
            forgetting.forget(transaction, bank, selector, forgetting.Tombstone(reason, principal, now))
            _make_due(transaction.connection, bank, chosen, now)
            return before, chosen

        hidden = self._writer.transact(hide)
        if len(hidden) == 3:  # noqa: PLR2004 - an answer has three parts
            return hidden
        before, chosen = hidden
        try:
            counts = self._erase_all(bank, chosen)
            self._clean()
        except DiskFull as error:
            raise DiskFull(
                "the disk of the data directory is full; what was to be erased is hidden, but not all of it is erased; "
                "free space and erase again"
            ) from error
        return self._writer.transact(lambda transaction: _receipt(transaction, bank, request, before, chosen, counts))

    def purge_some(self, now: int) -> int | None:
        """Erase some of the memories that are due, or rows of a deleted bank.

        Returns how many memories went; None when nothing is left to do and the files are clean.
        """
        erased = self._writer.transact(lambda transaction: _purge_slice(transaction, now))
        if erased is None and self._writer.transact(lambda transaction: transaction.connection.pragma("user_version")):
            self._clean()
        return erased

    def delete_bank(self, bank: Bank, expected_etag: str | None, request: RequestKey | None) -> int:
        """Delete a bank with all its rows; see `MemoryStore.delete_bank`."""

        def hide(transaction: Transaction) -> tuple[int, bool]:
            earlier = requests.stored(transaction.connection, bank.tenant, request)
            if earlier is not None:
                return int(earlier), False
            count = _hide_bank(transaction, bank, expected_etag)
            if request is not None:
                response = str(count).encode()
                requests.store(transaction.connection, bank.tenant, request, response, transaction.clock())
            return count, True

        count, hidden = self._writer.transact(hide)
        if not hidden:
            # The bank of that id may be another one by now.
            return count
        while self._writer.transact(lambda transaction: _drop_hidden(transaction, bank.key)):
            pass
        self._clean()
        return count

    def _erase_all(self, bank: Bank, memory_ids: Sequence[str]) -> Counter[str]:
        counts: Counter[str] = Counter(memories=0, versions=0, chunks=0, embeddings=0)

        def erase_slice(transaction: Transaction, part: Sequence[str]) -> None:
            counts.update(_erase_memories(transaction.connection, transaction.bank(bank), part))

        sizes = self._writer.transact(lambda transaction: _sizes(transaction.connection, bank, memory_ids))
        for part in _slices(memory_ids, sizes):
            self._writer.transact(partial(erase_slice, part=part))
        return counts

    def _clean(self) -> None:
        """Empty the log and scrub the file.

        Raises:
            StoreError: A reader kept the log from being emptied for too long.
        """
        if self._scrubber is not None:
            self._empty_log()
            self._scrub(self._scrubber)
        self._writer.transact(lambda transaction: _note_unclean(transaction.connection, unclean=False))

    def _empty_log(self) -> None:
        deadline = monotonic() + CLEAN_SECONDS
        while True:
            try:
                self._writer.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.FullError as error:
                # The log may hold pages that the database file has yet to grow by.
                if not self._writer.release_ballast():
                    raise translate(error) from error
            except apsw.BusyError as error:
                if monotonic() > deadline:
                    raise StoreError(
                        "the rows are erased, but a reader of the database keeps their bytes in its log; "
                        "end it and erase again"
                    ) from error
            else:
                return

    def _scrub(self, scrubber: Scrubber) -> None:
        connection = self._writer.connection
        if not scrubber.usable:
            connection.execute("VACUUM")
            self._empty_log()
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            scrubber.run()
        finally:
            connection.execute("ROLLBACK")
        # A cached page still has its gap, and would bring it back with its next change.
        connection.execute("PRAGMA shrink_memory")


def _erase_memories(connection: apsw.Connection, work: BankWork, memory_ids: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    _note_unclean(connection, unclean=True)
    for memory_id in memory_ids:
        rows = fetch(
            connection, "SELECT row_key FROM memories WHERE bank_key = ? AND memory_id = ?", (work.bank.key, memory_id)
        )
        if not rows:
            continue
        for (row_key,) in rows:
            counts.update(_erase_version(connection, work.bank.key, row_key))
            work.remove(row_key)
        counts["memories"] += 1
        work.change(ChangeKind.ERASED, memory_id)
    return counts


def _erase_version(connection: apsw.Connection, bank_key: int, row_key: int) -> Counter[str]:
    span = (row_key * PASSAGES_PER_ROW, (row_key + 1) * PASSAGES_PER_ROW)
    counts: Counter[str] = Counter(versions=1)
    for table in ("chunks", "embeddings"):
        connection.execute(f"DELETE FROM {table} WHERE passage_key >= ? AND passage_key < ?", span)
        counts[table] = connection.changes()
    for (tags,) in fetch(connection, "SELECT tags FROM contents WHERE row_key = ?", (row_key,)):
        for tag in decode_tags(tags):
            connection.execute(
                "DELETE FROM tags WHERE bank_key = ? AND tag = ? AND row_key = ?", (bank_key, tag, row_key)
            )
    connection.execute("DELETE FROM contents WHERE row_key = ?", (row_key,))
    connection.execute("DELETE FROM memories WHERE row_key = ?", (row_key,))
    return counts


def _note_unclean(connection: apsw.Connection, *, unclean: bool) -> None:
    if bool(connection.pragma("user_version")) != unclean:
        connection.pragma("user_version", int(unclean))


def _make_due(connection: apsw.Connection, bank: Bank, memory_ids: Sequence[str], now: int) -> None:
    """Let purge take memories that were forgotten before, and were to be kept longer."""
    connection.execute(
        "UPDATE memories SET purge_after = ? WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?))",
        (now, bank.key, json.dumps(memory_ids)),
    )


def _memory_ids(connection: apsw.Connection, bank: Bank) -> list[str]:
    return forgetting.selected(connection, bank, ForgetSelector(scope="all"), forgotten=True)


def _sizes(connection: apsw.Connection, bank: Bank, memory_ids: Sequence[str]) -> dict[str, int]:
    """About how many bytes of log the erasure of each memory takes."""
    return dict(
        fetch(
            connection,
            "SELECT memory_id, sum(token_count) * ? + sum(chunk_count) * ? FROM memories"
            " WHERE bank_key = ? AND memory_id IN (SELECT value FROM json_each(?)) GROUP BY memory_id",
            (BYTES_PER_TOKEN, BYTES_PER_CHUNK, bank.key, json.dumps(memory_ids)),
        )
    )


def _slices(memory_ids: Sequence[str], sizes: dict[str, int]) -> Iterator[list[str]]:
    part: list[str] = []
    total = 0
    for memory_id in memory_ids:
        size = sizes.get(memory_id, 0)
        if part and (len(part) == SLICE_MEMORIES or total + size > SLICE_BYTES):
            yield part
            part, total = [], 0
        part.append(memory_id)
        total += size
    if part:
        yield part


def _purge_slice(transaction: Transaction, now: int) -> int | None:
    connection = transaction.connection
    hidden = fetch(connection, "SELECT bank_key FROM banks WHERE tenant = '' LIMIT 1")
    if hidden:
        # Its memories were counted when it was deleted.
        _drop_hidden(transaction, hidden[0][0])
        return 0
    rows = fetch(
        connection,
        "SELECT bank_key, memory_id FROM memories"
        " WHERE forgotten_at IS NOT NULL AND known_until IS NULL AND purge_after <= ?"
        " ORDER BY bank_key, purge_after LIMIT ?",
        (now, SLICE_MEMORIES),
    )
    by_bank: dict[int, list[str]] = {}
    for bank_key, memory_id in rows:
        by_bank.setdefault(bank_key, []).append(memory_id)
    for bank_key, memory_ids in by_bank.items():
        (row,) = fetch(connection, f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key = ?", (bank_key,))
        _erase_memories(connection, transaction.bank(decode_bank(row)), memory_ids)
    return len(rows) or None


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
    return count


def _drop_hidden(transaction: Transaction, bank_key: int) -> int:
    """Delete some rows of a hidden bank, at last the bank itself; returns how many rows went, 0 when it is gone."""
    connection = transaction.connection
    _note_unclean(connection, unclean=True)
    rows = fetch(connection, "SELECT row_key FROM memories WHERE bank_key = ? LIMIT ?", (bank_key, SLICE_MEMORIES))
    for (row_key,) in rows:
        _erase_version(connection, bank_key, row_key)
    if rows:
        return len(rows)
    connection.execute("DELETE FROM changes WHERE bank_key = ?", (bank_key,))
    connection.execute("DELETE FROM banks WHERE bank_key = ?", (bank_key,))
    return 0


def _receipt(
    transaction: Transaction,
    bank: Bank,
    request: RequestKey | None,
    before: Sequence[str],
    chosen: Sequence[str],
    counts: Counter[str],
) -> Answer:
    work = transaction.bank(bank)
    salt = secrets.token_hex(SALT_BYTES)
    after = _memory_ids(transaction.connection, bank)
    receipt = ErasureReceipt(
        counts=dict(counts),
        salt=salt,
        salted_ids=tuple(_salted(salt, memory_id) for memory_id in chosen),
        root_hash_before=_root(salt, before),
        root_hash_after=_root(salt, after),
        completed_at=to_datetime(work.now),
    )
    answer = (list(chosen[: forgetting.LISTED_IDS]), work.position, receipt)
    if request is not None:
        requests.store(transaction.connection, bank.tenant, request, _encode(answer), work.now)
    return answer


def _salted(salt: str, memory_id: str) -> str:
    return hashlib.sha256(f"{salt}{memory_id}".encode()).hexdigest()


def _root(salt: str, memory_ids: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for salted in sorted(_salted(salt, memory_id) for memory_id in memory_ids):
        digest.update(salted.encode())
    return digest.hexdigest()


def _encode(answer: Answer) -> bytes:
    memory_ids, position, receipt = answer
    written = {**asdict(receipt), "completed_at": receipt.completed_at.isoformat()}
    return json.dumps([memory_ids, position, written]).encode()


def _decode(response: bytes) -> Answer:
    memory_ids, position, written = json.loads(response)
    receipt = ErasureReceipt(**written)
    completed_at = datetime.fromisoformat(written["completed_at"])
    return memory_ids, position, replace(receipt, salted_ids=tuple(receipt.salted_ids), completed_at=completed_at)
