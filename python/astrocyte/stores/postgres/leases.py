"""Leases of the servers of one database, by the clock of the database."""

from __future__ import annotations

import apsw

from astrocyte.stores.postgres.engine.sharing import KEEP_MS
from astrocyte.stores.sqlite.tables.leases import SqliteLeases

# As of SQLite, but what a server that cannot reach the database misses is kept for it.
_TRIM = (
    "DELETE FROM told WHERE place < (SELECT max(place) FROM told) AND told_at < ?"
    " AND place <= (SELECT min(heard) FROM workers WHERE until > ?)"
)


class PostgresLeases(SqliteLeases):
    """Implements `astrocyte.stores.sharing.Leases`; see there for what each method does."""

    def _trim(self, connection: apsw.Connection, now: int) -> None:
        """Delete what all servers that live have heard, and that is old."""
        connection.execute(_TRIM, (now - KEEP_MS, now))
