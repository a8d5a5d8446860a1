"""The transaction of a write job: positions and times of each bank, and the batches for the index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import apsw

from astrocyte.errors import BankNotFound, FailedPrecondition
from astrocyte.model import ALSO_RELEVANT_TO, Bank, ChangeKind
from astrocyte.stores.records import IndexBatch, VersionRecord
from astrocyte.stores.sharing import Told
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, Row, decode_bank, fetch, insert_rows

Clock = Callable[[], int]

BANK_OF_WORK = (
    f"SELECT {BANK_COLUMNS}, latest_time, vector_set, EXISTS (SELECT 1 FROM sealed_banks s WHERE s.bank_key ="
    " banks.bank_key) FROM banks WHERE bank_key = ? AND tenant = ? AND bank_id = ?"
)


class BankWork:
    """One job's changes in one bank.

    ``now`` is the time that all of them bear: the clock's, or the latest that the bank has where the clock went back.
    ``vector_set`` is where the bank's vectors are, see `astrocyte.stores.sqlite.tables.vectors`. ``sealed`` banks have
    no rows of names.
    """

    def __init__(self, bank: Bank, now: int, vector_set: int, *, sealed: bool = False) -> None:
        self.bank = bank
        self.now = now
        self.vector_set = vector_set
        self.sealed = sealed
        self.position = self._after = bank.position
        self._changes: list[Row] = []
        self._upserts: dict[int, VersionRecord] = {}
        self._ended: list[tuple[int, int]] = []
        self._removed: list[int] = []
        self._erased = False
        self._moved = False
        self._refers = False

    def change(self, kind: ChangeKind, memory_id: str) -> int:
        """Note a change; returns its position."""
        self.position += 1
        self._changes.append((self.bank.key, self.position, kind.value, memory_id, self.now))
        self._erased = self._erased or kind is ChangeKind.ERASED
        return self.position

    def upsert(self, record: VersionRecord) -> None:
        """A version is to be indexed."""
        self._upserts[record.row_key] = record
        self._refers = self._refers or ALSO_RELEVANT_TO in record.memory.metadata

    def end(self, row_key: int) -> None:
        """A version is no longer the current one, from ``now`` on."""
        made_here = self._upserts.get(row_key)
        if made_here is None:
            self._ended.append((row_key, self.now))
        else:
            self._upserts[row_key] = replace(made_here, known_until=self.now)

    def remove(self, row_key: int) -> None:
        """A version must never be returned again."""
        self._removed.append(row_key)

    def move(self, model: str, dimensions: int) -> None:
        """The bank's vectors are those of another model from here on."""
        self.bank = replace(self.bank, embedding_model=model, dimensions=dimensions)
        self._moved = True

    def write(self, connection: apsw.Connection) -> IndexBatch | None:
        """Write the change log and the bank's position; returns what the index must be told, None for nothing."""
        if not self._changes:
            return None
        insert_rows(connection, "changes", self._changes)
        connection.execute(
            "UPDATE banks SET position = ?, latest_time = ? WHERE bank_key = ?",
            (self.position, self.now, self.bank.key),
        )
        return IndexBatch(
            replace(self.bank, position=self.position),
            self.position,
            tuple(self._upserts.values()),
            tuple(self._ended),
            tuple(self._removed),
            erased=self._erased,
            moved=self._moved,
            refers=self._refers or bool(self._ended or self._removed),
            after=self._after,
        )


class Transaction:
    """The connection of a job, inside its savepoint, with the banks that it changes.

    Args:
        connection: Of the writer.
        clock: Milliseconds since the epoch.
        has_keys: Whether it can write into sealed banks.
    """

    def __init__(self, connection: apsw.Connection, clock: Clock, *, has_keys: bool) -> None:
        self.connection = connection
        self.clock = clock
        self._has_keys = has_keys
        self._works: dict[int, BankWork] = {}
        self.effects: list[Callable[[], None]] = []
        self.tells: list[Told] = []

    def tell(self, told: Told) -> None:
        """Tell the other processes on this data directory, once this is committed."""
        self.tells.append(told)

    def after_commit(self, effect: Callable[[], None]) -> None:
        """Call ``effect`` on the writer's thread when this is committed, before the job's caller hears of it."""
        self.effects.append(effect)

    def bank(self, bank: Bank) -> BankWork:
        """The work in a bank, begun if it is not.

        Raises:
            BankNotFound: It was deleted.
            FailedPrecondition: It is sealed, and this process has no keys.
        """
        work = self._works.get(bank.key)
        if work is None:
            rows = fetch(self.connection, BANK_OF_WORK, (bank.key, bank.tenant, bank.bank_id))
            if not rows:
                raise BankNotFound(bank.bank_id)
            *columns, latest_time, vector_set, sealed = rows[0]
            if sealed and not self._has_keys:
                # Of a server that was paused while others began to seal banks. It starts no second time.
                raise FailedPrecondition(
                    f"bank {bank.bank_id!r} is encrypted, and this server has no keys; set store.encryption as on the"
                    " others, and start it again"
                )
            now = max(self.clock(), latest_time)
            work = self._works[bank.key] = BankWork(decode_bank(tuple(columns)), now, vector_set, sealed=bool(sealed))
        return work

    def finish(self) -> list[IndexBatch]:
        """Write what the banks' works have gathered."""
        batches = []
        for work in self._works.values():
            batch = work.write(self.connection)
            if batch is not None:
                batches.append(batch)
        return batches
