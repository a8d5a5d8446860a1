"""Verification of a whole store: pages of its file, rows, content hashes and vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import apsw

from astrocyte.errors import BankNotFound, FailedPrecondition, StoreError
from astrocyte.model import Bank
from astrocyte.stores.quarantine import HashFits, Quarantine
from astrocyte.stores.records import VersionRecord
from astrocyte.stores.sqlite import damage
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank
from astrocyte.stores.sqlite.tables.version_records import records

# Versions read at once.
ROWS_AT_ONCE = 256
# Problems that SQLite names before it stops.
MOST_PROBLEMS = 100
INTACT = "ok"

# Gets how many versions are read, and how many there are; None where that cannot be told.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged version of a memory.

    Attributes:
        tenant: Tenant of the bank.
        bank_id: ID of the bank.
        memory_id: ID of the memory, None where it cannot be read.
        row_key: Key of the version.
        problem: What is wrong with it; no content.
    """

    tenant: str
    bank_id: str
    memory_id: str | None
    row_key: int
    problem: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification.

    Attributes:
        banks: How many banks were read.
        versions: How many versions of memories were read, forgotten ones included.
        damaged: The damaged versions, at most `astrocyte.stores.quarantine.MOST_NAMED`.
        database: Problems of the database file, as SQLite names them, and of keys of encrypted banks.
    """

    banks: int
    versions: int
    damaged: tuple[Damage, ...]
    database: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """True if nothing is damaged."""
        return not self.damaged and not self.database


def verify(connections: Connections, hash_fits: HashFits | None, progress: Progress | None = None) -> Verification:
    """As `verify_rows`, and check the database file."""
    found = verify_rows(connections, hash_fits, progress)
    return replace(found, database=(*found.database, *file_problems(connections)))


def verify_rows(connections: Connections, hash_fits: HashFits | None, progress: Progress | None = None) -> Verification:
    """Read every row of every bank. Others may write meanwhile.

    Args:
        connections: Of the store.
        hash_fits: Tells whether a content hash fits; None checks none.
        progress: Is called now and then.
    """
    rows = connections.query(f"SELECT {BANK_COLUMNS} FROM banks WHERE tenant <> '' ORDER BY tenant, bank_id")
    banks = [decode_bank(row) for row in rows]
    quarantine = Quarantine()
    total = None if progress is None else _count(connections)
    versions, problems = 0, []
    for bank in banks:
        try:
            for record in _all_records(connections, bank, quarantine):
                if progress is not None and versions % ROWS_AT_ONCE == 0:
                    progress(versions, total)
                problem = _problem(record, bank, hash_fits)
                if problem is None:
                    versions += 1
                else:
                    quarantine.add(bank.key, record.row_key, problem)
        except BankNotFound:
            # Deleted meanwhile, and its key with it.
            continue
        except FailedPrecondition as error:
            problems.append(f"bank {bank.bank_id} of tenant {bank.tenant}: {error.message}")
    by_key = {bank.key: bank for bank in banks}
    damaged = tuple(
        Damage(
            by_key[row.bank_key].tenant,
            by_key[row.bank_key].bank_id,
            _memory_id(connections, row.row_key),
            row.row_key,
            row.problem,
        )
        for row in quarantine.rows
    )
    return Verification(len(banks), versions + len(quarantine), damaged, tuple(problems))


def _count(connections: Connections) -> int | None:
    try:
        return int(connections.query("SELECT count(*) FROM memories")[0][0])
    except StoreError:
        return None


def _all_records(connections: Connections, bank: Bank, quarantine: Quarantine) -> Iterator[VersionRecord]:
    after = 0
    while True:
        found: list[VersionRecord] | None = None
        # Of one state: what is erased between two would be missing.
        with connections.snapshot() as connection:
            keys = damage.keys_of(connection, bank, after, ROWS_AT_ONCE)
            if not keys:
                return
            try:
                found = _read(connection, bank, keys)
            except Exception as error:
                if damage.problem_of(error) is None:
                    raise
        after = keys[-1]
        if found is None:
            yield from damage.around(partial(_read_one, connections, bank), iter(keys), bank, quarantine)
        else:
            yield from found


def _read_one(connections: Connections, bank: Bank, row_key: int) -> VersionRecord | None:
    with connections.snapshot() as connection:
        # It may be erased by now.
        there = damage.keys_of(connection, bank, row_key - 1, 1) == [row_key]
        return _read(connection, bank, [row_key])[0] if there else None


def _read(connection: apsw.Connection, bank: Bank, keys: Sequence[int]) -> list[VersionRecord]:
    marks = ",".join("?" * len(keys))
    clause = f"m.bank_key = ? AND m.row_key IN ({marks})"
    found = records(connection, bank, clause, (bank.key, *keys), at_position=bank.position)
    if len(found) != len(keys):
        # They are in the index, and their parts are not.
        raise ValueError(f"{len(keys) - len(found)} rows are not complete")
    return found


def _problem(record: VersionRecord, bank: Bank, hash_fits: HashFits | None) -> str | None:
    problem, memory = damage.record_problem(record, bank), record.memory
    if problem is not None:
        return problem
    if hash_fits is not None and not hash_fits(
        memory.content_hash, memory.content, memory.speaker, memory.session_id, memory.occurred_at
    ):
        return damage.HASH
    return None


def _memory_id(connections: Connections, row_key: int) -> str | None:
    try:
        rows = connections.query("SELECT memory_id FROM memories WHERE row_key = ?", (row_key,))
    except (StoreError, ValueError):
        return None
    return str(rows[0][0]) if rows else None


def file_problems(connections: Connections) -> tuple[str, ...]:
    """Return what SQLite says of the file; its texts name tables and pages, never values."""
    try:
        with connections.unlimited() as connection:
            found = [str(row[0]) for row in connection.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})")]
    except StoreError as error:
        return (error.message,)
    return tuple(problem for problem in found if problem != INTACT)
