"""Leases of the processes that share a data directory, and which of them live."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from astrocyte.stores.sharing import Fence, Topic
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.sharing import Sharing, machine_clock
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import fetch

# Work that is done once for all processes: purges, the retry queue, checkpoints, derived rows, schedules.
BACKGROUND = "background"
# How long a process that says nothing is taken for alive. With a beat between two looks, one that was killed is
# replaced within 15 s; one that waits for a slow disk for less than this is not.
LEASE_MS = 10_000

_ALIVE = (
    "INSERT INTO workers VALUES (?1, ?2, ?3) ON CONFLICT (number) DO UPDATE"
    " SET heard = max(workers.heard, excluded.heard), until = excluded.until"
)
_TAKE = (
    "INSERT INTO leases VALUES (?1, ?2, 1, ?3) ON CONFLICT (name) DO UPDATE"
    " SET holder = excluded.holder, fence = leases.fence + 1, until = excluded.until"
)
# The newest row stays: the next place is one more than the largest.
_TRIM = (
    "DELETE FROM told WHERE place < (SELECT max(place) FROM told)"
    " AND place <= (SELECT min(heard) FROM workers WHERE until > ?)"
)


class SqliteLeases:
    """Implements `astrocyte.stores.sharing.Leases`; see there for what each method does."""

    def __init__(
        self, writer: Writer, connections: Connections, sharing: Sharing, clock: Callable[[], int] = machine_clock
    ) -> None:
        self._writer = writer
        self._connections = connections
        self._sharing = sharing
        self._clock = clock

    async def beat(self, heard: int) -> Fence | None:
        """Say that this process lives and has heard all up to a place; the fence where it holds the lease."""

        def run(transaction: Transaction) -> Fence | None:
            connection, now = transaction.connection, self._clock()
            own, until = self._sharing.worker, now + LEASE_MS
            connection.execute(_ALIVE, (own, heard, until))
            rows = fetch(connection, "SELECT holder, fence, until FROM leases WHERE name = ?", (BACKGROUND,))
            if rows and rows[0][0] != own and rows[0][2] > now:
                return None
            if rows and rows[0][0] == own:
                connection.execute("UPDATE leases SET until = ? WHERE name = ?", (until, BACKGROUND))
            else:
                connection.execute(_TAKE, (BACKGROUND, own, until))
            self._trim(connection, now)
            ((number,),) = fetch(connection, "SELECT fence FROM leases WHERE name = ?", (BACKGROUND,))
            return Fence(BACKGROUND, number)

        return await self._writer.submit(run, frees=True)

    def _trim(self, connection: apsw.Connection, now: int) -> None:
        """Delete what all processes that live have heard."""
        connection.execute(_TRIM, (now,))

    async def note_heard(self, place: int) -> None:
        """Say that this process has heard all up to a place, and done what it has to."""

        def run(transaction: Transaction) -> None:
            transaction.connection.execute(_ALIVE, (self._sharing.worker, place, self._clock() + LEASE_MS))

        await self._writer.submit(run, frees=True)

    async def leave(self) -> None:
        """Let the others take over at once."""

        def run(transaction: Transaction) -> None:
            connection, own = transaction.connection, self._sharing.worker
            connection.execute("DELETE FROM workers WHERE number = ?", (own,))
            connection.execute("UPDATE leases SET until = 0 WHERE name = ? AND holder = ?", (BACKGROUND, own))

        await self._writer.submit(run, frees=True)

    def last_erasure(self, bank_key: int) -> int:
        """The place of the newest commit that erased something in a bank."""
        sql = "SELECT coalesce(max(place), 0) FROM told WHERE bank = ? AND (flags & 1 <> 0 OR topic = ?)"
        place: int = self._connections.query(sql, (bank_key, Topic.DELETED.value))[0][0]
        return place

    def deaf(self, place: int) -> list[int]:
        """Numbers of the other processes that live and have not heard all up to a place."""
        rows = self._connections.query(
            "SELECT number FROM workers WHERE number <> ? AND heard < ? AND until > ? ORDER BY number",
            (self._sharing.worker, place, self._clock()),
        )
        return [number for (number,) in rows]
