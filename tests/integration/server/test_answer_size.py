"""Answers and their limit: lists are cut into pages below it, other answers beyond it are refused."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from astrocyte import connect
from astrocyte.config import Settings
from astrocyte.config.limits import DEFAULT_ANSWER_BYTES, MOST_ANSWER_BYTES
from astrocyte.errors import ConfigError, MessageTooLarge
from astrocyte.model import DetailLevel, RecallQuery
from astrocyte.v1 import admin_pb2, memory_pb2
from harness.serving import Served, reason, serving

# More than one answer takes, together.
LARGE_MEMORIES, LARGE_BYTES = 90, 50_000
# The comparison of large memories with each other takes long, and has tests of its own.
LARGE: dict[str, Any] = {"signal_quality": {"dedup": {"enabled": False}}}
SMALL_LIMIT = 8_192
MODEL = "static-minilm-256-v1-128"
EMBEDDERS = {"small": {"provider": "static", "options": {"dimensions": 128}}}
CREDENTIAL = (("authorization", "Bearer root"),)
PERMISSIONS = [number for number in admin_pb2.Permission.values() if number]
FULL = memory_pb2.DETAIL_LEVEL_FULL


def prose(seed: int, size: int) -> str:
    """Sentences about nothing, unlike those of another seed."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnoprstuvw", k=chance.randint(3, 9))) for _ in range(300)]
    parts: list[str] = ["Lighthouse"]
    length = len(parts[0])
    while length < size - 10:
        parts.append(chance.choice(words))
        length += len(parts[-1]) + 1
    return " ".join(parts) + "."


async def retain(served: Served, count: int, size: int, metadata: Any = ()) -> list[str]:
    ids = []
    for number in range(count):
        item = memory_pb2.RetainRequest(bank_id="family", content=prose(number, size))
        ids.append((await served.memory.Retain(item, metadata=metadata)).memory_id)
    return ids


async def pages(method: Any, request: Any, metadata: Any = ()) -> list[Any]:
    """All pages of a list."""
    found: list[Any] = []
    while not found or request.page_token:
        found.append(await method(request, metadata=metadata))
        request.page_token = found[-1].next_page_token
    return found


