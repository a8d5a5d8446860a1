"""`astrocyte verify` on PostgreSQL, while a server writes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from astrocyte.api.requests import DeleteBank, Forget, Retain
from astrocyte.cli import cli
from astrocyte.model import Bank, ForgetSelector, RetainItem
from astrocyte.stores.sqlite import damage
from doubles.stages import ME
from harness.sealed_banks import opened

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


def verified(database: str, tmp_path: Path, keys: Path | None = None, *options: str) -> Result:
    config = tmp_path / "astrocyte.yaml"
    sealed = "" if keys is None else f", encryption: {{enabled: true, directory: {keys}}}"
    graph = "" if keys is None else "entity_graph: {enabled: false}\n"
    config.write_text(f"store: {{backend: postgres, dsn: '{database}'{sealed}}}\n{graph}")
    return CliRunner().invoke(cli, ["--config", str(config), *options, "verify"])


async def test_damaged_rows_are_named_while_a_server_runs(database: str, tmp_path: Path) -> None:
    async with opened(database, None) as app:
        whole = (await app.backend.call(ME, Retain("a", RetainItem("The ferry leaves at noon")))).memory_id
        await app.backend.call(ME, Retain("b", RetainItem("Mara plays the oboe")))
        intact = await asyncio.to_thread(verified, database, tmp_path)
        assert (intact.exit_code, intact.output) == (0, "2 versions in 2 banks, none damaged\n")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "UPDATE astrocyte.contents SET content = 'The ferry leaves at nine' WHERE row_key ="
                " (SELECT row_key FROM astrocyte.memories WHERE memory_id = %s)",
                (whole,),
            )
        found = await asyncio.to_thread(verified, database, tmp_path, None, "--json")
        assert found.exit_code == 4
        told = json.loads(found.stdout)
        assert (told["versions"], told["agent_memory"], told["database"]) == (2, None, [])
        assert [(one["bank_id"], one["memory_id"], one["problem"]) for one in told["damaged"]] == [
            ("a", whole, damage.HASH)
        ]


@pytest.mark.parametrize("gone", ["memory", "bank"])
async def test_what_is_erased_meanwhile_is_not_damaged(
    gone: str, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database, None) as app:
        ids = [(await app.backend.call(ME, Retain("a", RetainItem(f"Ferry {n} leaves")))).memory_id for n in range(3)]
        await app.backend.call(ME, Retain("b", RetainItem("Mara plays the oboe")))
        with psycopg.connect(database, autocommit=True) as connection:
            # So that rows are read one by one.
            connection.execute(
                "UPDATE astrocyte.contents SET tags = '[' WHERE row_key ="
                " (SELECT row_key FROM astrocyte.memories WHERE memory_id = %s)",
                (ids[1],),
            )
        loop, keys_of, looks = asyncio.get_running_loop(), damage.keys_of, 0

        def slow(connection: Any, bank: Bank, after: int, limit: int) -> list[int]:
            nonlocal looks
            found = keys_of(connection, bank, after, limit)
            looks += 1
            if bank.bank_id == "a" and looks == 1:
                # Its snapshot is of before.
                request = Forget("a", ForgetSelector(memory_ids=(str(ids[0]),)), compliance=True)
                erasing = app.backend.call(ME, request if gone == "memory" else DeleteBank("a"))
                asyncio.run_coroutine_threadsafe(erasing, loop).result(60)
            return found

        monkeypatch.setattr(damage, "keys_of", slow)
        result = await asyncio.to_thread(app.storage.store.verify)
        assert looks > 1
        assert [one.memory_id for one in result.damaged] == ([ids[1]] if gone == "memory" else [])
        assert result.database == ()


async def test_a_bank_whose_key_is_lost_is_told_and_the_others_are_read(database: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    async with opened(database, keys) as app:
        await app.backend.call(ME, Retain("lost", RetainItem("The ferry leaves at noon")))
        lost = {path for path in keys.iterdir() if path.stem != "check"}
        await app.backend.call(ME, Retain("other", RetainItem("Mara plays the oboe")))
    (path,) = lost
    path.unlink()
    result = verified(database, tmp_path, keys)
    assert result.exit_code == 4
    assert result.output.splitlines()[0].startswith("bank lost of tenant default: the key of this bank is lost")
    assert result.output.endswith("1 versions in 2 banks, none damaged\n")
