"""Failures of PostgreSQL as those that the store's code knows: of SQLite's classes, or the program's own.

Messages of the database may quote values, so only the class and the SQLSTATE of an error are told.
"""

from __future__ import annotations

import apsw
from psycopg import errors

from astrocyte.errors import AstrocyteError, DiskFull, StoreError, Unavailable

# Two characters of a SQLSTATE that say that the connection, the server or its resources are gone.
_GONE = frozenset({"08", "57", "53", "58"})
_DAMAGED = frozenset({"XX001", "XX002"})
_BUSY = frozenset({"40001", "40P01", "55P03"})


def unavailable(reason: str, *, unknown: bool = False) -> Unavailable:
    """The error of a call that cannot reach the database."""
    what = "whether this write was stored is not known" if unknown else "nothing was changed"
    return Unavailable(f"the database cannot be reached ({reason}); {what}; try again")


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
    # The text of a failure to connect names hosts and roles, and no value of a row; the connection string is left out.
    return unavailable(type(error).__name__)
