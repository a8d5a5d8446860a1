"""Memories that are followed into Qdrant, and found with its help."""

import asyncio
from pathlib import Path

import pytest

from astrocyte.api.requests import BatchRetain, Forget, GetBank, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import ConfigError
from astrocyte.model import Caller, ForgetSelector, RecallQuery, RetainItem
from astrocyte.providers.registry import create_vector_store

ANA = Caller("default", "user:ana")


async def test_memories_go_out_are_found_and_are_erased(tmp_path: Path) -> None:
    values = {
        "data_dir": str(tmp_path),
        "vector_store": "qdrant",
        "vector_store_config": {"url": ":memory:"},
        "outside_stores": {"recall_seconds": 30},
    }
    app = App(Settings.from_mapping(values))
    async with asyncio.timeout(30):
        texts = ["The lanterns are green.", "A kettle stands in the kitchen.", "Mara's secret is sesame."]
        results = await app.gate.call(ANA, BatchRetain("notes", [RetainItem(text, tags=("t",)) for text in texts]))
        bank = await app.gate.call(ANA, GetBank("notes"))
        assert app.storage.external is not None
        await app.storage.external.confirm(bank, bank.position)
        query = RecallQuery("green lanterns", "notes", include_trace=True, tags=("t",))
        found = await app.gate.call(ANA, Recall(query))
        assert found.hits[0].memory_id == results[0].memory_id
        assert "vector_store" in {arm.arm for arm in found.hits[0].arms}
        assert found.trace is not None
        assert found.trace.degraded == ""
        secret = ForgetSelector(memory_ids=(str(results[2].memory_id),))
        await app.gate.call(ANA, Forget("notes", secret, compliance=True))
        await app.gate.close()


async def test_a_server_that_is_not_there_is_not_well() -> None:
    # Port 9 answers nothing.
    store = create_vector_store("qdrant", {"url": "http://127.0.0.1:9", "timeout_seconds": 1})
    assert store is not None
    assert not await store.health()
    await store.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "vector_store_config.url: Field required"),
        ({"url": "qdrant:6333"}, "expected http://host:port, https://host:port, or :memory:"),
        ({"url": ":memory:", "api_key_file": "/none"}, "api_key_file: Value error, the file does not exist"),
        ({"url": ":memory:", "collections": "a"}, "did you mean collection"),
    ],
)
def test_options_that_are_wrong(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        create_vector_store("qdrant", options)
