"""A store that is copied from SQLite to PostgreSQL and back is the one that it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from astrocyte.api.requests import CreateBank, Forget, GetMemory, ListAuditEvents, Recall, Retain, UpdateMemory
from astrocyte.app import App
from astrocyte.cli import cli
from astrocyte.config import Settings
from astrocyte.errors import FailedPrecondition, RateLimited, StoreError
from astrocyte.model import ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.stores.postgres.engine.connections import WRITING_LOCK
from astrocyte.stores.transfer import PostgresSide, Row, SqliteSide, postgres_side, sqlite_side, transfer
from doubles.stages import ME
from external import postgres


def rows_of(side: SqliteSide) -> dict[str, list[tuple[object, ...]]]:
    return {name: list(side.read(name, columns, key)) for name, (columns, key) in side.tables().items()}


async def fill(settings: Settings) -> tuple[str, str]:
    """A bank with history; ids of a memory that stays and of one that was forgotten."""
    app = App(settings)
    call = app.backend.call
    try:
        await call(ME, CreateBank("b"))
        kept = await call(ME, Retain("b", RetainItem("Ada Lovelace met Charles Babbage in London", tags=("meeting",))))
        gone = await call(ME, Retain("b", RetainItem("The ferry to Oslo leaves at noon", metadata={"n": 1.5})))
        assert kept.memory_id
        assert gone.memory_id
        await call(
            ME, UpdateMemory("b", MemoryUpdate(kept.memory_id, frozenset({"content"}), "Ada met Babbage — twice"))
        )
        await call(ME, Forget("b", ForgetSelector(memory_ids=(gone.memory_id,))))
        return kept.memory_id, gone.memory_id
    finally:
        await app.close()


@pytest.mark.timeout(240)
async def test_a_store_goes_there_and_back(tmp_path: Path) -> None:
    with postgres.schema() as schema:
        config = tmp_path / "astrocyte.yaml"
        store = f"store:\n  dsn: {postgres.address()!r}\n  schema_name: {schema}\n"
        config.write_text(f"data_dir: {tmp_path / 'data'}\n{store}")
        kept, _ = await fill(Settings.from_mapping({"data_dir": str(tmp_path / "data")}))
        with sqlite_side(tmp_path / "data", reads=True) as side:
            # As if further holds had been placed and deleted: their keys are not given again.
            side._connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('holds', 70)")
            before = rows_of(side)
            numbers = {name: last for name, last in side.numbers().items() if last}
        there = CliRunner().invoke(cli, ["--config", str(config), "migrate-store", "sqlite", "postgres"])
        assert there.exit_code == 0, there.output
        with postgres_side(postgres.address(), schema, 5.0) as moved:
            assert moved.numbers().items() >= numbers.items()
        again = CliRunner().invoke(cli, ["--config", str(config), "migrate-store", "sqlite", "postgres"])
        assert again.exit_code != 0
        assert "the target is not empty" in again.output

        config.write_text(f"data_dir: {tmp_path / 'back'}\n{store}")
        back = CliRunner().invoke(cli, ["--config", str(config), "migrate-store", "postgres", "sqlite"])
        assert back.exit_code == 0, back.output
        with sqlite_side(tmp_path / "back", reads=True) as side:
            assert rows_of(side) == before
            assert {name: last for name, last in side.numbers().items() if last} == numbers

        own = {"backend": "postgres", "dsn": postgres.address(), "schema_name": schema}
        app = App(Settings.from_mapping({"store": own}))
        try:
            call = app.backend.call
            assert (await call(ME, GetMemory("b", kept))).version == 2
            # Keys go on where they were, and the trail is whole.
            added = await call(ME, Retain("b", RetainItem("A new memory of the moved store")))
            hits = (await call(ME, Recall(RecallQuery("memory of the moved store", "b")))).hits
            assert added.memory_id in {hit.memory_id for hit in hits}
            assert (await call(ME, ListAuditEvents("b"))).events
        finally:
            await app.close()


class Forgetful(PostgresSide):
    """A target that does not hold what was written into it."""

    def read(self, table: str, columns: list[str], key: list[str]) -> Iterator[Row]:
        for row in super().read(table, columns, key):
            yield tuple("swordfish" if isinstance(value, str) else value for value in row)


async def test_a_target_that_differs_keeps_nothing(tmp_path: Path) -> None:
    with postgres.schema() as schema:
        await fill(Settings.from_mapping({"data_dir": str(tmp_path / "data")}))
        with (
            pytest.raises(StoreError, match="differs from what was read; nothing was kept") as told,
            sqlite_side(tmp_path / "data", reads=True) as source,
            postgres_side(postgres.address(), schema, 5.0) as target,
        ):
            transfer(source, Forgetful(target._driver, target._address))
        assert "swordfish" not in str(told.value)
        with postgres_side(postgres.address(), schema, 5.0) as target:
            left = {name for name, columns in target.tables().items() if list(target.read(name, *columns))}
        assert left == {"installation", "entity_graph_progress"}


async def test_a_target_with_rows_of_any_table_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with postgres.schema() as schema:
        await fill(Settings.from_mapping({"data_dir": str(tmp_path / "data")}))
        with postgres_side(postgres.address(), schema, 5.0) as target:
            target._driver.execute("INSERT INTO access_epochs VALUES ('default', 3)")
            before = list(target.read("installation", *target.tables()["installation"]))
        with (
            sqlite_side(tmp_path / "data", reads=True) as source,
            postgres_side(postgres.address(), schema, 5.0) as target,
        ):
            with pytest.raises(FailedPrecondition, match="it has rows in access_epochs; copy into an empty store"):
                transfer(source, target)
            assert list(target.read("installation", *target.tables()["installation"])) == before


async def test_a_text_that_the_database_cannot_hold_is_told_without_it(tmp_path: Path) -> None:
    with postgres.schema() as schema:
        await fill(Settings.from_mapping({"data_dir": str(tmp_path / "data")}))
        with sqlite_side(tmp_path / "data", reads=True) as source:
            source._connection.execute("UPDATE contents SET content = 'sword' || char(0) || 'fish'")
            with (
                pytest.raises(StoreError, match="cannot hold the character NUL") as told,
                postgres_side(postgres.address(), schema, 5.0) as target,
            ):
                transfer(source, target)
        assert "sword" not in str(told.value)


async def test_a_database_that_is_used_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.schema() as schema:
        own = {"backend": "postgres", "dsn": postgres.address(), "schema_name": schema, "busy_seconds": 0.5}
        app = App(Settings.from_mapping({"store": own}))
        with (
            pytest.raises(FailedPrecondition, match="1 servers use the database"),
            postgres_side(postgres.address(), schema, 5.0),
        ):
            pass
        app.start_purging()
        await app.close()
        with postgres_side(postgres.address(), schema, 5.0) as side:
            settings = dict(side._driver.execute("SELECT name, setting FROM pg_settings").fetchall())
            assert settings["idle_in_transaction_session_timeout"] == "0"
            assert settings["transaction_isolation"] == "repeatable read"
            # No server starts meanwhile.
            with pytest.raises(RateLimited, match="another process holds the lock"):
                App(Settings.from_mapping({"store": own}))
        monkeypatch.setattr("astrocyte.stores.transfer.WRITING_SECONDS", 1)
        with psycopg.connect(postgres.address(), autocommit=True) as writer:
            writer.execute("SELECT pg_advisory_lock(%s)", (WRITING_LOCK,))
            with (
                pytest.raises(FailedPrecondition, match="a server writes into the database"),
                postgres_side(postgres.address(), schema, 5.0),
            ):
                pass
