"""Keys of encrypted banks: lost ones, those of others, and those that end with their banks."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from astrocyte.api.requests import (
    CreateBank,
    CreateObservation,
    DeleteBank,
    Forget,
    GetBank,
    GetMemory,
    Recall,
    Retain,
)
from astrocyte.app import App
from astrocyte.errors import (
    AlreadyExists,
    BankNotFound,
    ConfigError,
    FailedPrecondition,
    StoreError,
)
from astrocyte.model import (
    ForgetSelector,
    RecallQuery,
    RetainItem,
)
from astrocyte.stores.postgres.engine.connections import WRITING_LOCK
from astrocyte.stores.sealing.cipher import SECRET_BYTES
from astrocyte.stores.sealing.key_stores import KeyDirectory
from astrocyte.stores.sealing.keyring import DIGEST_BYTES
from doubles.stages import ME
from external.postgres_process import PostgresProcess, postgres_folder
from harness.sealed_banks import bank_of, opened, settings_of

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

MASTER = "5f" * 32


async def test_a_lost_key_fails_its_bank_alone(database: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    async with opened(database, keys) as app:
        await app.backend.call(ME, CreateBank("lost"))
        lost = {path.name for path in keys.iterdir()}
        kept = (await app.backend.call(ME, Retain("lost", RetainItem("The ferry leaves at noon")))).memory_id
        await app.backend.call(ME, Retain("other", RetainItem("Mara plays the oboe")))
    (path,) = [keys / name for name in lost if name != "check.key"]
    saved = path.read_bytes()
    path.unlink()
    async with opened(database, keys) as app:
        call = app.backend.call
        assert (await call(ME, GetBank("lost"))).bank_id == "lost"
        for request in (
            GetMemory("lost", str(kept)),
            Recall(RecallQuery("ferry", "lost")),
            Retain("lost", RetainItem("The boat lies in the harbour")),
        ):
            with pytest.raises(FailedPrecondition, match="the key of this bank is lost"):
                await call(ME, request)
        result = await call(ME, Recall(RecallQuery("oboe", "other")))
        assert len(result.hits) == 1
        # It comes back with its key.
        path.write_bytes(saved)
        assert (await call(ME, GetMemory("lost", str(kept)))).content == "The ferry leaves at noon"
        path.unlink()
    async with opened(database, keys) as app:
        assert await app.backend.call(ME, DeleteBank("lost")) == 1


async def test_keys_that_do_not_fit_are_refused_at_the_start(database: str, tmp_path: Path) -> None:
    keys, master = tmp_path / "keys", tmp_path / "master"
    master.write_text(MASTER)
    async with opened(database, keys, master_key_file=str(master)) as app:
        await app.backend.call(ME, Retain("a", RetainItem("The ferry leaves at noon")))
    secret = next(path for path in keys.iterdir() if path.name != "check.key").read_bytes()
    assert len(secret) > SECRET_BYTES + DIGEST_BYTES
    for wrong in ({"master_key": "00" * 32}, {}):
        with pytest.raises(ConfigError, match="master key that does not fit"):
            App(settings_of(database, keys, **wrong))
    with pytest.raises(ConfigError, match="64 hexadecimal digits"):
        App(settings_of(database, keys, master_key="short"))
    with pytest.raises(ConfigError, match=r"set store\.encryption as it was set"):
        App(settings_of(database, None))
    # As of a volume that is not mounted; nothing is left there that would look like keys.
    for _ in range(2):
        with pytest.raises(ConfigError, match="there is no key where"):
            App(settings_of(database, tmp_path / "elsewhere", master_key=MASTER))
    assert list((tmp_path / "elsewhere").iterdir()) == []
    async with opened(database, keys, master_key=MASTER) as app:
        assert len((await app.backend.call(ME, Recall(RecallQuery("ferry", "a")))).hits) == 1


async def test_banks_of_before_stay_readable_and_servers_without_keys_are_kept_out(
    database: str, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    async with opened(database, None) as plain:
        await plain.backend.call(ME, Retain("before", RetainItem("The ferry leaves at noon")))
        with pytest.raises(FailedPrecondition, match=r"servers without store\.encryption"):
            App(settings_of(database, keys))
    async with opened(database, keys) as app:
        call = app.backend.call
        assert len((await call(ME, Recall(RecallQuery("ferry", "before")))).hits) == 1
        await call(ME, Retain("before", RetainItem("Mara plays the oboe")))
        await call(ME, Retain("after", RetainItem("Mara plays the cello")))
        with psycopg.connect(database) as connection:
            rows = connection.execute("SELECT content FROM astrocyte.contents ORDER BY row_key").fetchall()
        assert [row[0] for row in rows[:2]] == ["The ferry leaves at noon", "Mara plays the oboe"]
        assert "cello" not in rows[2][0]
        assert set(json.loads(rows[2][0])) == {"~sealed1"}


async def test_no_server_keeps_the_key_of_a_deleted_bank(database: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    async with opened(database, keys) as one, opened(database, keys) as two:
        kept = (await one.backend.call(ME, Retain("a", RetainItem("The ferry leaves at noon")))).memory_id
        assert (await two.backend.call(ME, GetMemory("a", str(kept)))).content == "The ferry leaves at noon"
        bank = bank_of(two, "a")
        keyring = two.storage.store._keyring  # type: ignore[attr-defined]
        assert bank.key in keyring._ciphers
        await one.backend.call(ME, DeleteBank("a"))
        assert bank.key not in keyring._ciphers
        with pytest.raises(BankNotFound):
            keyring.cipher(bank.key)
        with pytest.raises(BankNotFound):
            await two.backend.call(ME, GetMemory("a", str(kept)))


async def test_a_key_that_was_not_destroyed_yet_goes_with_the_next_purge(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    async with opened(database, keys) as app:
        await app.backend.call(ME, Retain("a", RetainItem("The ferry leaves at noon")))
        with monkeypatch.context() as patch:

            def failing(_: object, __: str) -> None:
                raise FailedPrecondition("the directory of the keys failed")

            patch.setattr("astrocyte.stores.sealing.key_stores.KeyDirectory.destroy", failing)
            with pytest.raises(FailedPrecondition):
                await app.backend.call(ME, DeleteBank("a"))
        assert len(list(keys.iterdir())) == 2
        await app.storage.store.purge(0)
        assert [path.name for path in keys.iterdir()] == ["check.key"]


async def test_a_deletion_is_answered_again_when_its_key_is_gone(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    async with opened(database, keys) as app:
        call = app.backend.call
        await call(ME, Retain("a", RetainItem("The ferry leaves at noon")))
        kept = (await call(ME, Retain("other", RetainItem("Mara plays the oboe")))).memory_id
        await call(ME, Forget("other", ForgetSelector(memory_ids=(str(kept),))))
        with monkeypatch.context() as patch:

            def failing(_: object, __: str) -> None:
                raise StoreError("the directory of the keys failed")

            patch.setattr("astrocyte.stores.sealing.key_stores.KeyDirectory.destroy", failing)
            for _ in range(2):
                with pytest.raises(StoreError):
                    await call(ME, DeleteBank("a", request_id="once"))
            # What is due in another bank does not wait for it.
            monkeypatch.setattr(app.storage.store, "_keep_requests", 2**61)
            assert await app.storage.store.purge(2**60) == 1
            assert len(list(keys.iterdir())) == 3
        assert await call(ME, DeleteBank("a", request_id="once")) == 1
        assert len(list(keys.iterdir())) == 2


async def test_others_write_while_a_key_is_destroyed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free: list[bool] = []
    destroy = KeyDirectory.destroy

    def watched(keys: KeyDirectory, key_id: str) -> None:
        with psycopg.connect(database) as connection:
            rows = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (WRITING_LOCK,)).fetchall()
            free.append(rows == [(True,)])
        destroy(keys, key_id)

    async with opened(database, tmp_path / "keys") as app:
        call = app.backend.call
        monkeypatch.setattr(KeyDirectory, "destroy", watched)
        for bank_id in ("a", "b"):
            await call(ME, Retain(bank_id, RetainItem("The ferry leaves at noon")))
        await call(ME, DeleteBank("a"))
        with psycopg.connect(database, autocommit=True) as connection:
            # As of a deletion that a crash interrupted.
            connection.execute("UPDATE astrocyte.banks SET tenant = '' WHERE bank_id = 'b'")
        await app.storage.store.purge(0)
    assert free == [True, True]


async def test_a_paused_server_without_keys_leaves_encrypted_banks_alone(database: str, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    async with opened(database, None) as paused:
        await paused.backend.call(ME, CreateBank("plain"))
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("UPDATE astrocyte.workers SET until = 0")
        async with opened(database, keys) as app:
            await app.backend.call(ME, CreateBank("late"))
            memory_id = (await app.backend.call(ME, Retain("late", RetainItem("The ferry leaves at noon")))).memory_id
            bank, there = bank_of(app, "late"), len(list(keys.iterdir()))
            with psycopg.connect(database, autocommit=True) as connection:
                # As of an erasure that a crash interrupted.
                connection.execute(
                    "INSERT INTO astrocyte.erasures (bank_key, memory_ids, reason, principal, position)"
                    " VALUES (%s, %s, 'asked to', 'someone', %s)",
                    (bank.key, json.dumps([memory_id]), bank.position),
                )
            store = paused.storage.store
            with pytest.raises(FailedPrecondition, match="this server has no keys"):
                await store.commit(bank, [])
            await store.commit(bank_of(paused, "plain"), [])
            # Neither the note of the erasure nor the deleted bank holds up other banks.
            await store.purge(2**60)
            with pytest.raises(FailedPrecondition, match="cannot destroy that of the bank"):
                await store.delete_bank(bank, expected_etag=None)
            await store.purge(2**60)
            assert len(list(keys.iterdir())) == there
            await app.storage.store.purge(2**60)
            assert len(list(keys.iterdir())) == there - 1


@pytest.mark.parametrize("damaged", [False, True], ids=["missing", "damaged"])
async def test_erasures_of_other_banks_do_not_wait_for_a_lost_key(
    database: str, tmp_path: Path, *, damaged: bool
) -> None:
    keys = tmp_path / "keys"
    master = {"master_key": "ab" * 32} if damaged else {}
    async with opened(database, keys, **master) as app:
        call = app.backend.call
        kept: dict[str, str] = {}
        await call(ME, CreateBank("lost"))
        (path,) = [one for one in keys.iterdir() if one.name != "check.key"]
        await call(ME, CreateBank("other"))
        for bank_id in ("lost", "other"):
            kept[bank_id] = str((await call(ME, Retain(bank_id, RetainItem("The ferry leaves at noon")))).memory_id)
            await call(ME, CreateObservation(bank_id, "The ferry is punctual", [kept[bank_id]]))
            await call(ME, Forget(bank_id, ForgetSelector(memory_ids=(kept[bank_id],))))
        lost = bank_of(app, "lost")
        with psycopg.connect(database, autocommit=True) as connection:
            # As of an erasure that a crash interrupted.
            connection.execute("SET search_path = astrocyte")
            connection.execute(
                "INSERT INTO erasures (bank_key, memory_ids, reason, principal, position)"
                " VALUES (%s, %s, 'asked to', 'someone', %s)",
                (lost.key, json.dumps([kept["lost"]]), lost.position),
            )
    if damaged:
        path.write_bytes(bytes(len(path.read_bytes())))
    else:
        path.unlink()
    async with opened(database, keys, **master) as app:
        assert await app.storage.store.purge(2**60) <= 1
        for bank_id, left in (("lost", True), ("other", False)):
            _, found_ids = app.storage.store.select(
                bank_of(app, bank_id), ForgetSelector(scope="all"), include_forgotten=True
            )
            assert (kept[bank_id] in found_ids) is left
        await app.backend.call(ME, Retain("other", RetainItem("Mara plays the oboe")))
        await app.backend.call(ME, Forget("other", ForgetSelector(scope="all"), compliance=True, reason="asked to"))
        assert await app.backend.call(ME, DeleteBank("lost")) == 0


async def test_all_servers_have_the_same_keys(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path / "keys") as app:
        with pytest.raises(FailedPrecondition, match="with keys elsewhere"):
            App(settings_of(database, tmp_path / "others"))
        await app.backend.call(ME, CreateBank("a"))
        with pytest.raises(ConfigError, match="keys of another database"):
            App(settings_of(database, tmp_path / "others"))
        async with opened(database, tmp_path / "keys") as second:
            await second.backend.call(ME, Retain("a", RetainItem("The ferry leaves at noon")))


async def test_keys_in_a_database_of_their_own(database: str, server: PostgresProcess, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"on the server of store\.dsn"):
        App(settings_of(database, tmp_path, keys="postgres", dsn=server.dsn))
    with postgres_folder() as folder:
        other = PostgresProcess(folder, "keys")
        other.create()
        other.start()
        try:
            kept_in = {"keys": "postgres", "dsn": other.dsn, "master_key": MASTER}
            async with opened(database, tmp_path, **kept_in) as app:
                await app.backend.call(ME, Retain("a", RetainItem("The ferry leaves at noon")))
            rows = "SELECT count(*) FROM astrocyte_keys.bank_keys"
            assert other.execute(rows) == [(2,)]
            async with opened(database, tmp_path, **kept_in) as app:
                assert len((await app.backend.call(ME, Recall(RecallQuery("ferry", "a")))).hits) == 1
                await app.backend.call(ME, DeleteBank("a"))
            assert other.execute(rows) == [(1,)]
        finally:
            other.stop_immediately()


async def test_no_key_is_left_of_a_bank_that_was_not_made(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path / "keys") as app:
        call = app.backend.call
        await call(ME, CreateBank("a", request_id="once"))
        kept = {path.name for path in (tmp_path / "keys").iterdir()}
        assert len(kept) == 2
        with pytest.raises(AlreadyExists):
            await call(ME, CreateBank("a"))
        await call(ME, CreateBank("a", request_id="once"))
        assert {path.name for path in (tmp_path / "keys").iterdir()} == kept
