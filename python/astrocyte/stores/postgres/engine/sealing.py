"""Sealing on the way into the database, and opening on the way out, for the columns that hold content.

A statement is looked at once, when it is prepared: which of its values go into such columns, with what tells their
rows apart; and which columns of its rows come from them, as the database says. One that writes content in a form that
is not understood here is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from psycopg import pq

from astrocyte.errors import BankNotFound, FailedPrecondition, StoreError
from astrocyte.stores.postgres.engine.dialect import Key, Table, numbered
from astrocyte.stores.postgres.engine.values import BYTEA, TEXT
from astrocyte.stores.sealing.columns import BY_NAME, PASSAGES, REFUSED, ROWS, Column
from astrocyte.stores.sealing.values import Ciphers, header, packed, row_of
from astrocyte.stores.sqlite.rows import Array, BankDigests, Row
from astrocyte.stores.sqlite.tables.idempotency import CLEAR_NAMES

# Text and the numbers of values: a value is bound by place or by name, or is a literal.
_INSERT = re.compile(r"INSERT (?:OR REPLACE )?INTO (\w+)(?: AS \w+)?(?: \(([^)]*)\))? (VALUES|SELECT)\b", re.ASCII)
_UPDATE = re.compile(r"UPDATE (\w+) SET (.*?) WHERE (.*)", re.ASCII | re.DOTALL)
# What writes into a table in another form than these.
_WRITES = re.compile(r"\b(?:INTO|UPDATE|UPDATE ONLY|COPY)\s+\"?(\w+)", re.ASCII)
_ON_CONFLICT = re.compile(r"\bDO UPDATE SET (.*)", re.ASCII | re.DOTALL)
_NAME = re.compile(r"\w+", re.ASCII)
_TABLES = frozenset({*REFUSED, *[table for table, _ in BY_NAME]})
_VALUE = re.compile(r"\$(\d+)")
_NOTHING = frozenset({"NULL", "''", "'[]'", "'{}'"})
# Of answers that outlive their bank, which hold its names and no content.
_OUTLIVES = "outlives_bank"
# Bits of the key of a passage that are not those of its version.
_PASSAGE_BITS = 16


@dataclass(frozen=True, slots=True)
class Target:
    """A value that goes into a content column.

    Attributes:
        column: The column.
        key: Place or name of the value.
        row: Those of the values that tell the row apart.
        bank: That of the key of the bank; None where the row of the version says it.
        unless: That of a value that, if true, says that the row holds no content.
    """

    column: Column
    key: Key
    row: tuple[Key, ...]
    bank: Key | None
    unless: Key | None


@dataclass(frozen=True, slots=True)
class Writing:
    """The writing of a statement: content, and versions with their banks."""

    targets: tuple[Target, ...]
    versions: tuple[tuple[Key, Key], ...] = ()
    # Values of tables that a sealed bank must not have rows in, with their banks.
    refused: tuple[tuple[str, Key], ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A column of rows that may hold content.

    Attributes:
        place: Its place in a row.
        column: Where it comes from; None where it was computed from it.
        row: Places of what tells its row apart.
        version: Place of the row key of its version.
    """

    place: int
    column: Column | None
    row: tuple[int, ...]
    version: int | None


