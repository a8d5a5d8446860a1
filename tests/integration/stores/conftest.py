"""A server of PostgreSQL for each module, and a database for each test."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from external.postgres_process import PostgresProcess, postgres_folder


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresProcess]:
    with postgres_folder() as folder:
        process = PostgresProcess(folder)
        process.create()
        process.start()
        try:
            yield process
        finally:
            process.stop_immediately()


@pytest.fixture
def database(server: PostgresProcess, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of its own."""
    name = f"d{abs(hash(request.node.name)):x}"
    server.execute(f"CREATE DATABASE {name}")
    yield psycopg.conninfo.make_conninfo(server.dsn, dbname=name)
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")