async def refused(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = caught.value
    assert (error.code(), reason(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE")
    for name in ("server.max_answer_bytes", "max_results", "detail_level"):
        assert name in str(error.details())
    return error


@pytest.fixture(scope="module")
def recall() -> memory_pb2.RecallRequest:
    return memory_pb2.RecallRequest(bank_id="family", query="lighthouse", max_results=4, detail_level=FULL)


async def test_default_limits_suit_a_client_with_default_limits() -> None:
    """The channel is a plain one of gRPC, which takes 4 MiB."""
    async with serving(**LARGE) as served:
        ids = await retain(served, LARGE_MEMORIES, LARGE_BYTES)
        found = await pages(served.memory.ListMemories, memory_pb2.ListMemoriesRequest(bank_id="family"))
        assert [memory.memory_id for page in found for memory in page.memories] == ids
        assert len(found) == 2
        assert found[0].ByteSize() > DEFAULT_ANSWER_BYTES - 2 * LARGE_BYTES
        query = memory_pb2.RecallRequest(
            bank_id="family", query="lighthouse", max_results=LARGE_MEMORIES, max_tokens=32_768, detail_level=FULL
        )
        several = memory_pb2.BatchRecallRequest(queries=[query] * 120)
        await refused(served.memory.BatchRecall(several))
        # The server goes on, and less is answered.
        assert (await served.memory.BatchRecall(memory_pb2.BatchRecallRequest(queries=[query]))).results[0].hits


@pytest.fixture
async def small() -> AsyncIterator[Served]:
    """A server with a low limit."""
    async with serving(server={"max_answer_bytes": SMALL_LIMIT}) as served:
        yield served


async def test_recalls_and_batches_beyond_the_limit_are_refused(
    small: Served, recall: memory_pb2.RecallRequest
) -> None:
    await retain(small, 4, 3_000)
    await refused(small.memory.Recall(recall))
    await refused(small.memory.BatchRecall(memory_pb2.BatchRecallRequest(queries=[recall])))
    error = await refused(small.memory.BatchRecall(memory_pb2.BatchRecallRequest(queries=[recall] * 3)))
    assert f"the limit is {SMALL_LIMIT:,}" in str(error.details())
    recall = memory_pb2.RecallRequest(bank_id="family", query="lighthouse", max_results=1, include_trace=False)
    assert (await small.memory.Recall(recall)).hits
    query = RecallQuery("lighthouse", "family", max_results=4, detail_level=DetailLevel.FULL)
    async with connect(small.address) as brain:
        with pytest.raises(MessageTooLarge, match="max_answer_bytes"):
            await brain.recall(query.query, bank_id="family", max_results=4, detail_level="full")


async def fill_lists(served: Served, count: int) -> None:
    """Make so many entries of every list."""
    long = "x" * 1_000
    for number in range(count):
        bank_id = f"bank-{number}"
        for method, request in (
            ("CreateBank", admin_pb2.CreateBankRequest(bank_id=bank_id, description=long)),
            ("Grant", admin_pb2.GrantRequest(bank_id=bank_id, principal=f"user:{number}", permissions=PERMISSIONS)),
            ("PlaceHold", admin_pb2.PlaceHoldRequest(bank_id=bank_id, hold_id=f"hold-{number}", reason=long)),
            ("StartReindex", admin_pb2.StartReindexRequest(bank_id=bank_id, embedding_model=MODEL)),
        ):
            await getattr(served.admin, method)(request, metadata=CREDENTIAL)
    await retain(served, count, 1_000, CREDENTIAL)


async def test_every_list_is_cut_into_pages_below_the_limit() -> None:
    count = 60
    access = {
        "auth": {"api_keys": [{"name": "root", "sha256": hashlib.sha256(b"root").hexdigest(), "principal": "root"}]},
        "access_control": {"enabled": True},
        "access_grants": [{"bank_id": "*", "principal": "root", "permissions": ["*"]}],
    }
    async with serving(server={"max_answer_bytes": SMALL_LIMIT}, embedders=EMBEDDERS, **access) as served:
        await fill_lists(served, count)
        memory, admin = served.memory, served.admin
        for name, method, request in (
            ("memories", memory.ListMemories, memory_pb2.ListMemoriesRequest(bank_id="family")),
            ("banks", admin.ListBanks, admin_pb2.ListBanksRequest(prefix="bank-")),
            ("grants", admin.ListGrants, admin_pb2.ListGrantsRequest()),
            ("holds", admin.ListHolds, admin_pb2.ListHoldsRequest()),
            ("events", admin.ListAuditEvents, admin_pb2.ListAuditEventsRequest()),
            ("operations", admin.ListOperations, admin_pb2.ListOperationsRequest()),
        ):
            found = await pages(method, request, CREDENTIAL)
            entries = [entry.SerializeToString() for page in found for entry in getattr(page, name)]
            assert len(entries) == len(set(entries)) >= count, name
            assert len(found) > 1, name
            assert all(page.ByteSize() <= SMALL_LIMIT for page in found), name
            # A page is filled, not cut to single entries.
            assert all(len(getattr(page, name)) > 1 for page in found[:-1]), name


async def test_an_entry_that_exceeds_the_limit_alone_is_refused(small: Served) -> None:
    await retain(small, 1, SMALL_LIMIT)
    await refused(small.memory.ListMemories(memory_pb2.ListMemoriesRequest(bank_id="family")))


async def test_the_lowest_limit_still_lists_everything() -> None:
    async with serving(server={"max_answer_bytes": 1_024}) as served:
        ids = await retain(served, 5, 300)
        found = await pages(served.memory.ListMemories, memory_pb2.ListMemoriesRequest(bank_id="family"))
    assert [memory.memory_id for page in found for memory in page.memories] == ids


async def test_the_client_takes_what_the_server_may_be_set_to_send() -> None:
    raised = 3 * DEFAULT_ANSWER_BYTES
    async with serving(server={"max_answer_bytes": raised}, **LARGE) as served:
        await retain(served, LARGE_MEMORIES, LARGE_BYTES)
        async with connect(served.address) as brain:
            page = await brain.list("family")
        assert (len(page.memories), page.next_page_token) == (LARGE_MEMORIES, "")
        with pytest.raises(grpc.aio.AioRpcError, match="larger than max"):
            await served.memory.ListMemories(memory_pb2.ListMemoriesRequest(bank_id="family"))


def test_no_setting_exceeds_what_the_client_takes() -> None:
    settings = Settings.from_mapping({"server": {"max_answer_bytes": MOST_ANSWER_BYTES}})
    assert settings.server.max_answer_bytes == MOST_ANSWER_BYTES
    with pytest.raises(ConfigError, match="max_answer_bytes"):
        Settings.from_mapping({"server": {"max_answer_bytes": MOST_ANSWER_BYTES + 1}})
