"""The engine over PostgreSQL where something fails: connections, commits, privileges and vacuuming."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import apsw
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from astrocyte.errors import AstrocyteError, ConfigError, StoreError, Unavailable
from astrocyte.model import ChangeKind
from astrocyte.stores.postgres import PostgresStore, open_postgres_store, vacuum
from astrocyte.stores.postgres.engine import connections
from astrocyte.stores.postgres.engine.address import Address
from astrocyte.stores.postgres.engine.connections import WRITING_LOCK
from astrocyte.stores.postgres.engine.errors import connecting, driver_failures, first_line
from astrocyte.stores.postgres.engine.sharing import KEEP_MS, PostgresSharing
from astrocyte.stores.records import Insert, WriteOutcome
from astrocyte.stores.sqlite.deletion import bank_rows
from astrocyte.stores.sqlite.engine.data_directory import note_unclean
from astrocyte.stores.sqlite.engine.transaction import Transaction
from external import postgres
from samples.memories import RICH, current, insert, listed, make_bank, memory, memory_id

# The commit is lost together with its connection.
LOSING = """
    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(5); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER losing AFTER INSERT ON told DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION lose()
"""


@contextmanager
def stores(count: int) -> Iterator[tuple[psycopg.Connection[tuple[object, ...]], list[PostgresStore]]]:
    """Stores of one schema, and a connection that has it too."""
    with postgres.schema() as name:
        opened = [open_postgres_store(postgres.address(), schema=name) for _ in range(count)]
        try:
            with psycopg.connect(postgres.address(), autocommit=True) as connection:
                connection.execute(f'SET search_path = "{name}"'.encode())
                yield connection, opened
        finally:
            for store in opened:
                store.close()


async def test_a_commit_whose_connection_is_lost_is_in_doubt() -> None:
    with stores(1) as (connection, (store,)):
        bank = await make_bank(store)
        connection.execute(LOSING)
        sharing = store._sharing
        assert isinstance(sharing, PostgresSharing)
        assert not sharing._doubtful
        with pytest.raises(Unavailable, match="whether this write was stored is not known"):
            await store.commit(bank, [Insert(RICH)])
        assert sharing._doubtful
        connection.execute("DROP TRIGGER losing ON told")
        await store.commit(bank, [Insert(RICH)])
        store.refresh()
        assert not sharing._doubtful
        assert store.healthy


async def test_a_connection_that_is_lost_before_a_rollback_breaks_no_writer() -> None:
    with stores(1) as (connection, (store,)):

        def run(transaction: Transaction) -> None:
            pid = transaction.connection.execute("SELECT pg_backend_pid()").get
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            raise apsw.BusyError("a lock")

        with pytest.raises(Unavailable):
            await store._writer.submit(run)
        assert store.healthy
        await make_bank(store)


async def test_a_statement_that_is_sent_later_fails_its_own_job_alone() -> None:
    with stores(1) as (_, (store,)):
        bank = await make_bank(store)
        await insert(store, bank, memory(1, tags=("a",)))
        ((row,),) = store.iter_versions(bank)

        def run(transaction: Transaction) -> None:
            transaction.bank(bank).change(ChangeKind.UPDATED, memory_id(1))
            transaction.connection.execute("INSERT INTO tags VALUES (?, ?, ?)", (bank.key, "b", row.row_key))
            transaction.connection.execute("INSERT INTO tags VALUES (?, ?, ?)", (bank.key, "a", row.row_key))

        first, failed, last = await asyncio.gather(
            insert(store, bank, memory(2)),
            store._writer.submit(run),
            insert(store, bank, memory(3)),
            return_exceptions=True,
        )
        assert isinstance(failed, StoreError)
        assert [first, last] == [[WriteOutcome(memory_id(2), 2, 1)], [WriteOutcome(memory_id(3), 3, 1)]]
        assert listed(store, bank, tags=("b",)) == []
        assert len(listed(store, bank)) == 3


async def test_nothing_is_written_after_a_connection_was_lost_within_a_transaction() -> None:
    with stores(1) as (connection, (store,)):
        bank = await make_bank(store)

        def run(transaction: Transaction) -> None:
            pid = transaction.connection.execute("SELECT pg_backend_pid()").get
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
            for _ in range(2):
                with contextlib.suppress(Unavailable):
                    transaction.connection.execute("DELETE FROM banks")
                    transaction.connection.execute("SELECT 1")

        with pytest.raises(Unavailable):
            await store._writer.submit(run)
        assert current(store, bank) == bank
        await insert(store, bank, memory(1))


async def test_a_server_that_missed_what_others_wrote_stops() -> None:
    with stores(2) as (connection, (first, second)):
        bank = await make_bank(first)
        await insert(first, bank, memory(1))
        second.refresh()
        assert second.healthy
        for number in (2, 3, 4):
            await insert(first, bank, memory(number))
        connection.execute("DELETE FROM told WHERE place < (SELECT max(place) FROM told)")
        for _ in range(2):
            with pytest.raises(Unavailable, match="cut off from the database for too long"):
                second.refresh()
        assert (first.healthy, second.healthy) == (True, False)


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM told WHERE place = (SELECT max(place) FROM told)", "UPDATE told SET told_at = told_at + 1"],
    ids=["gone", "of another commit"],
)
async def test_a_server_whose_database_went_back_stops(sql: str) -> None:
    with stores(2) as (connection, (first, second)):
        bank = await make_bank(first)
        await insert(first, bank, memory(1))
        for _ in range(2):
            second.refresh()
        assert second.healthy
        # As a standby that lacks the last commit, and one that has committed something else in its place.
        connection.execute(sql.encode())
        for _ in range(2):
            with pytest.raises(Unavailable, match="the database has lost commits"):
                second.refresh()
        assert not second.healthy


async def test_what_was_told_is_kept_for_servers_that_come_back() -> None:
    with stores(1) as (connection, (store,)):
        bank = await make_bank(store)
        for number in (1, 2, 3):
            await insert(store, bank, memory(number))
        count = "SELECT count(*) FROM told"
        (before,) = connection.execute(count).fetchone() or (0,)
        assert isinstance(before, int)
        assert before >= 3
        assert store.leases is not None
        store.refresh()
        await store.leases.beat(store.heard)
        assert connection.execute(count).fetchone() == (before,)
        connection.execute("UPDATE told SET told_at = told_at - %s", (KEEP_MS + 1_000,))
        await store.leases.beat(store.heard)
        assert connection.execute(count).fetchone() == (1,)


async def test_waiting_for_another_writer_takes_nothing_of_a_statements_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WRITE_LIMIT_SECONDS", 0.3)
    with stores(1) as (connection, (store,)):
        await make_bank(store)
        connection.execute("SELECT pg_advisory_lock(%s)", (WRITING_LOCK,))
        timer = threading.Timer(1.0, connection.execute, ("SELECT pg_advisory_unlock_all()",))
        timer.start()
        began = time.monotonic()
        await make_bank(store, "other")
        assert time.monotonic() - began > 0.5
        timer.join()
        with pytest.raises(AstrocyteError, match="took too long"):
            await store._writer.submit(lambda transaction: transaction.connection.execute("SELECT pg_sleep(5)"))


def test_a_closed_store_answers_no_thread() -> None:
    with stores(1) as (_, (store,)):
        store.close()
        refused: list[str] = []

        def read() -> None:
            for _ in range(2):
                try:
                    store._connections.query("SELECT 1")
                except StoreError as error:
                    refused.append(error.message)

        reader = threading.Thread(target=read)
        reader.start()
        reader.join()
        assert refused == ["the store is closed"] * 2


@contextmanager
def role() -> Iterator[str]:
    """A role that may do nothing."""
    name = f"role_{uuid.uuid4().hex}"
    with psycopg.connect(postgres.address(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        try:
            yield name
        finally:
            connection.execute(f"DROP OWNED BY {name}".encode())
            connection.execute(f"DROP ROLE {name}".encode())


async def test_a_role_that_may_not_create_starts_on_tables_that_are_there() -> None:
    with postgres.schema() as schema, role() as name:
        dsn = make_conninfo(postgres.address(), user=name)
        with pytest.raises(StoreError, match="lacks a privilege"):
            open_postgres_store(dsn, schema=schema)
        open_postgres_store(postgres.address(), schema=schema).close()
        with pytest.raises(StoreError, match="lacks a privilege"):
            open_postgres_store(dsn, schema=schema)
        with psycopg.connect(postgres.address(), autocommit=True) as connection:
            connection.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {name}'.encode())
            for what in ("SELECT, INSERT, UPDATE, DELETE ON ALL TABLES", "ALL ON ALL SEQUENCES"):
                connection.execute(f'GRANT {what} IN SCHEMA "{schema}" TO {name}'.encode())
        store = open_postgres_store(dsn, schema=schema)
        try:
            await store.commit(await make_bank(store), [Insert(RICH)])
            # Tables of another role are left out by VACUUM, with a warning alone.
            with pytest.raises(StoreError, match="may not vacuum the table absences"):
                await store._writer.submit_sliced(store._cleaner.clean)
        finally:
            store.close()


def test_what_is_no_address_is_refused_without_its_secrets() -> None:
    with pytest.raises(ConfigError, match=r"store\.dsn") as refused:
        open_postgres_store("hunter2 is no address")
    assert "hunter2" not in str(refused.value)


def test_failures_of_the_driver_are_told_without_rows() -> None:
    with stores(1) as (connection, _):
        for statement, values in (
            ("INSERT INTO installation VALUES ('swordfish'), ('swordfish')", None),
            ("SELECT %s::bigint", ("swordfish",)),
            ("SELECT %s::text", ("sword\0fish",)),
        ):
            with pytest.raises(StoreError) as told, driver_failures():
                connection.execute(statement, values)
            assert "swordfish" not in str(told.value)
            assert (told.value.__cause__, told.value.__suppress_context__) == (None, True)


def test_the_first_line_of_a_failure_to_connect_is_for_the_log() -> None:
    error = psycopg.OperationalError("connection refused\n\tIs the server running?")
    assert first_line(error) == "OperationalError: connection refused"
    assert "refused" not in str(connecting(error))
    assert first_line(psycopg.ProgrammingError("a value")) == "ProgrammingError"


def test_both_ends_of_a_connection_look_whether_the_other_is_there() -> None:
    address = Address("postgresql://h/d?tcp_user_timeout=1", "s", 6.0)
    found = {name: value for name, value in address._parameters.items() if name.startswith(("keepalives", "tcp"))}
    assert found == {
        "keepalives": 1,
        "keepalives_idle": 6,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 6_000,
    }
    for text in ("idle = 6", "interval = 2", "count = 3"):
        assert f"SET tcp_keepalives_{text}" in address._session
    assert "SET tcp_user_timeout = 6000" in address._session


def test_every_table_is_vacuumed_or_has_nothing_to_erase() -> None:
    with stores(1) as (_, (store,)):
        tables = set(store._cleaner._connection._statements._tables)
    assert not set(vacuum.TABLES) & set(vacuum.KEPT_TABLES)
    assert {*vacuum.TABLES, *vacuum.KEPT_TABLES} == tables
    erased = {*bank_rows.WITH_VERSIONS, *(table.name for table in bank_rows.IN_SLICES), *bank_rows.AT_ONCE}
    assert erased <= set(vacuum.TABLES)


async def test_a_cleaning_vacuums_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with stores(1) as (connection, (store,)):

        async def needed() -> bool:
            return await store._writer.submit(lambda transaction: bool(transaction.connection.pragma("user_version")))

        await store._writer.submit(lambda transaction: note_unclean(transaction.connection, unclean=True))
        with monkeypatch.context() as patch:
            patch.setattr(vacuum, "TABLES", ("no_such_table",))
            with pytest.raises(StoreError, match="SQLSTATE 42P01"):
                await store._writer.submit_sliced(store._cleaner.clean)
        for failure in (apsw.InterruptError("too long"), RuntimeError("a bug")):

            def failing(sql: str, failure: Exception = failure) -> None:
                raise failure

            with monkeypatch.context() as patch:
                patch.setattr(store._cleaner._connection, "command", failing)
                with pytest.raises(StoreError, match="the database failed"):
                    await store._writer.submit_sliced(store._cleaner.clean)
        assert await needed()
        await store._writer.submit_sliced(store._cleaner.clean)
        assert not await needed()
        counts = "SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema() AND vacuum_count > 0"
        assert {name for (name,) in connection.execute(counts).fetchall()} == set(vacuum.TABLES)