class Sealer:
    """Seals and opens the values of one connection.

    Args:
        ciphers: Those of the banks.
    """

    def __init__(self, ciphers: Ciphers) -> None:
        self._ciphers = ciphers
        # Banks of the versions that the transaction has written so far.
        self._banks: dict[int, int] = {}

    def begin(self) -> None:
        """A transaction begins."""
        self._banks.clear()

    def sealed(self, writing: Writing, bindings: Any, bank_of: Any) -> Any:  # noqa: ANN401 - by place or by name
        """The bindings with sealed content.

        Args:
            writing: Of the statement.
            bindings: By place or by name.
            bank_of: Looks up the bank of a version by its row key.

        Raises:
            FailedPrecondition: The key of the bank is lost, or the bank is sealed and takes no such content.
        """
        for row_key, bank in writing.versions:
            self._banks[bindings[row_key]] = bindings[bank]
        for table, bank in writing.refused:
            if self._ciphers.cipher(bindings[bank]) is not None:
                raise _refusal(table)
        if not writing.targets:
            return bindings
        values: Any = dict(bindings) if isinstance(bindings, Mapping) else list(bindings)
        for target in writing.targets:
            value = values[target.key]
            if not value or (target.unless is not None and bindings[target.unless]):
                continue
            told = tuple([bindings[key] for key in target.row])
            bank_key = self._bank(target, told, bank_of) if target.bank is None else bindings[target.bank]
            try:
                # What is of no bank holds nothing of one.
                cipher = None if bank_key is None else self._ciphers.cipher(bank_key)
            except BankNotFound:
                if target.column.table != "requests":
                    raise
                # An erasure that ended after its bank: nobody gets this answer any more.
                values[target.key] = b""
                continue
            if cipher is not None:
                row = b"" if target.column.is_digest else row_of(told)
                values[target.key] = cipher.seal(target.column, row, value)
        return values

    def digests(self, asked: BankDigests) -> Array:
        """Values that a statement looks up in a column of digests, as the bank has them."""
        cipher = self._ciphers.cipher(asked.bank_key)
        if cipher is None:
            return asked
        column = BY_NAME[asked.table, asked.column]
        sealed: list[Any] = [cipher.seal(column, b"", cast("bytes", value)) for value in asked.values]
        return Array(sealed)

    def opened(self, sources: Sequence[Source], rows: list[Row]) -> list[Row]:
        """Rows with open content.

        Raises:
            FailedPrecondition: The key of a bank is lost.
            ValueError: A value was not sealed for its place.
        """
        return [self._open(sources, row) for row in rows]

    def _open(self, sources: Sequence[Source], row: Row) -> Row:
        values: list[Any] | None = None
        for source in sources:
            value = row[source.place]
            try:
                content = self._content(source, value, row) if value else None
            except (ValueError, BankNotFound):
                if source.column is not None:
                    raise
                # What was computed need not come from content: a tag may be any text, also one that looks like this.
                continue
            if content is None:
                continue
            values = values if values is not None else list(row)
            values[source.place] = content.decode() if isinstance(value, str) else content
        return row if values is None else tuple(values)

    def _content(self, source: Source, value: object, row: Row) -> bytes | None:
        """The open bytes of a value; None of one that is not sealed."""
        data = packed(value)
        if data is None:
            return None
        told = header(data)
        if source.column is not None:
            _check_place(source, told, row)
        cipher = self._ciphers.cipher(told.bank_key)
        if cipher is None:
            raise ValueError("a sealed value is of a bank that is not sealed")
        return cipher.open(data)

    def _bank(self, target: Target, told: tuple[int, ...], bank_of: Any) -> int:  # noqa: ANN401 - as in `sealed`
        row_key = told[0] >> _PASSAGE_BITS if target.column.table in PASSAGES else told[0]
        known = self._banks.get(row_key)
        if known is None:
            known = self._banks[row_key] = bank_of(row_key)
        if known is None:
            raise BankNotFound("")
        return known


def _check_place(source: Source, told: Any, row: Row) -> None:  # noqa: ANN401 - a header
    """Check that a value stands where it was sealed for, as far as the row tells."""
    column = source.column
    fits = column is not None and told.column == column.number
    if fits and column is not None and not column.is_digest:
        if source.row:
            fits = told.row == row_of([row[place] for place in source.row])
        elif source.version is not None and row[source.version] is not None:
            own = int.from_bytes(told.row, "big")
            fits = (own >> _PASSAGE_BITS if column.table in PASSAGES else own) == row[source.version]
    if not fits:
        raise ValueError("a sealed value is not where it was sealed for")


def writing_of(sql: str, tables: Mapping[str, Table]) -> Writing | None:
    """The content that a statement of SQLite writes; None if it writes none.

    Raises:
        StoreError: It writes content in a form that is not understood.
    """
    if sql == CLEAR_NAMES:
        return None
    text, keys = numbered(sql)
    inserting = _INSERT.match(text)
    if inserting:
        return _inserting(inserting, text, keys, tables)
    updating = _UPDATE.match(text)
    if updating:
        return _updating(updating, keys)
    for writes in _WRITES.finditer(text):
        if writes[1] in _TABLES:
            raise _not_understood(writes[1])
    return None


def sources_of(described: pq.abc.PGresult, tables: Mapping[str, Table]) -> tuple[Source, ...]:
    """The columns of a prepared statement's rows that may hold content."""
    by_oid = {table.oid: (name, table) for name, table in tables.items()}
    origins: list[tuple[str, str] | None] = []
    for place in range(described.nfields):
        name, table = by_oid.get(described.ftable(place), ("", None))
        number = described.ftablecol(place)
        known = table is not None and number in table.numbers
        origins.append((name, table.columns[table.numbers.index(number)]) if known and table is not None else None)
    places = {origin: place for place, origin in reversed(list(enumerate(origins))) if origin is not None}
    found = []
    for place, origin in enumerate(origins):
        if described.ftype(place) not in {TEXT, BYTEA}:
            continue
        if origin is None:
            found.append(Source(place, None, (), None))
        elif origin in BY_NAME:
            column = BY_NAME[origin]
            row = [places.get((column.table, one), -1) for one in ROWS.get(column.table, ())]
            version = places.get(("memories", "row_key"))
            if column.table != "contents" and column.table not in PASSAGES:
                version = None
            found.append(Source(place, column, tuple(row) if row and min(row) >= 0 else (), version))
    return tuple(found)


