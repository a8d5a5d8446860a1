"""A store that is copied from SQLite to PostgreSQL and back is the one that it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import postgres
from astrocyte.api.requests import CreateBank, Forget, GetMemory, ListAuditEvents, Recall, Retain, UpdateMemory
from astrocyte.app import App
from astrocyte.cli import cli
from astrocyte.config import Settings
from astrocyte.model import ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.stores.transfer import SqliteSide, sqlite_side
from stages import ME


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
            before = rows_of(side)
        there = CliRunner().invoke(cli, ["--config", str(config), "migrate-store", "sqlite", "postgres"])
        assert there.exit_code == 0, there.output
        again = CliRunner().invoke(cli, ["--config", str(config), "migrate-store", "sqlite", "postgres"])
        assert again.exit_code != 0
        assert "the target is not empty" in again.output

        config.write_text(f"data_dir: {tmp_path / 'back'}\n{store}")
        back = CliRunner().invoke(cli, ["--config", str(config), "migrate-store", "postgres", "sqlite"])
        assert back.exit_code == 0, back.output
        with sqlite_side(tmp_path / "back", reads=True) as side:
            assert rows_of(side) == before

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
