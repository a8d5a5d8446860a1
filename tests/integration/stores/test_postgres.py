"""Memories that are followed into PostgreSQL, and found with its help."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from astrocyte.api.requests import BatchRetain, Forget, GetBank, Recall, Retain, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import StoreError
from astrocyte.model import Caller, ForgetSelector, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.providers.storage.graph_protocol import AHEAD
from astrocyte.providers.storage.postgres import (
    PostgresDocumentStore,
    PostgresGraphStore,
    create_document_store,
    create_graph_store,
)
from external.postgres import address

pytestmark = pytest.mark.process

ANA = Caller("default", "user:ana")
SCHEMA = "integration"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    database = {"dsn": address(), "schema_name": SCHEMA}
    values = {
        "data_dir": str(tmp_path),
        "vector_store": "postgres",
        "vector_store_config": database,
        "document_store": "postgres",
        "document_store_config": database,
        "outside_stores": {"recall_seconds": 5},
    }
    app = App(Settings.from_mapping(values))
    yield app
    await app.gate.close()


async def settled(app: App) -> None:
    bank = await app.gate.call(ANA, GetBank("notes"))
    assert app.storage.external is not None
    await app.storage.external.confirm(bank, bank.position)


def rows(app: App, table: str) -> int:
    with psycopg.connect(address()) as connection:
        found = connection.execute(
            f"SELECT count(*) FROM {SCHEMA}.{table} WHERE starts_with(bank_id, %s)",  # noqa: S608 - names of this test
            (app.storage.store.following.installation,),
        ).fetchone()
    assert found is not None
    return int(found[0])


async def test_memories_go_out_are_found_and_are_erased(app: App) -> None:
    texts = ["The running lanterns are green.", "A kettle stands in the kitchen.", "Mara's secret is sesame."]
    results = await app.gate.call(ANA, BatchRetain("notes", [RetainItem(text, tags=("t",)) for text in texts]))
    await settled(app)
    assert (rows(app, "vectors"), rows(app, "documents")) == (3, 3)

    # "lantern ran" has no word of the memory as it stands there: PostgreSQL stems.
    found = await app.gate.call(ANA, Recall(RecallQuery("lantern runs", "notes", include_trace=True, tags=("t",))))
    assert found.hits[0].memory_id == results[0].memory_id
    assert {"vector_store", "document_store"} <= {arm.arm for arm in found.hits[0].arms}
    assert found.trace is not None
    assert found.trace.degraded == ""

    first = str(results[0].memory_id)
    await app.gate.call(ANA, UpdateMemory("notes", MemoryUpdate(first, frozenset({"content"}), content="An umbrella")))
    await settled(app)
    assert (rows(app, "vectors"), rows(app, "documents")) == (4, 4)

    secret = ForgetSelector(memory_ids=(str(results[2].memory_id),))
    await app.gate.call(ANA, Forget("notes", secret, compliance=True))
    assert (rows(app, "vectors"), rows(app, "documents")) == (3, 3)


async def test_another_language_fills_the_documents_anew(app: App, tmp_path: Path) -> None:
    await app.gate.call(ANA, Retain("notes", RetainItem("The running lanterns are green.")))
    await settled(app)
    await app.gate.close()
    values = app.settings.model_dump()
    values["document_store_config"]["language"] = "simple"
    again = App(Settings.from_mapping({key: values[key] for key in app.settings.model_fields_set}))
    again.start_purging()
    await settled(again)
    found = await again.gate.call(ANA, Recall(RecallQuery("run lantern", "notes")))
    assert "document_store" not in {arm.arm for arm in found.hits[0].arms}
    found = await again.gate.call(ANA, Recall(RecallQuery("lanterns", "notes")))
    assert "document_store" in {arm.arm for arm in found.hits[0].arms}
    await again.gate.close()


async def test_a_database_that_is_not_there_costs_nothing_but_its_list(tmp_path: Path) -> None:
    database = {"dsn": f"postgresql://nobody@/none?host={tmp_path}", "connect_seconds": 0.2}
    values = {"vector_store": "in_memory", "document_store": "postgres", "document_store_config": database}
    app = App(Settings.from_mapping({**values, "outside_stores": {"recall_seconds": 0.1}}))
    async with asyncio.timeout(10):
        await app.gate.call(ANA, Retain("notes", RetainItem("a lantern")))
        found = await app.gate.call(ANA, Recall(RecallQuery("lantern", "notes", include_trace=True)))
        assert found.trace is not None
        assert (len(found.hits), found.trace.degraded) == (1, "document_store")
        await app.gate.close()


async def test_a_graph_of_an_earlier_version_is_filled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"dsn": address(), "schema_name": "earlier"}
    with monkeypatch.context() as earlier:
        # The tables of mentions, with their indexes.
        earlier.setattr(PostgresGraphStore, "TABLES", PostgresGraphStore.TABLES[:4])
        old = create_graph_store(options)
        await old.advance("notes", 3)
        await old.close()
    store = create_graph_store(options)
    # Ahead of every bank, so that its server drops what there is.
    assert (await store.position("notes"), await store.graph_position("notes")) == (AHEAD, 0)
    await store.advance("notes", 4)
    await store.close()
    again = create_graph_store(options)
    assert await again.position("notes") == 4
    await again.close()


async def test_tables_of_a_newer_version_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"dsn": address(), "schema_name": "newer"}
    old = create_document_store(options)
    await old.advance("notes", 3)
    await old.close()
    with psycopg.connect(address()) as connection:
        connection.execute("UPDATE newer.kinds SET version = version + 1")
    store = create_document_store(options)
    with pytest.raises(StoreError, match="newer version"):
        await store.position("notes")
    assert not await store.health()
    # The control: for a store of that version nothing is wrong.
    monkeypatch.setattr(PostgresDocumentStore, "TABLES", (*PostgresDocumentStore.TABLES, "SELECT 1"))
    assert await store.position("notes") == 3
    await store.close()
