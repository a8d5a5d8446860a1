"""Both clients against a real server at $ASTROCYTE_ADDRESS, and without one."""

from __future__ import annotations

import os
from pathlib import Path

import grpc
import pytest

import astrocyte_client
from astrocyte_client import AstrocyteError, BankNotFoundError, DeadlineExceededError, InvalidArgumentError
from astrocyte_client.v1 import memory_pb2

ADDRESS = os.environ.get("ASTROCYTE_ADDRESS", "")
server = pytest.mark.skipif(not ADDRESS, reason="ASTROCYTE_ADDRESS is not set: there is no server")


def items(bank: str) -> list[memory_pb2.StreamRetainRequest]:
    contents = ("Ines lives in Porto.", "Callum lives in Edinburgh.")
    return [
        memory_pb2.StreamRetainRequest(bank_id=bank, item=memory_pb2.RetainItem(content=content))
        for content in contents
    ]


@server
def test_retained_is_recalled_and_streamed() -> None:
    with astrocyte_client.connect(ADDRESS) as client:
        answers = list(client.stream_retain(items("python-tests")))
        assert [answer.HasField("result") for answer in answers] == [True, True]
        found = client.recall(bank_id="python-tests", query="where does Ines live?")
        assert found.hits[0].text == "Ines lives in Porto."
        assert next(iter(client.watch(bank_id="python-tests", after_position=0))).change.position == 1


@server
async def test_retained_is_recalled_and_streamed_in_asyncio() -> None:
    async with astrocyte_client.connect_async(ADDRESS) as client:
        answers = [answer async for answer in client.stream_retain(items("python-async-tests"))]
        assert [answer.HasField("result") for answer in answers] == [True, True]
        found = await client.recall(bank_id="python-async-tests", query="where does Ines live?")
        assert found.hits[0].text == "Ines lives in Porto."
        async for change in client.watch(bank_id="python-async-tests", after_position=0):
            assert change.change.position == 1
            break


@server
def test_errors_have_classes() -> None:
    with astrocyte_client.connect(ADDRESS) as client:
        with pytest.raises(BankNotFoundError) as unknown:
            client.recall(bank_id="nobody", query="anything?")
        assert unknown.value.metadata == {"bank_id": "nobody"}
        assert unknown.value.request_id
        assert str(unknown.value).startswith("BANK_NOT_FOUND: ")
        with pytest.raises(InvalidArgumentError) as invalid:
            client.recall(bank_id="nobody", query="anything?", max_results=1_000)
        assert invalid.value.field == "max_results"
        with pytest.raises(DeadlineExceededError):
            client.recall(bank_id="nobody", query="anything?", deadline=-1.0)
        with pytest.raises(BankNotFoundError):
            next(iter(client.watch(bank_id="nobody")))


@server
async def test_errors_have_classes_in_asyncio() -> None:
    async with astrocyte_client.connect_async(ADDRESS) as client:
        with pytest.raises(BankNotFoundError):
            await client.recall(bank_id="nobody", query="anything?")
        with pytest.raises(BankNotFoundError):
            async for _ in client.watch(bank_id="nobody"):
                pass


def test_no_server_is_unavailable() -> None:
    # Port 1 is of a service that no machine here has.
    with astrocyte_client.connect("127.0.0.1:1", retries=False) as client, pytest.raises(AstrocyteError) as refused:
        client.list_banks()
    assert refused.value.code is grpc.StatusCode.UNAVAILABLE
    assert refused.value.reason == "UNAVAILABLE"


def test_a_message_and_fields_are_refused() -> None:
    with (
        astrocyte_client.connect("127.0.0.1:1") as client,
        pytest.raises(TypeError, match="RecallRequest or its fields"),
    ):
        client.recall(memory_pb2.RecallRequest(), bank_id="family")


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both certificate and key"):
        astrocyte_client.connect("localhost:50051", certificate=tmp_path / "client.pem")
    with pytest.raises(FileNotFoundError):
        astrocyte_client.connect("localhost:50051", ca=tmp_path / "missing.pem")
