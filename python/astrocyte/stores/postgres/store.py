"""The store over PostgreSQL: the tables and statements of the SQLite store on another engine.

Servers share a database as worker processes share a data directory: each has its own indexes and follows what the
others commit (`astrocyte.pipelines.sharing`).
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

import apsw

from astrocyte.errors import AlreadyExists
from astrocyte.model import DEFAULT_PRINCIPAL, Bank
from astrocyte.stores.postgres import sealed_banks
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
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sealing.values import BankKeys
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.data_directory import Ballast
from astrocyte.stores.sqlite.engine.error_translation import translate
from astrocyte.stores.sqlite.engine.transaction import Clock
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.store import DEFAULTS, HOUR_MILLISECONDS, SqliteStore, system_clock
from astrocyte.stores.sqlite.tables import banks
from astrocyte.stores.sqlite.verification import Progress, Verification, verify_rows

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
    keyring: BankKeys | None = None,
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
        keyring: The keys of banks, by which new banks are sealed; closed with the store. None seals none.

    Raises:
        ConfigError: The connection string is none, or the database has sealed banks and there is no keyring.
        FailedPrecondition: Servers without a keyring use the database.
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
        keyring=keyring,
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
        keyring: BankKeys | None = None,
    ) -> None:
        self._keyring = keyring
        self._clock = clock
        self._keep_requests = round(request_keep_hours * HOUR_MILLISECONDS)
        self._closed = False
        self._lock = self._scrubber = None
        address = Address(dsn, schema, connect_seconds)
        with driver_failures(), address.connect() as driver:
            self.schema_version = migrate_postgres(driver, schema, load_postgres_migrations(), clock())
            tables = address.tables(driver)
            if keyring is not None:
                sealed_banks.begin_sealing(driver, keyring, busy_seconds)
        # The store's code is written for connections of this interface.
        connections = cast("Any", Connections(address, tables, busy_seconds, keyring))
        undo = contextlib.ExitStack()
        try:
            self._key_ids = sealed_banks.KeyIds(connections.apart(connect_seconds))
            undo.callback(self._key_ids.close)
            if keyring is not None:
                keyring.use(self._key_ids.find)
            sharing = self._sharing = self._servers = PostgresSharing(connections, address)
            undo.callback(sharing.close)
            if keyring is None:
                sealed_banks.check_unsealed(connections.writer)
            connections.writer.on_doubt = sharing.doubt
            sharing.follow(self._forget_key)
            writer = Writer(connections, Ballast(None, 0), clock=clock, waiting_limit=waiting_limit, sharing=sharing)
            self._cleaner = VacuumCleaner(writer, Connection(address, tables))
            leases = PostgresLeases(writer, connections, sharing, sharing.clock)
            self._assemble(connections, writer, cast("Any", self._cleaner), leases, hash_fits, guarded=True)
            self._statistics = Statistics(lambda: Connection(address, tables))
            writer.subscribe(self._statistics.on_commit, None)
        except BaseException as error:
            undo.close()
            connections.close(checkpoint=False)
            if isinstance(error, apsw.Error):
                raise translate(error) from error
            raise

    async def create_bank(  # noqa: PLR0913 - the signature of MemoryStore
        self,
        tenant: str,
        bank_id: str,
        *,
        display_name: str,
        description: str,
        embedding_model: str,
        dimensions: int,
        created_by: str = DEFAULT_PRINCIPAL,
        request: RequestKey | None = None,
    ) -> Bank:
        """Create a bank, with a key of its own where banks are sealed."""
        new = banks.NewBank(tenant, bank_id, display_name, description, embedding_model, dimensions, created_by)
        keyring = self._keyring
        if keyring is None:
            return await self._writer.submit(lambda transaction: banks.create(transaction, new, request))
        # Kept before the bank is there: no content is ever written under a key that may be lost.
        key = await asyncio.to_thread(keyring.new)
        used: list[int] = []

        def seal(bank_key: int) -> str:
            used.append(bank_key)
            keyring.give(bank_key, key)
            return key.key_id

        try:
            bank = await self._writer.submit(lambda transaction: banks.create(transaction, new, request, seal))
        except AlreadyExists:
            await asyncio.to_thread(keyring.destroy, key.key_id)
            raise
        # After any other failure the bank may be made yet, or have been made, and needs its key.
        if bank.key not in used:
            # An earlier, equal request made it.
            await asyncio.to_thread(keyring.destroy, key.key_id)
        return bank

    def _shred(self, bank_key: int) -> bool:
        """Destroy the key of a bank that was deleted, on the writer's thread."""
        if self._keyring is None:
            sealed_banks.check_without_key(self._writer.connection, bank_key)
            return False
        self._keyring.revoke(bank_key)
        return sealed_banks.shred(self._writer.connection, self._keyring, bank_key)

    def _forget_key(self, told: Told) -> None:
        if told.topic is Topic.DELETED and self._keyring is not None:
            self._keyring.revoke(told.bank)

    @property
    def outlasts_outages(self) -> bool:
        """True: a database that cannot be reached comes back, and this server with it."""
        return True

    @property
    def healthy(self) -> bool:
        """True if the store may accept writes once the database can be reached."""
        return self._writer.fault is None and not self._closed and not self._servers.missed

    def verify(self, progress: Progress | None = None) -> Verification:
        """Read every row. The database checks its own files."""
        return verify_rows(self._connections, self._hash_fits, progress)

    def _release(self) -> None:
        self._key_ids.close()
        if self._keyring is not None:
            self._keyring.close()
        self._statistics.close()
        self._cleaner.close()
        self._servers.close()
