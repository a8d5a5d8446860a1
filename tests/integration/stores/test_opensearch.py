"""Memories that are followed into OpenSearch, and found with its help."""

import asyncio
from pathlib import Path

import pytest

from astrocyte.api.requests import BatchRetain, Forget, GetBank, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, ForgetSelector, RecallQuery, RetainItem
from astrocyte.providers.registry import create_document_store
from external import opensearch_server

ANA = Caller("default", "user:ana")


@pytest.mark.timeout(600)
@pytest.mark.process
async def test_memories_go_out_are_found_and_are_erased(tmp_path: Path) -> None:
    values = {
        "data_dir": str(tmp_path),
        "document_store": "elasticsearch",
        "document_store_config": opensearch_server.options("integration"),
        "outside_stores": {"recall_seconds": 60, "write_seconds": 60, "erase_seconds": 60},
    }
    app = App(Settings.from_mapping(values))
    async with asyncio.timeout(300):
        texts = ["The running lanterns are green.", "A kettle stands in the kitchen.", "Mara's secret is sesame."]
        results = await app.gate.call(ANA, BatchRetain("notes", [RetainItem(text, tags=("t",)) for text in texts]))
        bank = await app.gate.call(ANA, GetBank("notes"))
        assert app.storage.external is not None
        await app.storage.external.confirm(bank, bank.position)
        # No word of the memory as it stands there: the server stems.
        query = RecallQuery("lantern runs", "notes", include_trace=True, tags=("t",))
        found = await app.gate.call(ANA, Recall(query))
        assert found.hits[0].memory_id == results[0].memory_id
        assert "document_store" in {arm.arm for arm in found.hits[0].arms}
        assert found.trace is not None
        assert found.trace.degraded == ""
        secret = ForgetSelector(memory_ids=(str(results[2].memory_id),))
        await app.gate.call(ANA, Forget("notes", secret, compliance=True))
        await app.gate.close()


async def test_a_server_that_is_not_there_is_not_well() -> None:
    # Port 9 answers nothing.
    store = create_document_store("opensearch", {"url": "http://127.0.0.1:9", "timeout_seconds": 1})
    assert store is not None
    assert not await store.health()
    await store.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "document_store_config.url: Field required"),
        ({"url": "localhost:9200"}, "url: String should match"),
        ({"url": "http://user:secret@localhost:9200"}, "url: String should match"),
        ({"url": "http://localhost:9200", "user": "a"}, "set both of user and password"),
        ({"url": "http://localhost:9200", "tls_roots_file": "/none"}, "the file does not exist"),
        ({"url": "http://localhost:9200", "indices": "a"}, "did you mean index"),
    ],
)
def test_options_that_are_wrong(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create_document_store("elasticsearch", options)
