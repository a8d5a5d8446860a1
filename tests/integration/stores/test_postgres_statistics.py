"""Statistics of tables that have just grown: statements take the right index before autovacuum has looked."""

from __future__ import annotations

import psycopg

from astrocyte.stores.postgres import open_postgres_store
from astrocyte.stores.postgres.engine.address import Address
from astrocyte.stores.postgres.engine.dialect import translated
from astrocyte.stores.postgres.statistics import FIRST_ROWS
from astrocyte.stores.postgres.vacuum import TABLES
from astrocyte.stores.sqlite.commits import _BY_HASH
from astrocyte.stores.sqlite.rows import Array
from external import postgres
from samples.memories import insert, make_bank, memory

# As many as a call stores at once.
BATCH = 64


async def test_statistics_come_with_the_growth_of_a_table() -> None:
    with postgres.schema() as schema:
        store = open_postgres_store(postgres.address(), schema=schema)
        try:
            bank = await make_bank(store)
            # Planned for the empty table, and kept for the life of the connection.
            await insert(store, bank, memory(0))
            for start in range(1, 4 * FIRST_ROWS, BATCH):
                await insert(store, bank, *[memory(number) for number in range(start, start + BATCH)])
        finally:
            store.close()
        address = Address(postgres.address(), schema, 5.0)
        with address.connect() as connection:
            text = translated(_BY_HASH, (bank.key, Array((b"",))), address.tables(connection)).text
            counts = "SELECT relname, analyze_count FROM pg_stat_user_tables WHERE schemaname = current_schema()"
            made = dict(connection.execute(counts).fetchall())
            connection.execute(f"PREPARE by_hash AS {text}".encode())
            plan = connection.execute("EXPLAIN EXECUTE by_hash(1, ARRAY['']::bytea[])").fetchall()
    # At 256, at 512 and at 1024 rows, unless the one before was not done.
    assert {name for name, count in made.items() if count} == set(TABLES)
    assert 1 <= made["memories"] <= 3
    conditions = [line for (line,) in plan if "Index Cond" in line]
    assert any("content_hash" in line for line in conditions), plan


async def test_a_few_rows_are_not_looked_at() -> None:
    with postgres.schema() as schema:
        store = open_postgres_store(postgres.address(), schema=schema)
        try:
            bank = await make_bank(store)
            await insert(store, bank, *[memory(number) for number in range(FIRST_ROWS - 1)])
        finally:
            store.close()
        with psycopg.connect(postgres.address(), autocommit=True) as connection:
            counts = "SELECT sum(analyze_count)::integer FROM pg_stat_user_tables WHERE schemaname = %s"
            assert connection.execute(counts, (schema,)).fetchall() == [(0,)]
