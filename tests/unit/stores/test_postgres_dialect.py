"""The translation of statements to PostgreSQL's dialect, without a server."""

from __future__ import annotations

import pytest

from astrocyte.model import ContentType
from astrocyte.stores.postgres.engine.dialect import OTHER_WORDS, Table, translated
from astrocyte.stores.postgres.engine.migrations import load_postgres_migrations
from astrocyte.stores.sqlite.engine.migrations import load_migrations
from astrocyte.stores.sqlite.rows import Array

TABLES = {
    "t": Table(("a", "b", "c"), ("a",), None),
    "numbered": Table(("n", "v"), ("n",), "n"),
}


@pytest.mark.parametrize(
    ("sql", "bindings", "text", "keys"),
    [
        ("SELECT a FROM t WHERE b = ? AND c = ?", (1, 2), "SELECT a FROM t WHERE b = $1 AND c = $2", (0, 1)),
        # As SQLite counts: a bare mark is one more than the largest before it.
        ("SELECT ?2, ?, ?1", (1, 2, 3), "SELECT $2, $3, $1", (0, 1, 2)),
        # A value that is not named is left out.
        ("SELECT ?1, ?3", (1, 2, 3), "SELECT $1, $2", (0, 2)),
        ("SELECT :b, :a, :b", {"a": 1, "b": 2}, "SELECT $1, $2, $1", ("b", "a")),
        (
            "SELECT :key0, :key1, :key10",
            {"key0": 1, "key1": 2, "key10": 3},
            "SELECT $1, $2, $3",
            ("key0", "key1", "key10"),
        ),
        ("SELECT '?', 'it''s :x' FROM t WHERE a = ?", (1,), "SELECT '?', 'it''s :x' FROM t WHERE a = $1", (0,)),
        ("SELECT a FROM t WHERE a = ? AND +(b = 1)", (1,), "SELECT a FROM t WHERE a = $1 AND (b = 1)", (0,)),
        (
            "SELECT a FROM t INDEXED BY t_b WHERE b IS ?",
            (None,),
            "SELECT a FROM t WHERE b IS NOT DISTINCT FROM $1",
            (0,),
        ),
        ("SELECT a FROM t WHERE b IS NOT ?", (None,), "SELECT a FROM t WHERE b IS DISTINCT FROM $1", (0,)),
        (
            "SELECT (SELECT group_concat(t.a) FROM t WHERE b = ?)",
            (1,),
            "SELECT (SELECT string_agg(t.a::text, ',') FROM t WHERE b = $1)",
            (0,),
        ),
        ("SELECT a FROM t WHERE b <> x'00ff'", (), "SELECT a FROM t WHERE b <> '\\x00ff'::bytea", ()),
        (
            "SELECT a FROM t ORDER BY a LIMIT ?",
            (-1,),
            "SELECT a FROM t ORDER BY a LIMIT nullif(greatest($1::bigint, -1), -1)",
            (0,),
        ),
        (
            "DELETE FROM t WHERE a IN (SELECT value FROM carray(?1))",
            (Array([b"x"]),),
            "DELETE FROM t WHERE a IN (SELECT value FROM unnest($1::bytea[]) carray(value))",
            (0,),
        ),
        (
            "SELECT t.b FROM carray(?1) w CROSS JOIN t ON t.a = w.value",
            (Array([1]),),
            (
                "SELECT t.b FROM unnest($1::bigint[]) WITH ORDINALITY w(value, place) JOIN t ON t.a = w.value"
                " ORDER BY w.place"
            ),
            (0,),
        ),
        (
            "SELECT 1 FROM json_each(?) j WHERE j.value = CAST(? AS REAL)",
            ("[]", "1.5"),
            "SELECT 1 FROM json_each($1) j WHERE json_real(j.value, j.type) = CAST($2 AS double precision)",
            (0, 1),
        ),
        ("SELECT 1 FROM t CROSS JOIN json_each(t.b) j", (), "SELECT 1 FROM t CROSS JOIN json_each(t.b) j", ()),
        (
            "INSERT OR REPLACE INTO t VALUES (?, ?, ?)",
            (1, 2, 3),
            "INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT (a) DO UPDATE SET b = excluded.b, c = excluded.c",
            (0, 1, 2),
        ),
        (
            "INSERT OR REPLACE INTO t (a, b) VALUES (?, ?)",
            (1, 2),
            "INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT (a) DO UPDATE SET b = excluded.b, c = DEFAULT",
            (0, 1),
        ),
    ],
)
def test_a_statement_is_said_in_the_other_dialect(
    sql: str, bindings: tuple[object, ...] | dict[str, object], text: str, keys: tuple[int | str, ...]
) -> None:
    found = translated(sql, bindings, TABLES)
    assert (found.text, found.keys, found.numbers) == (text, keys, False)


def test_an_insertion_into_a_numbered_table_returns_the_number() -> None:
    found = translated("INSERT INTO numbered (v) VALUES (?)", ("x",), TABLES)
    assert (found.text, found.numbers) == ("INSERT INTO numbered (v) VALUES ($1) RETURNING n", True)


def test_types_are_named_where_the_database_cannot_tell_them() -> None:
    found = translated("SELECT ?, ?, ?, ?", (1, "x", None, ContentType.TEXT), TABLES, cast=True)
    assert found.text == "SELECT $1::bigint, $2::text, $3, $4::text"


def test_every_step_of_the_schema_has_its_counterpart() -> None:
    ours = load_postgres_migrations()
    assert [one.version for one in ours] == [one.version for one in load_migrations()]
    text = "\n".join(one.sql for one in ours)
    for word in (") STRICT", "WITHOUT ROWID", "AUTOINCREMENT", " BLOB", " INTEGER"):
        assert word not in text


def test_what_is_said_in_other_words_is_a_statement_of_the_store() -> None:
    for sql in OTHER_WORDS:
        assert sql.startswith(("SELECT ", "UPDATE "))
        assert translated(sql, (1, 2, 3), TABLES).text == OTHER_WORDS[sql].replace(
            "bank_key = ? AND tenant = ? AND bank_id = ?", "bank_key = $1 AND tenant = $2 AND bank_id = $3"
        ).replace("bank_key = ?", "bank_key = $1")
