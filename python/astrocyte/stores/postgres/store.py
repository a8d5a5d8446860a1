"""The store over PostgreSQL: the tables and statements of the SQLite store on another engine.

Servers share a database as worker processes share a data directory: each has its own indexes and follows what the
others commit (`astrocyte.pipelines.sharing`).
"""

from __future__ import annotations

from typing import Any, cast

import apsw

from astrocyte.stores.postgres.engine.address import Address
from astrocyte.stores.postgres.engine.connection import Connection
from astrocyte.stores.postgres.engine.connections import Connections
from astrocyte.stores.postgres.engine.errors import driver_failures
from astrocyte.stores.postgres.engine.migrations import load_postgres_migrations, migrate_postgres
from astrocyte.stores.postgres.engine.sharing import PostgresSharing
from astrocyte.stores.postgres.leases import PostgresLeases
from astrocyte.stores.postgres.statistics import Statistics
from astrocyte.stores.postgres.vacuum import VacuumCleaner
from astrocyte.stores.quarantine import HashFits
from astrocyte.stores.sqlite.engine.data_directory import Ballast
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.engine.transaction import Clock
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.store import DEFAULTS, HOUR_MILLISECONDS, SqliteStore, system_clock
from astrocyte.stores.sqlite.verification import Verification, verify_rows

DEFAULT_SCHEMA = "astrocyte"


def open_postgres_store(  # noqa: PLR0913 - a setting each
    dsn: str,
    *,
    schema: str = DEFAULT_SCHEMA,
    clock: Clock = system_clock,
    waiting_limit: int = DEFAULTS.waiting_limit,
    busy_seconds: float = DEFAULTS.busy_seconds,
    connect_seconds: float = DEFAULTS.connect_seconds,
    request_keep_hours: float = DEFAULTS.request_keep_hours,
    hash_fits: HashFits | None = None,
) -> PostgresStore:
    """Open the store of a database, or create its tables.

    Args:
        dsn: Connection string of libpq; with several hosts, the one that takes writes is used.
        schema: Schema of the tables.
        clock: Milliseconds since the epoch; where it goes back, stored times stand still.
        waiting_limit: Writes that may wait before more are refused.
        busy_seconds: How long a commit waits for those of other servers.
        connect_seconds: Timeout of a connection; see `Address`.
        request_keep_hours: How long answers to request ids are kept.
        hash_fits: Tells whether a content hash fits; rows whose hash does not are damaged.

    Raises:
        ConfigError: The connection string is none.
        Unavailable: The database cannot be reached.
        SchemaTooNew: A newer version made its tables.
        StoreError: They are not this program's.
    """
    return PostgresStore(
        dsn,
        schema=schema,
        clock=clock,
        waiting_limit=waiting_limit,
        busy_seconds=busy_seconds,
        connect_seconds=connect_seconds,
        request_keep_hours=request_keep_hours,
        hash_fits=hash_fits,
    )


class PostgresStore(SqliteStore):
    """Implements `astrocyte.stores.protocols.MemoryStore`; see there. Made by `open_postgres_store`."""

    def __init__(  # noqa: PLR0913 - as `open_postgres_store`
        self,
        dsn: str,
        *,
        schema: str,
        clock: Clock,
        waiting_limit: int,
        busy_seconds: float,
        connect_seconds: float,
        request_keep_hours: float,
        hash_fits: HashFits | None,
    ) -> None:
        self._clock = clock
        self._keep_requests = round(request_keep_hours * HOUR_MILLISECONDS)
        self._closed = False
        self._lock = self._scrubber = None
        address = Address(dsn, schema, connect_seconds)
        with driver_failures(), address.connect() as driver:
            self.schema_version = migrate_postgres(driver, schema, load_postgres_migrations(), clock())
            tables = address.tables(driver)
        # The store's code is written for connections of this interface.
        connections = cast("Any", Connections(address, tables, busy_seconds))
        try:
            sharing = self._sharing = self._servers = PostgresSharing(connections, address)
            connections.writer.on_doubt = sharing.doubt
            writer = Writer(connections, Ballast(None, 0), clock=clock, waiting_limit=waiting_limit, sharing=sharing)
            self._cleaner = VacuumCleaner(writer, Connection(address, tables))
            leases = PostgresLeases(writer, connections, sharing, sharing.clock)
            self._assemble(connections, writer, cast("Any", self._cleaner), leases, hash_fits, guarded=True)
            self._statistics = Statistics(lambda: Connection(address, tables))
            writer.subscribe(self._statistics.on_commit, None)
        except BaseException as error:
            connections.close(checkpoint=False)
            if isinstance(error, apsw.Error):
                raise translate(error) from error
            raise

    @property
    def outlasts_outages(self) -> bool:
        """True: a database that cannot be reached comes back, and this server with it."""
        return True

    @property
    def healthy(self) -> bool:
        """True if the store may accept writes once the database can be reached."""
        return self._writer.fault is None and not self._closed and not self._servers.missed

    def verify(self) -> Verification:
        """Read every row. The database checks its own files."""
        return verify_rows(self._connections, self._hash_fits)

    def _release(self) -> None:
        self._statistics.close()
        self._cleaner.close()
        self._servers.close()
