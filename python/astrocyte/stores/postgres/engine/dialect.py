"""Translation of the product's SQLite statements to PostgreSQL's dialect.

Statements have one text, that of SQLite. A text is translated once and the result is kept. Functions that PostgreSQL
lacks are in the schema (``0001_functions.sql``), so that only the grammar differs here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

from astrocyte.stores.sqlite.engine.transaction import BANK_OF_WORK
from astrocyte.stores.sqlite.rows import Array
from astrocyte.stores.sqlite.tables.idempotency import CLEAR_NAMES, NAME_PLACES

# Names of columns in the order of the table, its primary key, and the column that numbers its rows, if one does.
Key = int | str


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the database has it.

    Attributes:
        columns: All columns in order.
        key: Columns of the primary key.
        identity: The column that the database numbers; None where it numbers none.
        oid: Number of the table in the catalog.
        numbers: Numbers of the columns there.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]
    identity: str | None
    oid: int = 0
    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Translation:
    """A statement of PostgreSQL.

    Attributes:
        text: With placeholders $1, $2 and so on.
        keys: Place or name, for each placeholder, of its value in the bindings.
        numbers: True if the statement returns the number of the inserted row, which SQLite keeps apart.
    """

    text: str
    keys: tuple[Key, ...]
    numbers: bool = False


# A quoted string, or a placeholder outside of one.
_PLACEHOLDER = re.compile(r"'(?:[^']|'')*'|\?(\d*)|(?<![:\w]):([a-z_][a-z0-9_]*)")
_INDEXED = re.compile(r"\s+(?:NOT INDEXED|INDEXED BY \w+)")
# A plus before a condition keeps SQLite from an index.
_PLUS = re.compile(r"\bAND \+(?=[(\w])")
# A value of JSON that is a number.
_REAL = re.compile(r"\b(\w+)\.value = CAST\(\$(\d+) AS REAL\)")
_BLOB = re.compile(r"\bx'([0-9a-fA-F]*)'")
_CROSS_ON = re.compile(r"\bCROSS JOIN (\w+(?: \w+)?|unnest\([^)]*\) \w+\(value\)) ON\b")
_ARRAY = re.compile(r"\bcarray\(\$(\d+)\)(?: (?!WHERE|CROSS|ORDER|JOIN)(\w+))?")
_IS_VALUE = re.compile(r"\bIS (NOT )?(?=\$\d)")
_REPLACE = re.compile(r"INSERT OR REPLACE INTO (\w+)(?: \(([^)]*)\))?", re.ASCII)
_INSERT = re.compile(r"INSERT INTO (\w+)\b", re.ASCII)
# SQLite takes a negative limit for none.
_LIMIT = re.compile(r"\bLIMIT \$(\d+)")
_JOINED = re.compile(r"\bgroup_concat\(([\w.]+)\)")
# A selection from an array, of which nothing says in which order the rows come: they come in that of the array.
_FROM_ARRAY = re.compile(r"SELECT (?!DISTINCT)[^()]*?\bFROM (unnest\([^)]*\)) (\w+)\(value\)")
# The types of arrays, by that of their first value.
_ARRAY_TYPES = {int: "bigint", str: "text", bytes: "bytea"}
_CASTS = {int: "bigint", bool: "bigint", str: "text", bytes: "bytea", float: "double precision"}

# A kept answer with empty names; it is a JSON list.
_NAMELESS = reduce(
    lambda text, place: f"jsonb_set({text}, '{{{place}}}', '\"\"')",
    NAME_PLACES,
    "convert_from(response, 'UTF8')::jsonb",
)
# Statements that PostgreSQL says in other words, by the text of SQLite.
OTHER_WORDS = {
    # The row stays locked until the transaction ends: nobody else gives out the bank's next position.
    BANK_OF_WORK: f"{BANK_OF_WORK} FOR UPDATE",
    CLEAR_NAMES: (
        f"UPDATE requests SET response = convert_to(({_NAMELESS})::text, 'UTF8')"  # noqa: S608 - no value of a caller
        " WHERE bank_key = ? AND outlives_bank = 1"
    ),
    # Of the sequence, which no deletion takes back.
    "SELECT seq FROM sqlite_sequence WHERE name = 'memories'": "SELECT last_value - 1 FROM memories_next",
}


def array_kinds(bindings: Sequence[object] | Mapping[str, object]) -> tuple[str, ...]:
    """The types of the arrays among the values of a statement, in order."""
    values = bindings.values() if isinstance(bindings, Mapping) else bindings
    return tuple([_kind(value) for value in values if isinstance(value, Array)])


def _kind(array: Array) -> str:
    for value in array.values:
        return _ARRAY_TYPES[type(value)]
    return "bigint"


def translated(
    sql: str,
    # By place, or by name.
    bindings: Any,  # noqa: ANN401
    tables: Mapping[str, Table],
    *,
    cast: bool = False,
) -> Translation:
    """Translate a statement.

    Args:
        sql: Of SQLite.
        bindings: The values that it is run with; the types of arrays are taken from them.
        tables: The tables of the database by name.
        cast: Name the type of each value, where the database cannot tell it from the statement.
    """
    sql = OTHER_WORDS.get(sql, sql)
    text, keys = numbered(sql.replace("(fingerprint IS NULL) = 0", "(fingerprint IS NULL) = false"))
    text = _REAL.sub(r"json_real(\1.value, \1.type) = CAST($\2 AS double precision)", text)
    text = _JOINED.sub(r"string_agg(\1::text, ',')", text)
    text = _BLOB.sub(r"'\\x\1'::bytea", _PLUS.sub("AND ", _INDEXED.sub("", text)))
    values = [bindings[key] for key in keys]

    def unnested(match: re.Match[str]) -> str:
        value = values[int(match[1]) - 1]
        kind = _kind(value) if isinstance(value, Array) else "bigint"
        return f"unnest($@{match[1]}::{kind}[]) {match[2] or 'carray'}(value)"

    text = _ARRAY.sub(unnested, text)
    text = _CROSS_ON.sub(r"JOIN \1 ON", text)
    text = _LIMIT.sub(r"LIMIT nullif(greatest($@\1::bigint, -1), -1)", text)
    text = _ordered(text)
    text = _IS_VALUE.sub(lambda match: "IS DISTINCT FROM " if match[1] else "IS NOT DISTINCT FROM ", text)
    if cast:
        text = re.sub(r"\$(\d+)", lambda match: f"{match[0]}{_cast(values[int(match[1]) - 1])}", text)
    text = text.replace("$@", "$")
    numbers = False
    replacing = _REPLACE.match(text)
    if replacing:
        text = _replacing(text, replacing, tables)
    inserting = _INSERT.match(text)
    if inserting and " RETURNING " not in text:
        table = tables.get(inserting[1])
        # The store numbers memories itself, many in one statement.
        if table is not None and table.identity is not None and inserting[1] != "memories":
            text, numbers = f"{text} RETURNING {table.identity}", True
    return Translation(text, keys, numbers)


@cache
def numbered(sql: str) -> tuple[str, tuple[Key, ...]]:
    """The statement with placeholders $1, $2 and so on, and which value each of them stands for."""
    names: dict[str, int] = {}
    largest = 0

    def number(match: re.Match[str]) -> str:
        nonlocal largest
        if match[2] is not None:
            names.setdefault(match[2], len(names) + 1)
            return f"${names[match[2]]}"
        if match[1] is None:
            return match[0]
        # As SQLite counts: one more than the largest so far.
        own = int(match[1]) if match[1] else largest + 1
        largest = max(largest, own)
        return f"${own}"

    text = _PLACEHOLDER.sub(number, sql)
    if names:
        return text, tuple(names)
    used = sorted({int(one) for one in re.findall(r"\$(\d+)", text)})
    # PostgreSQL cannot tell the type of a value that no placeholder names: they are counted anew.
    places = {old: new for new, old in enumerate(used, start=1)}
    return re.sub(r"\$(\d+)", lambda match: f"${places[int(match[1])]}", text), tuple(old - 1 for old in used)


def _ordered(text: str) -> str:
    """The statement with the order of its array, where SQLite's loops keep it."""
    match = _FROM_ARRAY.match(text)
    if match is None or re.search(r"\b(ORDER BY|GROUP BY|LIMIT)\b", text[match.end() :]):
        return text
    array, name = match[1], match[2]
    start = match.start(1)
    return f"{text[:start]}{array} WITH ORDINALITY {name}(value, place){text[match.end() :]} ORDER BY {name}.place"


def _cast(value: object) -> str:
    # By the classes above it, as members of enumerations are texts or numbers.
    return next((f"::{_CASTS[kind]}" for kind in type(value).__mro__ if kind in _CASTS), "")


def _replacing(text: str, match: re.Match[str], tables: Mapping[str, Table]) -> str:
    """An upsert: what the statement does not name gets its default, as in a new row."""
    table = tables[match[1]]
    named = tuple(match[2].split(", ")) if match[2] else table.columns
    rest = [column for column in table.columns if column not in table.key]
    changes = ", ".join(f"{column} = {f'excluded.{column}' if column in named else 'DEFAULT'}" for column in rest)
    action = f"DO UPDATE SET {changes}" if changes else "DO NOTHING"
    body = text.removeprefix("INSERT OR REPLACE")
    return f"INSERT{body} ON CONFLICT ({', '.join(table.key)}) {action}"
