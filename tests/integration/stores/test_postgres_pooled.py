"""Servers that reach their PostgreSQL through PgBouncer in session mode."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from astrocyte.errors import Unavailable
from astrocyte.stores.postgres import open_postgres_store
from external.ports import free_port
from external.postgres_process import PostgresProcess, postgres_folder, process_user
from external.proxies import needs
from samples.memories import insert, listed, make_bank, memory, memory_id

pytestmark = [pytest.mark.process, needs("pgbouncer")]

PATIENCE = 30.0
POLL_SECONDS = 0.05


@contextmanager
def pooled(database: PostgresProcess, folder: Path) -> Iterator[str]:
    """A pool before a database; yields its address."""
    port = free_port()
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(
        "[databases]\n"
        f"postgres = host=127.0.0.1 port={database.port} user=postgres\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = session\ndefault_pool_size = 40\n"
    )
    process = subprocess.Popen(
        ["pgbouncer", "--quiet", str(configuration)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=process_user(),
        cwd=folder,
    )
    dsn = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    try:
        end = time.monotonic() + PATIENCE
        while True:
            assert process.poll() is None
            try:
                psycopg.connect(dsn).close()
                break
            except psycopg.OperationalError:
                assert time.monotonic() < end
                time.sleep(POLL_SECONDS)
        yield dsn
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(300)
async def test_servers_behind_a_pool_see_each_others_writes_and_answer_nothing_without_it() -> None:
    with postgres_folder() as folder:
        database = PostgresProcess(folder)
        database.create()
        database.start()
        try:
            with pooled(database, folder) as dsn:
                one, two = open_postgres_store(dsn), open_postgres_store(dsn)
                bank = await make_bank(one)
                await insert(one, bank, memory(1))
                two.refresh()
                assert listed(two, bank) == [memory_id(1)]
                await insert(two, bank, memory(2))
                one.refresh()
                assert listed(one, bank) == [memory_id(1), memory_id(2)]
                one.close()
                two.close()
                third = open_postgres_store(dsn)
                assert listed(third, bank) == [memory_id(1), memory_id(2)]
            with pytest.raises(Unavailable):
                third.refresh()
            third.close()
        finally:
            database.stop_immediately()
