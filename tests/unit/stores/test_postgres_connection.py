"""A connection to PostgreSQL whose server ends the session within a commit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from psycopg import pq

from astrocyte.errors import Unavailable
from astrocyte.stores.postgres.engine.connection import Connection


class _Result:
    """The answer of a server to a statement, with an error of a severity."""

    def __init__(self, status: pq.ExecStatus, severity: bytes = b"", state: bytes = b"") -> None:
        self.status = status
        self.command_status = b"COMMIT"
        self._fields = {
            pq.DiagnosticField.SEVERITY_NONLOCALIZED: severity,
            pq.DiagnosticField.SQLSTATE: state,
        }

    def error_field(self, field: pq.DiagnosticField) -> bytes | None:
        return self._fields[field] or None


class _Driver:
    """A connection that stands, though its server has said that it ends."""

    def __init__(self, result: _Result) -> None:
        self.closed = False
        self.pgconn = SimpleNamespace(
            exec_=lambda _: result, status=pq.ConnStatus.OK, transaction_status=pq.TransactionStatus.INTRANS
        )

    def close(self) -> None:
        self.closed = True


def _connection(driver: _Driver, doubts: list[bool]) -> Connection:
    connection = Connection(lambda: cast("psycopg.Connection[Any]", driver), {})
    connection.on_doubt = lambda: doubts.append(True)
    return connection


@pytest.mark.parametrize("severity", [b"FATAL", b"PANIC"])
def test_a_session_that_ends_with_its_commit_leaves_a_doubt(severity: bytes) -> None:
    driver, doubts = _Driver(_Result(pq.ExecStatus.FATAL_ERROR, severity, b"57P01")), list[bool]()
    connection = _connection(driver, doubts)
    with pytest.raises(Unavailable, match="whether this write was stored is not known"):
        connection.command("COMMIT")
    assert doubts == [True]
    assert driver.closed
    assert not connection.in_transaction


def test_an_error_of_a_commit_in_a_session_that_goes_on_leaves_none() -> None:
    driver, doubts = _Driver(_Result(pq.ExecStatus.FATAL_ERROR, b"ERROR", b"57P05")), list[bool]()
    with pytest.raises(Unavailable) as refused:
        _connection(driver, doubts).command("COMMIT")
    assert "not known" not in refused.value.message
    assert doubts == []
    assert not driver.closed


def test_an_end_outside_of_a_commit_leaves_none() -> None:
    driver, doubts = _Driver(_Result(pq.ExecStatus.FATAL_ERROR, b"FATAL", b"57P01")), list[bool]()
    with pytest.raises(Unavailable) as refused:
        _connection(driver, doubts).command("SAVEPOINT one")
    assert "not known" not in refused.value.message
    assert doubts == []
