"""A deleted bank leaves no row of its own in any table, but for the trail; other banks lose nothing."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from astrocyte.model import Bank
from astrocyte.stores.records import Insert, RequestKey
from astrocyte.stores.sqlite import SqliteStore, open_store
from astrocyte.stores.sqlite.deletion import bank_rows
from samples.memories import RICH, Clock, make_bank

Tables = dict[str, list[tuple[str, str]]]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = open_store(tmp_path, clock=Clock(), ballast_bytes=0)
    yield store
    store.close()


def tables_of_banks(connection: apsw.Connection) -> Tables:
    """Every table with a bank's key, and the names and types of its columns."""
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    names = [str(name) for (name,) in found]
    columns = {
        name: [(str(row[1]), str(row[2])) for row in connection.execute(f"PRAGMA table_info({name})")] for name in names
    }
    return {name: own for name, own in columns.items() if "bank_key" in dict(own)}


def counts(connection: apsw.Connection, tables: Tables, bank: Bank) -> dict[str, int]:
    def count(name: str) -> int:
        rows = connection.execute(f"SELECT count(*) FROM {name} WHERE bank_key = ?", (bank.key,)).fetchall()  # noqa: S608
        return int(str(rows[0][0]))

    return {name: count(name) for name in tables}


def fill(connection: apsw.Connection, tables: Tables, bank: Bank) -> None:
    """Put a row of the bank into every table that has none of it, whatever the columns mean."""
    for name, columns in tables.items():
        if counts(connection, {name: columns}, bank)[name]:
            continue
        values = {"INTEGER": bank.key, "TEXT": f"[{bank.key}]", "BLOB": b"x", "REAL": 1.0}
        row = [values[kind] for _, kind in columns]
        connection.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)  # noqa: S608


async def test_a_deleted_bank_leaves_nothing_but_the_trail(store: SqliteStore) -> None:
    banks = [await make_bank(store, name) for name in ("gone", "other")]
    for bank in banks:
        request = RequestKey(bank.bank_id, "retain", b"f")
        await store.commit(bank, [Insert(RICH)], request=request, respond=lambda _: b"answer")

    def prepare(transaction: object) -> Tables:
        connection: apsw.Connection = transaction.connection  # type: ignore[attr-defined]
        tables = tables_of_banks(connection)
        for bank in banks:
            fill(connection, tables, bank)
        assert all(count for bank in banks for count in counts(connection, tables, bank).values())
        return tables

    tables = await store._writer.submit(prepare)
    gone, other = banks
    with store._connections.snapshot() as connection:
        before = counts(connection, tables, other)
    await store.delete_bank(gone, expected_etag=None)
    with store._connections.snapshot() as connection:
        left = counts(connection, tables, gone)
        assert {name for name, count in left.items() if count} == set(bank_rows.KEPT)
        assert counts(connection, tables, other) == before
        # What hangs on a version has no key of the bank.
        assert len(connection.execute("SELECT row_key FROM contents").fetchall()) == 1
        rows = connection.execute("SELECT count(*) FROM chunks UNION ALL SELECT count(*) FROM embeddings").fetchall()
        assert rows == [(2,), (2,)]


def test_every_table_with_a_bank_key_is_listed(store: SqliteStore) -> None:
    with store._connections.snapshot() as connection:
        tables = set(tables_of_banks(connection))
    sliced = {table.name for table in bank_rows.IN_SLICES}
    assert tables == {*bank_rows.WITH_VERSIONS, *sliced, *bank_rows.AT_ONCE, *bank_rows.KEPT}
