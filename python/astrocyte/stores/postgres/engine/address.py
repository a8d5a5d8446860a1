"""The address of a database, and the making of connections."""

from __future__ import annotations

import threading
from time import monotonic
from typing import Any

import psycopg
import structlog
from psycopg import pq

from astrocyte.errors import StoreError
from astrocyte.stores.postgres.engine.dialect import Table
from astrocyte.stores.postgres.engine.dsn import checked_dsn
from astrocyte.stores.postgres.engine.errors import connecting, first_line, unavailable
from astrocyte.stores.postgres.engine.exchange import SilentError, command, exchange, failure

log = structlog.get_logger(__name__)

# Seconds between two attempts to connect after one that failed; callers in between are refused at once. An attempt may
# hold the event loop, so that the pause is at least as long as the attempt was.
PAUSE_SECONDS = 0.5
# Keepalives without an answer until a connection is given up.
PROBES = 3
# Subqueries without names came with it.
OLDEST_POSTGRES = 160_000

# Statements look up rows by keys, and each is prepared once, so that one plan has to serve every size of a table:
# loops over indexes, whatever the statistics say about tables that were empty a moment ago.
_PLANNER = (
    "SET plan_cache_mode = force_generic_plan",
    "SET enable_seqscan = off",
    "SET enable_hashjoin = off",
    "SET enable_mergejoin = off",
    "SET jit = off",
    "SET client_encoding = 'UTF8'",
    "SET standard_conforming_strings = on",
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET synchronous_commit = on",
)
_TABLES = (
    "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum),"
    " coalesce((SELECT array_agg(k.attname::text ORDER BY k.attnum) FROM pg_index i JOIN pg_attribute k"
    " ON k.attrelid = i.indrelid AND k.attnum = ANY (i.indkey) WHERE i.indrelid = c.oid AND i.indisprimary), '{}'),"
    " max(a.attname::text) FILTER (WHERE a.attidentity <> ''), c.oid::bigint, array_agg(a.attnum ORDER BY a.attnum)"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " WHERE c.relkind IN ('r', 'p') AND c.relnamespace = to_regnamespace(%s) GROUP BY c.oid, c.relname"
)


class Address:
    """The address of a database, and its connections.

    Args:
        dsn: Connection string of libpq.
        schema: Its tables are in this schema.
        connect_seconds: Timeout of a connection, and how long the database may say nothing where it has nothing to
            compute. A host that acknowledges nothing is given up after one to two of it.
        key: The setting that has the connection string, for errors.

    Raises:
        ConfigError: The connection string is none.
    """

    def __init__(self, dsn: str, schema: str, connect_seconds: float, *, key: str = "store.dsn") -> None:
        self.schema = schema
        self.connect_seconds = connect_seconds
        seconds = max(1, round(connect_seconds))
        silence = {
            "keepalives_idle": seconds,
            "keepalives_interval": max(1, seconds // PROBES),
            "keepalives_count": PROBES,
        }
        milliseconds = round(connect_seconds * 1_000)
        self._parameters: dict[str, Any] = {
            **checked_dsn(dsn, key),
            "connect_timeout": max(2, seconds),
            "application_name": "astrocyte",
            # A host that vanished without a word must not hold a thread for ever.
            "keepalives": 1,
            "tcp_user_timeout": milliseconds,
            "target_session_attrs": "read-write",
            **silence,
        }
        # Nor may this host, if it vanishes, hold the locks of its sessions.
        self._session = (
            f'SET search_path = "{schema}", pg_catalog',
            f"SET tcp_user_timeout = {milliseconds}",
            *[f"SET tcp_{name} = {value}" for name, value in silence.items()],
            *_PLANNER,
        )
        self._lock = threading.Lock()
        self._refused_until = 0.0

    def connect(self, limit_seconds: float = 0.0) -> psycopg.Connection[Any]:
        """Make a connection whose statements may take so many seconds; 0 for no limit.

        Raises:
            Unavailable: It cannot be made, or could not be a moment ago.
        """
        with self._lock:
            if monotonic() < self._refused_until:
                raise unavailable("it could not be reached a moment ago")
        began = monotonic()
        try:
            driver = psycopg.connect(**self._parameters, autocommit=True, prepare_threshold=None)
            self._set(driver, f"SET statement_timeout = {round(limit_seconds * 1_000)}", *self._session)
        except psycopg.Error as error:
            self.refuse(monotonic() - began)
            log.warning("database_unreachable", error=first_line(error))
            raise connecting(error) from error
        if driver.info.server_version < OLDEST_POSTGRES:
            driver.close()
            raise StoreError(f"PostgreSQL {driver.info.server_version // 10_000} is too old; 16 or newer is needed")
        return driver

    def refuse(self, seconds: float) -> None:
        """Make no connection for so long, and for `PAUSE_SECONDS` at least: the database was not reached."""
        with self._lock:
            self._refused_until = monotonic() + max(PAUSE_SECONDS, seconds)

    def tables(self, driver: psycopg.Connection[Any]) -> dict[str, Table]:
        """The tables of the schema by name."""
        rows = driver.execute(_TABLES, (self.schema,)).fetchall()
        return {
            name: Table(tuple(columns), tuple(key), identity, oid, tuple(numbers))
            for name, columns, key, identity, oid, numbers in rows
        }

    def _set(self, driver: psycopg.Connection[Any], *commands: str) -> None:
        """Run the settings of a session in one round trip."""
        try:
            results = exchange(driver.pgconn, [command(one) for one in commands], self.connect_seconds)
        except SilentError:
            driver.close()
            raise psycopg.OperationalError("the database does not answer") from None
        failed = failure(results)
        if failed is not None or len(results) < len(commands):
            driver.close()
            state = failed and failed.error_field(pq.DiagnosticField.SQLSTATE)
            raise psycopg.errors.lookup(state.decode())() if state else psycopg.OperationalError("the connection ended")
