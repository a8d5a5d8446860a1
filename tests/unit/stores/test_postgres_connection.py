"""A connection to PostgreSQL whose server ends the session within a commit, or warns about it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from psycopg import pq

from astrocyte.errors import Unavailable
from astrocyte.stores.postgres.engine import connection as connection_module
from astrocyte.stores.postgres.engine.address import Address
from astrocyte.stores.postgres.engine.connection import Connection


class _Result:
    """The answer of a server to a statement, with an error of a severity."""

    def __init__(self, status: pq.ExecStatus, severity: bytes = b"", state: bytes = b"") -> None:
        self.status = status
        self.command_status = b"COMMIT"
        self.command_tuples = 0
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
        self.handlers: list[Callable[[Any], None]] = []
        self.pgconn = SimpleNamespace(
            answer=result, status=pq.ConnStatus.OK, transaction_status=pq.TransactionStatus.INTRANS
        )

    def add_notice_handler(self, handler: Callable[[Any], None]) -> None:
        self.handlers.append(handler)

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each exchange has the answer of the driver."""
    monkeypatch.setattr(connection_module, "exchange", lambda pg, _messages, _silence: [pg.answer])


def _connection(driver: _Driver, doubts: list[bool]) -> Connection:
    address = SimpleNamespace(connect=lambda _: driver)
    connection = Connection(cast("Address", address), {})
    connection.on_doubt = lambda: doubts.append(True)
    return connection


@pytest.mark.parametrize("severity", [b"FATAL", b"PANIC"])
def test_a_session_that_ends_with_its_commit_leaves_a_doubt(severity: bytes) -> None:
    driver, doubts = _Driver(_Result(pq.ExecStatus.FATAL_ERROR, severity, b"57P01")), list[bool]()
    connection = _connection(driver, doubts)
    with pytest.raises(Unavailable, match="whether this write was stored is not known"):
        connection.execute("COMMIT")
    assert doubts == [True]
    assert driver.closed
    assert not connection.in_transaction


def test_an_error_of_a_commit_in_a_session_that_goes_on_leaves_none() -> None:
    driver, doubts = _Driver(_Result(pq.ExecStatus.FATAL_ERROR, b"ERROR", b"57P05")), list[bool]()
    with pytest.raises(Unavailable) as refused:
        _connection(driver, doubts).execute("COMMIT")
    assert "not known" not in refused.value.message
    assert doubts == []
    assert not driver.closed


def test_an_end_outside_of_a_commit_leaves_none() -> None:
    driver, doubts = _Driver(_Result(pq.ExecStatus.FATAL_ERROR, b"FATAL", b"57P01")), list[bool]()
    with pytest.raises(Unavailable) as refused:
        _connection(driver, doubts).execute("SAVEPOINT one")
    assert "not known" not in refused.value.message
    assert doubts == []


@pytest.mark.parametrize(("severity", "state", "doubtful"), [("WARNING", "01000", True), ("NOTICE", "00000", False)])
def test_a_commit_that_no_standby_confirmed_leaves_a_doubt(
    severity: str, state: str, doubtful: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, doubts = _Driver(_Result(pq.ExecStatus.COMMAND_OK)), list[bool]()
    notice = SimpleNamespace(severity_nonlocalized=severity, sqlstate=state)

    def warned(pg: Any, _messages: object, _silence: object) -> list[Any]:
        for handler in driver.handlers:
            handler(notice)
        return [pg.answer]

    monkeypatch.setattr(connection_module, "exchange", warned)
    connection = _connection(driver, doubts)
    if doubtful:
        with pytest.raises(Unavailable, match=r"no standby confirmed the commit.*is not known"):
            connection.execute("COMMIT")
    else:
        connection.execute("COMMIT")
    assert doubts == [True] * doubtful
    assert not driver.closed