def _inserting(match: re.Match[str], text: str, keys: tuple[Key, ...], tables: Mapping[str, Table]) -> Writing | None:
    table = match[1]
    columns = tuple(match[2].split(", ")) if match[2] else tables[table].columns if table in tables else ()
    if table not in _TABLES:
        return None
    _check_names(table, columns)
    content = [BY_NAME[table, name] for name in columns if (table, name) in BY_NAME]
    barred = bool(set(columns) & set(REFUSED.get(table, ())))
    if not content and not barred:
        return None
    replacing = _ON_CONFLICT.search(text)
    if match[3] != "VALUES" or (replacing and not _repeats(table, replacing[1])):
        raise _not_understood(table)
    targets: list[Target] = []
    versions: list[tuple[Key, Key]] = []
    refused: list[tuple[str, Key]] = []
    for values in _tuples(text[match.end() :]):
        if len(values) != len(columns):
            raise _not_understood(table)
        given = dict(zip(columns, values, strict=True))
        if barred:
            bank = _key(given.get("bank_key"), keys)
            if bank is None:
                raise _refusal(table)
            refused.append((table, bank))
        if table == "memories":
            versions.append((_needed(given["row_key"], keys, table), _needed(given["bank_key"], keys, table)))
        targets += [_target(column, given, keys) for column in content if given[column.name] not in _NOTHING]
    return Writing(tuple(targets), tuple(versions), tuple(refused))


def _target(column: Column, given: Mapping[str, str], keys: tuple[Key, ...]) -> Target:
    table = column.table
    bank = _key(given.get("bank_key"), keys)
    if bank is None and table != "contents" and table not in PASSAGES:
        raise _not_understood(table)
    row = () if column.is_digest else tuple(_needed(given[one], keys, table) for one in ROWS[table])
    unless = _key(given.get(_OUTLIVES), keys)
    return Target(column, _needed(given[column.name], keys, table), row, bank, unless)


def _updating(match: re.Match[str], keys: tuple[Key, ...]) -> Writing | None:
    table, conditions = match[1], match[3]
    if table not in _TABLES:
        return None
    changes = {name: value for name, _, value in [one.partition(" = ") for one in _split(match[2])]}
    _check_names(table, changes)
    if match[2].count("(") != match[2].count(")"):
        # The condition is that of a part of it.
        raise _not_understood(table)
    if set(changes) & set(REFUSED.get(table, ())):
        raise _refusal(table)
    content = [BY_NAME[table, name] for name in changes if (table, name) in BY_NAME]
    targets = []
    for column in content:
        if changes[column.name] in _NOTHING:
            continue

        def named(name: str) -> Key:
            found = re.search(rf"\b{name} = (\$\d+)", conditions)
            return _needed(found[1] if found else "", keys, table)

        row = () if column.is_digest else tuple(named(one) for one in ROWS[table])
        targets.append(Target(column, _needed(changes[column.name], keys, table), row, named("bank_key"), None))
    return Writing(tuple(targets)) if targets else None


def _check_names(table: str, names: Iterable[str]) -> None:
    """Refuse columns that are not named one by one, in the form of the lists of columns."""
    if not all(_NAME.fullmatch(name) for name in names):
        raise _not_understood(table)


def _repeats(table: str, changes: str) -> bool:
    """True if an upsert changes content to that of the new row alone."""
    named = [one.partition(" = ") for one in _split(changes)]
    return all(
        _NAME.fullmatch(name) and ((table, name) not in BY_NAME or value == f"excluded.{name}")
        for name, _, value in named
    )


def _tuples(text: str) -> list[list[str]]:
    """The rows of values at the beginning of a text."""
    rows, start = [], text.find("(")
    while start >= 0 and not text[:start].strip(" ,"):
        end = _closing(text, start)
        rows.append(_split(text[start + 1 : end]))
        text = text[end + 1 :]
        start = text.find("(")
    return rows


def _closing(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place
    return len(text)


def _split(text: str) -> list[str]:
    """Parts of a list between commas that are in no parentheses."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and not depth:
            parts.append(text[begin:place].strip())
            begin = place + 1
    return [*parts, text[begin:].strip()]


def _key(value: str | None, keys: tuple[Key, ...]) -> Key | None:
    match = _VALUE.fullmatch(value or "")
    return keys[int(match[1]) - 1] if match else None


def _needed(value: str, keys: tuple[Key, ...], table: str) -> Key:
    key = _key(value, keys)
    if key is None:
        raise _not_understood(table)
    return key


def _not_understood(table: str) -> StoreError:
    return StoreError(f"a statement writes content into {table} in a form that cannot be sealed; nothing was changed")


def _refusal(table: str) -> FailedPrecondition:
    return FailedPrecondition(
        "a server that encrypts banks keeps no names of entities, by which content could be read without the key;"
        " leave out entities and the entity graph",
        metadata={"table": table},
    )
