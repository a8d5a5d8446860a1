"""Failures of PostgreSQL as those that the store's code knows: of SQLite's classes, or the program's own.

Messages of the database may quote values, so only the class and the SQLSTATE of an error are told.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import psycopg
from psycopg import errors

from astrocyte.errors import AstrocyteError, DiskFull, StoreError, Unavailable
from astrocyte.stores.sqlite.engine.error_translation import translate

# Two characters of a SQLSTATE that say that the connection, the server or its resources are gone.
_GONE = frozenset({"08", "57", "53", "58"})
_DAMAGED = frozenset({"XX001", "XX002"})
_BUSY = frozenset({"40001", "40P01", "55P03"})
# Of a line in the log.
MOST_CHARS = 300


def unavailable(reason: str, *, unknown: bool = False) -> Unavailable:
    """The error of a call that cannot reach the database.

    It never promises that nothing was changed: a call may read after its commit.
    """
    what = "; whether this write was stored is not known" if unknown else ""
    return Unavailable(f"the database cannot be reached ({reason}){what}; try again")


def translated(state: str, *, lost: bool) -> Exception:  # noqa: PLR0911 - one for each kind
    """The error of a statement.

    Args:
        state: SQLSTATE; empty where the database did not answer.
        lost: The connection ended.
    """
    if state == "53100":
        return DiskFull("the disk of the database is full; nothing was changed; free space and try again")
    if state == "57014":
        return apsw.InterruptError("the statement took too long")
    if lost or state[:2] in _GONE:
        return unavailable(state or "the connection ended")
    if state == "42501":
        return StoreError("the role lacks a privilege in the database (SQLSTATE 42501); nothing was changed")
    if state in _DAMAGED:
        return apsw.CorruptError(f"SQLSTATE {state}")
    if state in _BUSY:
        return apsw.BusyError(f"SQLSTATE {state}")
    if state.startswith("23"):
        return apsw.ConstraintError(f"SQLSTATE {state}")
    if state in {"22P05", "22021"}:
        return StoreError("the database cannot hold the character NUL in a text; nothing was changed")
    return StoreError(f"the database failed (SQLSTATE {state or 'unknown'}); nothing was changed")


def connecting(error: Exception) -> AstrocyteError:
    """The error of a connection that cannot be made."""
    if isinstance(error, errors.Error) and error.sqlstate:
        return unavailable(f"SQLSTATE {error.sqlstate}")
    # Its text is for the log, not for callers: it names hosts and roles.
    return unavailable(type(error).__name__)


def first_line(error: psycopg.Error) -> str:
    """The class of a failure to connect, and the first line of its text, which names hosts and roles and no values."""
    line = str(error).partition("\n")[0] if isinstance(error, psycopg.OperationalError) else ""
    return f"{type(error).__name__}: {line[:MOST_CHARS]}".removesuffix(": ")


@contextmanager
def driver_failures() -> Iterator[None]:
    """Raise the program's error for a failure of the driver, without its text, which may quote rows.

    Raises:
        AstrocyteError: For any `psycopg.Error`.
    """
    try:
        yield
    except psycopg.Error as error:
        state = error.sqlstate or ""
        if not state and isinstance(error, psycopg.DataError):
            # The driver itself refuses texts with NUL.
            state = "22021"
        lost = not state and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        raise translate(translated(state, lost=lost)) from None
