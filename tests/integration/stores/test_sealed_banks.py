"""Encrypted banks: PostgreSQL has no byte of their content, and they answer as others do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from astrocyte.api.requests import (
    CreateBank,
    CreateMentalModel,
    CreateObservation,
    DeleteBank,
    ExportBank,
    Forget,
    GetMemory,
    ImportBank,
    Recall,
    Retain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.cli import cli
from astrocyte.config import Settings
from astrocyte.errors import (
    AstrocyteError,
    ConfigError,
    FailedPrecondition,
)
from astrocyte.model import (
    Entity,
    ForgetSelector,
    MemoryUpdate,
    ModelBlock,
    ModelSection,
    RecallQuery,
    RetainItem,
)
from astrocyte.stores.activity import Unanswered
from astrocyte.stores.graph.entity_graph import DerivedMention, DerivedVersion
from astrocyte.stores.queue import QueuedItem
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sealing.cipher import SECRET_BYTES
from astrocyte.stores.sealing.keyring import DIGEST_BYTES
from astrocyte.stores.transfer import postgres_side
from doubles.stages import ME
from external.postgres_process import PostgresProcess, postgres_folder
from harness.sealed_banks import bank_of, opened
from samples.memories import insert, memory

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

# Words by what holds them; none stands anywhere else.
KINDS = (
    "content", "passage", "replaced", "key", "value", "source", "speaker", "observed", "modelled", "queried", "queued",
    "forgotten", "answered",
)  # fmt: skip
WORDS = {kind: f"qzx{kind}xzq" for kind in KINDS}
LABELS = {kind: f"qzx{kind}xzq" for kind in ("tag", "session", "bank")}
BANK = LABELS["bank"]


async def fill(app: App) -> tuple[str, list[bytes]]:
    """Put words into all that a bank keeps; the id of a memory, and bytes that are derived from it."""
    call = app.backend.call
    await call(ME, CreateBank(BANK))
    sentences = "\n\n".join(f"In year {year} {WORDS['passage']} sails on. " * 20 for year in range(1990, 1996))
    item = RetainItem(
        f"{WORDS['content']} keeps the boat. {sentences}",
        tags=(LABELS["tag"],),
        metadata={WORDS["key"]: WORDS["value"]},
        session_id=LABELS["session"],
        speaker=WORDS["speaker"],
        source=WORDS["source"],
    )
    kept = (await call(ME, Retain(BANK, item, request_id="once"))).memory_id
    assert kept is not None
    gone = (await call(ME, Retain(BANK, RetainItem(f"{WORDS['forgotten']} keeps the lamp")))).memory_id
    await call(ME, UpdateMemory(BANK, MemoryUpdate(kept, frozenset({"content"}), content=f"{WORDS['replaced']} sails")))
    await call(ME, Forget(BANK, ForgetSelector(memory_ids=(str(gone),))))
    await call(ME, CreateObservation(BANK, f"{WORDS['observed']} sails", [kept]))
    block = ModelBlock(text=f"{WORDS['modelled']} sails", source_ids=(kept,))
    await call(ME, CreateMentalModel(BANK, "Boats", (ModelSection("s", "S", (block,)),), model_id="m"))
    store, bank = app.storage.store, bank_of(app, BANK)
    waiting = QueuedItem("mem_" + "9" * 32, "someone", RetainItem(f"{WORDS['queued']} waits", tags=(LABELS["tag"],)))
    answer = RequestKey("q", "retain", b"fingerprint of a text")
    await store.enqueue(bank, [waiting], limit=9, responses=[(answer, WORDS["answered"].encode())])
    asked = Unanswered(f"who is {WORDS['queried']}", 1, 1)
    await store.activity.note_unanswered(bank, {"q": asked}, most=9, is_fresh=lambda: True)
    record = store.version(bank, kept)
    assert record is not None
    assert record.memory.vector is not None
    return kept, [record.memory.vector[:64], record.memory.content_hash, b"fingerprint of a text"]


def found(server: PostgresProcess, needles: dict[str, bytes]) -> set[str]:
    """Those of these that any file of the database server holds, its write-ahead log included."""
    server.execute("CHECKPOINT")
    hit: set[str] = set()
    for path in server.folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            data = path.read_bytes() if path.is_file() else b""
            hit |= {name for name, needle in needles.items() if needle in data}
    return hit


def needles_of(words: dict[str, str], derived: list[bytes]) -> dict[str, bytes]:
    named = {f"derived {place}": one for place, one in enumerate(derived)}
    return {kind: word.encode() for kind, word in words.items()} | named


@pytest.mark.parametrize("encrypted", [True, False], ids=["encrypted", "control"])
async def test_no_file_of_the_database_ever_holds_content(encrypted: bool, tmp_path: Path) -> None:
    """The control run finds all of it, so that the scan looks where content would be."""
    keys = tmp_path / "keys" if encrypted else None
    with postgres_folder() as folder:
        server = PostgresProcess(folder)
        server.create()
        server.start()
        try:
            async with opened(server.dsn, keys) as app:
                _, derived = await fill(app)
                if not encrypted:
                    assert found(server, needles_of(WORDS, derived)) == set(needles_of(WORDS, derived))
                    return
                needles = needles_of(WORDS, derived)
                assert found(server, needles) == set()
                # Labels are readable, as the documentation says.
                assert found(server, needles_of(LABELS, [])) == set(LABELS)
                secrets = [path.read_bytes() for path in (tmp_path / "keys").glob("*.key") if path.stem != "check"]
                assert [len(secret) for secret in secrets] == [SECRET_BYTES + DIGEST_BYTES]
                await app.backend.call(ME, DeleteBank(BANK))
                assert [path.name for path in (tmp_path / "keys").iterdir()] == ["check.key"]
                assert found(server, needles | {"secret": secrets[0][:SECRET_BYTES]}) == set()
        finally:
            server.stop_immediately()


async def test_a_sealed_bank_answers_after_a_restart_as_before(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path / "keys") as app:
        kept, _ = await fill(app)
        # By its tag, which is readable, what waits is found.
        _, tagged = app.storage.store.select(bank_of(app, BANK), ForgetSelector(tags=(LABELS["tag"],)))
        assert sorted(tagged) == sorted([kept, "mem_" + "9" * 32])
        # The next application stores what waits.
        waiting = app.storage.store.queued(bank_of(app, BANK), after=0, limit=9)
        assert [one.item.content for one in waiting] == [f"{WORDS['queued']} waits"]
    async with opened(database, tmp_path / "keys") as app:
        call = app.backend.call
        got = await call(ME, GetMemory(BANK, kept))
        assert (got.content, got.speaker, got.source) == (
            f"{WORDS['replaced']} sails",
            WORDS["speaker"],
            WORDS["source"],
        )
        assert got.metadata == {WORDS["key"]: WORDS["value"]}
        result = await call(ME, Recall(RecallQuery(f"{WORDS['replaced']} sails", BANK)))
        assert kept in {hit.memory_id for hit in result.hits}
        store, bank = app.storage.store, bank_of(app, BANK)
        assert store.find_response("default", RequestKey("q", "retain", b"fingerprint of a text")) is not None
        assert [one.query for one in store.activity.unanswered(bank, 9)] == [f"who is {WORDS['queried']}"]
        assert (WORDS["source"], 1) in store.diagnosis.sources(bank)
        assert not (await asyncio.to_thread(store.verify)).damaged
        await call(ME, Forget(BANK, ForgetSelector(tags=(LABELS["tag"],)), compliance=True, reason="asked to"))
        assert store.activity.unanswered(bank, 9) == []
        with pytest.raises(AstrocyteError):
            await call(ME, GetMemory(BANK, kept))


async def test_references_to_other_banks_are_found(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path / "keys") as app:
        call = app.backend.call
        metadata = {"also_relevant_to": "b", "key": "value"}
        await call(ME, Retain("a", RetainItem("The ferry leaves at noon", metadata=metadata)))
        assert [one.named for one in app.storage.store.references()] == ["b"]


async def test_a_value_is_bound_to_its_place(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path / "keys") as app:
        call = app.backend.call
        first = (await call(ME, Retain("a", RetainItem("The ferry leaves at noon")))).memory_id
        other = (await call(ME, Retain("b", RetainItem("Mara plays the oboe")))).memory_id
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("SET search_path = astrocyte")
            connection.execute(
                "UPDATE contents SET content = (SELECT c.content FROM contents c JOIN memories m USING (row_key)"
                " WHERE m.memory_id = %s) WHERE row_key = (SELECT row_key FROM memories WHERE memory_id = %s)",
                (first, other),
            )
        store = app.storage.store
        assert store.memory(bank_of(app, "b"), str(other)) is None
        result = await call(ME, Recall(RecallQuery("Mara plays the oboe", "b")))
        assert result.hits == ()
        (damage,) = (await asyncio.to_thread(store.verify)).damaged
        assert damage.memory_id == other


async def test_names_of_entities_are_not_looked_up(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path / "keys") as app:
        bank = await app.storage.store.create_bank(
            "default", "e", display_name="", description="", embedding_model="test-model", dimensions=4
        )
        await insert(app.storage.store, bank, memory(1, "Ana sails", entities=(Entity("Ana", "PERSON"),)))
        got = app.storage.store.memory(bank, memory(1).memory_id)
        assert got is not None
        assert got.entities == (Entity("Ana", "PERSON"),)
        with psycopg.connect(database) as connection:
            assert connection.execute("SELECT count(*) FROM astrocyte.entities").fetchall() == [(0,)]
        mention = DerivedMention("person:ana", "PERSON", "Ana", 0, 3, 1.0, frozenset({"ana"}))
        with pytest.raises(FailedPrecondition, match="no names of entities"):
            await app.storage.store.graph.put([DerivedVersion(1, bank.key, (mention,), ())], through=1)
    scopes = {"observations": {"consolidation": {"scopes": ["bank", "entity:*"]}}}
    for section in (
        {"entity_graph": {"enabled": True}},
        {"pipeline": {"entity_extraction": {"mode": "rules"}}},
        scopes,
        {"banks": {"a": scopes}},
    ):
        own = {"backend": "postgres", "dsn": database, "encryption": {"enabled": True, "directory": str(tmp_path)}}
        with pytest.raises(ConfigError, match="cannot be encrypted"):
            App(Settings.from_mapping({"store": own, "entity_graph": {"enabled": False}, **section}))
    with pytest.raises(ConfigError, match=r"needs store\.backend: postgres"):
        App(Settings.from_mapping({"store": {"encryption": {"enabled": True}}, "data_dir": str(tmp_path / "data")}))


async def test_rows_of_encrypted_banks_are_not_copied(database: str, tmp_path: Path) -> None:
    async with opened(database, tmp_path / "keys"):
        pass
    with (
        pytest.raises(FailedPrecondition, match="export each bank"),
        postgres_side(database, "astrocyte", 5.0),
    ):
        pass
    config = tmp_path / "astrocyte.yaml"
    keys = f"{{enabled: true, directory: {tmp_path / 'keys'}}}"
    config.write_text(f"data_dir: {tmp_path}\nstore: {{dsn: '{database}', encryption: {keys}}}\n")
    refused = CliRunner().invoke(cli, ["--config", str(config), "migrate-store", "sqlite", "postgres"])
    assert refused.exit_code != 0
    assert "export each bank" in refused.output


async def test_a_bank_is_encrypted_by_its_export_and_import(database: str, tmp_path: Path) -> None:
    """The way for a bank of before, and the other way."""
    async with opened(database, None) as app:
        kept, _ = await fill(app)
    async with opened(database, tmp_path / "keys") as app:
        store = app.storage.store

        async def copied(bank_id: str, into: str) -> None:
            asked = ExportBank(bank_id, include_observations=True, include_mental_models=True)
            parts = [part async for part in app.backend.stream(ME, asked)]

            async def archive() -> AsyncIterator[bytes]:
                for part in parts:
                    yield part

            given = ImportBank(into, archive(), include_observations=True, include_mental_models=True)
            async for _ in app.backend.stream(ME, given):
                pass

        await copied(BANK, "sealed")
        await copied("sealed", "again")
        with psycopg.connect(database) as connection:
            sealed = connection.execute("SELECT count(*) FROM astrocyte.sealed_banks").fetchall()
        assert sealed == [(2,)]
        for bank_id in ("sealed", "again"):
            assert [one.content for one in store.versions(bank_of(app, bank_id), kept)] == [
                one.content for one in store.versions(bank_of(app, BANK), kept)
            ]
            result = await app.backend.call(ME, Recall(RecallQuery(f"{WORDS['replaced']} sails", bank_id)))
            assert kept in {hit.memory_id for hit in result.hits}
