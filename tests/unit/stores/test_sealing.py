"""Sealed values, and the columns that hold content."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import apsw
import pytest

from astrocyte.errors import FailedPrecondition, StoreError
from astrocyte.stores.postgres.engine.dialect import Table
from astrocyte.stores.postgres.engine.sealing import Sealer, Source, writing_of
from astrocyte.stores.sealing import columns
from astrocyte.stores.sealing.cipher import BankCipher
from astrocyte.stores.sealing.columns import BY_NAME, COLUMNS
from astrocyte.stores.sealing.values import MAGIC, header, packed, row_of
from astrocyte.stores.sqlite.engine.migrations import load_migrations
from astrocyte.stores.sqlite.rows import Row
from astrocyte.stores.sqlite.tables.idempotency import CLEAR_NAMES

CONTENT, METADATA, VECTOR = (
    BY_NAME["contents", "content"],
    BY_NAME["contents", "metadata"],
    BY_NAME["embeddings", "vector"],
)
HASH, QUERY = BY_NAME["memories", "content_hash"], BY_NAME["unanswered_queries", "query"]
SECRET = bytes(range(32))
ROW = row_of((7,))


def texts_of_the_schema() -> set[tuple[str, str]]:
    connection = apsw.Connection(":memory:")
    for migration in load_migrations():
        connection.execute(migration.sql)
    names = [str(name) for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {
        (name, str(column))
        for name in names
        if not name.startswith("sqlite_")
        for _, column, kind, *_ in list(connection.execute(f'PRAGMA table_xinfo("{name}")'))
        if kind in {"TEXT", "BLOB", "ANY", ""}
    }


def test_every_column_with_texts_or_bytes_is_sealed_or_refused_or_readable_for_a_reason() -> None:
    every = texts_of_the_schema()
    content = set(BY_NAME) | {(table, name) for table, names in columns.REFUSED.items() for name in names}
    assert content <= every
    readable: set[tuple[str, str]] = set()
    for table, (reason, names) in columns.READABLE.items():
        assert reason
        named = {(table, name) for name in names} or {one for one in every if one[0] == table}
        assert not named & content, table
        readable |= named
    made_by_postgres = {"schema_migrations", "store_values"}
    assert every - content - readable == set()
    assert {one for one in readable - every if one[0] not in made_by_postgres} == set()


def test_the_documentation_lists_what_stays_readable() -> None:
    page = (Path(__file__).parents[3] / "docs/encryption.md").read_text(encoding="utf-8")
    sealed, readable = page.split("## What stays readable")
    told = set(re.findall(r"`([a-z_]+)`", readable))
    of_banks = {
        table
        for table, (reason, _) in columns.READABLE.items()
        if reason not in {columns.OF_TENANT, columns.OF_PROGRAM, columns.OF_SOURCES, columns.OF_REFUSED}
    }
    assert of_banks - told == set()
    assert {column.table for column in COLUMNS} - set(re.findall(r"`([a-z_]+)`", sealed)) == set()


def test_the_numbers_of_columns_are_never_given_anew() -> None:
    numbers = {column.number: f"{column.table}.{column.name}" for column in COLUMNS}
    assert len(numbers) == len(COLUMNS)
    assert {number: numbers[number] for number in (1, 6, 7, 13, 15)} == {
        1: "contents.content",
        6: "chunks.text",
        7: "embeddings.vector",
        13: "memories.content_hash",
        15: "unanswered_queries.query",
    }


@pytest.mark.parametrize(
    ("column", "value"), [(CONTENT, "Grüße 👋"), (METADATA, '{"a":"b"}'), (VECTOR, bytes(range(64))), (HASH, b"h" * 16)]
)
def test_a_sealed_value_is_opened_and_says_nothing(column: columns.Column, value: str | bytes) -> None:
    cipher = BankCipher(3, SECRET)
    sealed = cipher.seal(column, ROW, value)
    data = packed(sealed)
    assert data is not None
    plain = value.encode() if isinstance(value, str) else value
    assert type(sealed) is type(value)
    assert plain not in data
    assert cipher.open(data) == plain
    assert (header(data).column, header(data).bank_key) == (column.number, 3)
    # Random where nothing compares it, and equal where SQL does.
    assert (cipher.seal(column, ROW, value) == sealed) is column.is_digest


def test_each_bit_of_a_sealed_value_is_bound() -> None:
    cipher = BankCipher(3, SECRET)
    data = packed(cipher.seal(VECTOR, ROW, b"\x01\x02\x03\x04"))
    assert data is not None
    for place in range(len(MAGIC), len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(ValueError, match="damaged"):
            cipher.open(bytes(changed))
    for other in (BankCipher(3, bytes(32)), BankCipher(4, SECRET)):
        with pytest.raises(ValueError, match="damaged"):
            other.open(data)


def test_values_of_this_format_stay_readable() -> None:
    cipher = BankCipher(3, SECRET)
    digest = (
        "007365616c6564010f000000000000000300000000000000000000000000000000b36f9e587bf51c1854834611013549c5"
        "97e85c19cfc0ae56a3"
    )
    assert (packed(cipher.seal(QUERY, b"", "who sails")) or b"").hex() == digest
    assert cipher.open(bytes.fromhex(digest)) == b"who sails"
    sealed = (
        "007365616c65640107000000000000000300000000000000000000000000000007f82e1d85c4b711106fdc9b93"
        "58a908b2d50e97253ac8c77881875c367441aca0"
    )
    assert cipher.open(bytes.fromhex(sealed)) == b"four"


def test_digests_differ_by_bank_and_column() -> None:
    own = BankCipher(3, SECRET).seal(HASH, b"", b"h" * 16)
    assert isinstance(own, bytes)
    for cipher, column in (
        (BankCipher(3, bytes(32)), HASH),
        (BankCipher(4, SECRET), HASH),
        (BankCipher(3, SECRET), BY_NAME["knowledge_items", "topic"]),
    ):
        other = cipher.seal(column, b"", b"h" * 16)
        assert isinstance(other, bytes)
        assert own[-16:] != other[-16:]


def test_what_says_nothing_stays_as_it_is_and_named_keys_stay_readable() -> None:
    cipher = BankCipher(3, SECRET)
    for value in ("", "[]", "{}", b""):
        assert cipher.seal(METADATA, ROW, value) == value
    sealed = cipher.seal(METADATA, ROW, '{"also_relevant_to":"b","key":"value"}')
    assert isinstance(sealed, str)
    assert json.loads(sealed).keys() == {"~sealed1", "also_relevant_to"}
    assert cipher.open(packed(sealed) or b"") == b'{"also_relevant_to":"b","key":"value"}'


def test_rows_are_told_apart() -> None:
    rows = [
        row_of((7,)),
        row_of((8,)),
        row_of(("7",)),
        row_of((7, 1)),
        row_of((71,)),
        row_of(("a", "b")),
        row_of(("ab", "")),
    ]
    assert len(set(rows)) == len(rows)
    assert {len(row) for row in rows} == {16}


TABLES = {
    "contents": Table(("row_key", "content", "tags", "metadata", "source", "speaker", "entities"), ("row_key",), None),
    "requests": Table(
        ("tenant", "request_id", "operation", "fingerprint", "response", "created_at", "bank_key", "outlives_bank"),
        ("tenant", "request_id"),
        None,
    ),
    "memories": Table(("row_key", "bank_key", "memory_id", "content_hash"), ("row_key",), "row_key"),
}


class Ciphers:
    """One sealed bank, 3."""

    def __init__(self) -> None:
        self.own = BankCipher(3, SECRET)

    def cipher(self, bank_key: int) -> BankCipher | None:
        return self.own if bank_key == 3 else None


def test_statements_are_sealed_by_their_columns_and_banks() -> None:
    sealer = Sealer(Ciphers())
    writing = writing_of("INSERT INTO memories VALUES (?,?,?,?),(?,?,?,?)", TABLES)
    assert writing is not None
    values = sealer.sealed(writing, (1, 3, "m", b"h" * 16, 2, 4, "n", b"h" * 16), None)
    assert packed(values[3]) is not None
    assert values[7] == b"h" * 16
    writing = writing_of("INSERT INTO contents VALUES (?,?,?,?,?,?,?),(?,?,?,?,?,?,?)", TABLES)
    assert writing is not None
    rows = [(key, "text", '["t"]', '{"a":1}', None, "Ana", "[]") for key in (1, 2)]
    values = sealer.sealed(writing, [*rows[0], *rows[1]], None)
    assert [packed(value) is not None for value in values[:7]] == [False, True, False, True, False, True, False]
    # The other bank is not sealed.
    assert tuple(values[7:]) == rows[1]
    # A version of an earlier transaction is looked up.
    sealer.begin()
    assert packed(sealer.sealed(writing, [*rows[0], *rows[1]], {1: 4, 2: 3}.get)[8]) is not None


def test_answers_that_outlive_their_bank_are_not_sealed() -> None:
    sealer = Sealer(Ciphers())
    writing = writing_of("INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)", TABLES)
    assert writing is not None
    row = ("t", "r", "retain", b"f", b"answer", 1, 3, False)
    assert [packed(one) is not None for one in sealer.sealed(writing, row, None)[3:5]] == [True, True]
    for other in ((*row[:6], 3, True), (*row[:6], None, True), (*row[:6], 5, False)):
        assert tuple(sealer.sealed(writing, other, None)) == other
    assert writing_of(CLEAR_NAMES, TABLES) is None


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO contents SELECT ?, ?, '[]', '{}', NULL, NULL, '[]'",
        "INSERT INTO contents VALUES (?, lower(?), '[]', '{}', NULL, NULL, '[]')",
        "INSERT INTO contents VALUES (?, ?)",
        "INSERT INTO queued_retains (memory_id, item) VALUES (?, ?)",
        "UPDATE contents SET content = ? WHERE row_key = ?",
        "UPDATE knowledge_revisions SET body = ? WHERE item_key = ? AND bank_key = ?",
        "UPDATE knowledge_revisions SET body = body || ? WHERE item_key = ? AND revision = ? AND bank_key = ?",
        "UPDATE knowledge_revisions AS r SET body = ? WHERE item_key = ? AND revision = ? AND bank_key = ?",
        "UPDATE knowledge_revisions SET (cause, body) = (?, ?) WHERE item_key = ? AND revision = ? AND bank_key = ?",
        "UPDATE knowledge_revisions SET cause = (SELECT ? WHERE true), body = ? WHERE item_key = ?",
        "UPDATE contents SET content = ?",
        "WITH w AS (SELECT 1) INSERT INTO contents VALUES (?, ?, '[]', '{}', NULL, NULL, '[]')",
        "INSERT INTO contents DEFAULT VALUES",
        "INSERT INTO queued_retains (bank_key,\n memory_id,\n item) VALUES (?, ?, ?)",
        "INSERT INTO unanswered_queries (bank_key, query) VALUES (?, ?) ON CONFLICT (query) DO UPDATE SET query = ?",
    ],
)
def test_content_in_a_form_that_is_not_understood_is_refused(sql: str) -> None:
    with pytest.raises(StoreError, match="cannot be sealed"):
        writing_of(sql, TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE graph_entities SET given_name = ? WHERE entity_key = ?",
        "INSERT INTO entity_mentions (row_key, name) VALUES (?, ?)",
    ],
)
def test_names_of_entities_are_refused(sql: str) -> None:
    with pytest.raises(FailedPrecondition, match="no names of entities"):
        writing_of(sql, TABLES)


def test_what_is_computed_may_look_like_a_sealed_value() -> None:
    sealer = Sealer(Ciphers())
    forged = [f'{{"~sealed1":"{data}"}}' for data in ("", "AAAA", "=", base64.b64encode(MAGIC + bytes(60)).decode())]
    rows: list[Row] = [(one, 1) for one in ['{"~sealed1":"', *forged]]
    assert sealer.opened([Source(0, None, (), None)], rows) == rows
    # In a column of content it is a damaged row.
    with pytest.raises(ValueError, match="substring"):
        sealer.opened([Source(0, CONTENT, (), None)], rows)
    value = Ciphers().own.seal(CONTENT, ROW, "text")
    assert sealer.opened([Source(0, None, (), None)], [(value, 1)]) == [("text", 1)]


def test_an_update_is_sealed() -> None:
    sql = "UPDATE knowledge_revisions SET body = ? WHERE item_key = ? AND revision = ? AND bank_key = ?"
    writing = writing_of(sql, TABLES)
    assert writing is not None
    values = Sealer(Ciphers()).sealed(writing, ('{"text":"t"}', 1, 2, 3), None)
    assert header(packed(values[0]) or b"").row == row_of((1, 2))
    for other in (
        "UPDATE graph_entities SET unresolved = NULL WHERE entity_key = ?",
        "SELECT 1",
        "DELETE FROM contents",
    ):
        assert writing_of(other, TABLES) is None
