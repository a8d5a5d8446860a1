"""The prepared statements of one connection: each text of the store's is translated once and prepared once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from psycopg import pq

from astrocyte.stores.postgres.engine.dialect import Key, Table, array_kinds, translated
from astrocyte.stores.postgres.engine.exchange import Message, preparation
from astrocyte.stores.postgres.engine.sealing import Sealer, Source, Writing, sources_of, writing_of
from astrocyte.stores.postgres.engine.values import DUMPERS, Dumper, WrongTypeError
from astrocyte.stores.sqlite.rows import BankDigests

Bindings = Sequence[Any] | Mapping[str, Any]
# Sends messages; returns the answer to the last one, which describes a statement. None where the database refused it
# and may be asked in another way, which the second argument allows.
Prepare = Callable[[Sequence[Message], bool], pq.abc.PGresult | None]

# Prepared statements of a connection: the store has some hundred texts, and some that grow with their lists.
MOST_STATEMENTS = 1_024
# Its failure means something to the store, and is raised where it is run.
_AWAITED = "INSERT INTO memories "
_BINARY = 1


@dataclass(slots=True, eq=False)
class Statement:
    """A prepared statement: its name, where its values come from, and how they and its rows are converted.

    ``deferrable`` ones have no answer that is waited for.
    """

    name: bytes
    keys: tuple[Key, ...]
    dumpers: list[Dumper]
    formats: list[int]
    numbers: bool
    deferrable: bool
    # Of the driver, which exports it as a value.
    loader: Any = None
    # Columns of its rows that may hold sealed content.
    sources: tuple[Source, ...] = ()


class Statements:
    """Statements by their text, and by the types of their values where the text leaves these open.

    Args:
        tables: The tables of the database, by name.
        prepare: Of the connection.
        forget: Makes the database forget all prepared statements.
        sealer: Seals content; None if no bank is sealed.
        bank_of: Looks up the bank of a version.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        prepare: Prepare,
        forget: Callable[[], None],
        sealer: Sealer | None = None,
        bank_of: Callable[[int], int | None] | None = None,
    ) -> None:
        self._sealer = sealer
        self._bank_of = bank_of
        self._writings: dict[str, Writing | None] = {}
        self._tables = tables
        self._prepare = prepare
        self._forget = forget
        self._known: dict[object, Statement] = {}
        # Of the statements prepared so far: their names.
        self._count = 0

    def clear(self) -> None:
        """Forget all: the connection that had them is gone."""
        self._known.clear()

    def find(self, sql: str, bindings: Bindings) -> tuple[Statement, list[Any] | None]:
        """The prepared statement of a text, and its values."""
        if self._sealer is not None:
            bindings = self._sealed(self._sealer, sql, bindings)
        key: object = sql
        if "carray(" in sql:
            key = (sql, array_kinds(bindings))
        statement = self._known.get(key)
        if statement is None:
            statement = self._known[key] = self._made(sql, bindings, cast=False)
        try:
            return statement, _values(statement, bindings)
        except WrongTypeError:
            pass
        values = bindings.values() if isinstance(bindings, Mapping) else bindings
        exact = (key, *[type(value) for value in values])
        statement = self._known.get(exact)
        if statement is None:
            statement = self._known[exact] = self._made(sql, bindings, cast=True)
        return statement, _values(statement, bindings)

    def _made(self, sql: str, bindings: Bindings, *, cast: bool) -> Statement:
        if len(self._known) >= MOST_STATEMENTS:
            self._forget()
            self._known.clear()
        translation = translated(sql, bindings, self._tables, cast=cast)
        self._count += 1
        name = f"s{self._count}".encode()
        described = self._prepare(preparation(name, translation.text), not cast)
        if described is None:
            return self._made(sql, bindings, cast=True)
        dumpers = [DUMPERS[described.param_type(place)] for place in range(described.nparams)]
        return Statement(
            name,
            translation.keys,
            dumpers,
            [_BINARY] * len(dumpers),
            translation.numbers,
            deferrable=not described.nfields and not sql.startswith(_AWAITED),
            sources=() if self._sealer is None else sources_of(described, self._tables),
        )

    def _sealed(self, sealer: Sealer, sql: str, bindings: Bindings) -> Bindings:
        """The values with sealed content, and with digests of what is looked up."""
        try:
            writing = self._writings[sql]
        except KeyError:
            if len(self._writings) >= MOST_STATEMENTS:
                self._writings.clear()
            writing = self._writings[sql] = writing_of(sql, self._tables)
        if writing is not None:
            return cast("Bindings", sealer.sealed(writing, bindings, self._bank_of))
        if "carray(" in sql and not isinstance(bindings, Mapping):
            return [sealer.digests(value) if isinstance(value, BankDigests) else value for value in bindings]
        return bindings


def _values(statement: Statement, bindings: Any) -> list[Any] | None:  # noqa: ANN401 - by place or by name
    dumped: list[bytes | None] = []
    for key, dump in zip(statement.keys, statement.dumpers, strict=True):
        value = bindings[key]
        dumped.append(None if value is None else dump(value))
    return dumped or None
