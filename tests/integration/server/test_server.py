"""Every RPC over the wire, through generated stubs and through the client."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from grpc_health.v1 import health_pb2, health_pb2_grpc

from astrocyte import connect
from astrocyte.api import RPCS
from astrocyte.api.requests import (
    BatchRecall,
    DeleteBank,
    GetBank,
    GetBankStats,
    GetMemory,
    GetServerInfo,
    History,
    ListBanks,
    ListMemories,
    Recall,
    Retain,
    StreamRetain,
    UpdateBank,
    UpdateMemory,
    Watch,
)
from astrocyte.errors import AuthorizationError, BankNotFound, CapabilityNotSupported, MemoryNotFound, ValidationError
from astrocyte.model import Caller, MemoryUpdate, RecallQuery, RetainItem, RetainResult
from astrocyte.v1 import admin_pb2, memory_pb2, types_pb2
from harness.serving import Served, reason, serving

FACTS = (
    "Mara cannot eat sesame because of an allergy.",
    "The ferry to the island leaves at seven in the morning.",
    "Tom repairs old bicycles in his garage on Saturdays.",
)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        yield served


async def retain(served: Served, *contents: str, bank_id: str = "family") -> list[str]:
    items = [memory_pb2.RetainItem(content=content) for content in contents]
    response = await served.memory.BatchRetain(memory_pb2.BatchRetainRequest(bank_id=bank_id, items=items))
    return [result.memory_id for result in response.results]


async def recalled(served: Served, query: str, bank_id: str = "family") -> list[str]:
    response = await served.memory.Recall(memory_pb2.RecallRequest(bank_id=bank_id, query=query))
    return [hit.memory_id for hit in response.hits]


async def test_what_is_retained_is_recalled_with_everything(served: Served) -> None:
    occurred = datetime(2024, 5, 8, 12, 0, 0, 250_000, tzinfo=UTC)
    request = memory_pb2.RetainRequest(
        bank_id="family",
        content=FACTS[0],
        tags=["food", "health"],
        metadata={"age": types_pb2.MetadataValue(int_value=9), "sure": types_pb2.MetadataValue(bool_value=True)},
        source="letter",
        speaker="Ann",
        session_id="s1",
    )
    request.occurred_at.FromDatetime(occurred)
    kept = await served.memory.Retain(request)
    assert kept.stored
    assert kept.memory_id.startswith("mem_")
    assert kept.retention_action == memory_pb2.RETENTION_ACTION_CREATED
    assert kept.memory_layer == "semantic"
    assert kept.position > 0

    answer = await served.memory.Recall(
        memory_pb2.RecallRequest(bank_id="family", query="what can Mara not eat?", include_sources=True)
    )
    (hit,) = answer.hits
    assert hit.memory_id == kept.memory_id
    assert hit.text == FACTS[0]
    assert list(hit.tags) == ["food", "health"]
    assert hit.metadata["age"].int_value == 9
    assert hit.metadata["sure"].bool_value is True
    assert (hit.source, hit.speaker, hit.session_id, hit.bank_id) == ("letter", "Ann", "s1", "family")
    assert hit.occurred_at.ToDatetime(UTC) == occurred
    assert {arm.arm for arm in hit.arms} == {"semantic", "keyword"}
    assert answer.trace.tier_used == 3
    assert answer.trace.position == kept.position
    assert list(answer.trace.strategies_used)


async def test_a_trace_can_be_left_out(served: Served) -> None:
    await retain(served, *FACTS)
    request = memory_pb2.RecallRequest(bank_id="family", query="ferry", include_trace=False)
    assert not (await served.memory.Recall(request)).HasField("trace")


async def test_a_stream_keeps_numbers_and_statuses(served: Served) -> None:
    requests = [
        memory_pb2.StreamRetainRequest(sequence=7, bank_id="family", item=memory_pb2.RetainItem(content=FACTS[0])),
        memory_pb2.StreamRetainRequest(sequence=8, item=memory_pb2.RetainItem(content="  ")),
        memory_pb2.StreamRetainRequest(sequence=9, item=memory_pb2.RetainItem(content=FACTS[1])),
        memory_pb2.StreamRetainRequest(sequence=10, item=memory_pb2.RetainItem(content=FACTS[0])),
    ]
    answers = [answer async for answer in served.memory.StreamRetain(iter(requests))]
    assert [answer.sequence for answer in answers] == [7, 8, 9, 10]
    assert [answer.WhichOneof("outcome") for answer in answers] == ["result", "error", "result", "result"]
    assert answers[1].error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert answers[3].result.deduplicated
    assert answers[3].result.memory_id == answers[0].result.memory_id
    assert await recalled(served, "when does the ferry leave?") == [
        answers[2].result.memory_id,
        answers[0].result.memory_id,
    ]


async def test_a_batch_is_all_or_nothing(served: Served) -> None:
    items = [memory_pb2.RetainItem(content=content) for content in (*FACTS, "")]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.memory.BatchRetain(memory_pb2.BatchRetainRequest(bank_id="family", items=items))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "items[3].content" in str(caught.value.details())
    with pytest.raises(grpc.aio.AioRpcError) as missing:
        await served.admin.GetBank(admin_pb2.GetBankRequest(bank_id="family"))
    assert missing.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_request_id_answers_once(served: Served) -> None:
    request = memory_pb2.RetainRequest(bank_id="family", content=FACTS[0], request_id=str(uuid.uuid4()))
    first = await served.memory.Retain(request)
    assert await served.memory.Retain(request) == first
    request.content = FACTS[1]
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.memory.Retain(request)
    assert caught.value.code() is grpc.StatusCode.ABORTED


async def test_every_write_answers_once(served: Served) -> None:
    memory, admin = served.memory, served.admin
    create = admin_pb2.CreateBankRequest(bank_id="family", display_name="Ours", request_id="c")
    made = await admin.CreateBank(create)
    assert await admin.CreateBank(create) == made
    (memory_id,) = await retain(served, FACTS[0])
    update = memory_pb2.UpdateMemoryRequest(
        bank_id="family",
        memory_id=memory_id,
        content=FACTS[1],
        update_mask=FieldMask(paths=["content"]),
        request_id="m",
    )
    second = await memory.UpdateMemory(update)
    await memory.UpdateMemory(
        memory_pb2.UpdateMemoryRequest(
            bank_id="family", memory_id=memory_id, tags=["x"], update_mask=FieldMask(paths=["tags"])
        )
    )
    assert await memory.UpdateMemory(update) == second
    assert second.memory.version == 2
    await memory.Forget(memory_pb2.ForgetRequest(bank_id="family", memory_ids=[memory_id]))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await memory.UpdateMemory(update)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    undelete = memory_pb2.UndeleteMemoryRequest(bank_id="family", memory_id=memory_id, request_id="u")
    assert await memory.UndeleteMemory(undelete) == await memory.UndeleteMemory(undelete)
    rename = admin_pb2.UpdateBankRequest(
        bank_id="family", display_name="All", update_mask=FieldMask(paths=["display_name"]), request_id="r"
    )
    renamed = await admin.UpdateBank(rename)
    assert await admin.UpdateBank(rename) == renamed
    delete = admin_pb2.DeleteBankRequest(bank_id="family", request_id="d")
    assert [(await admin.DeleteBank(delete)).deleted_count for _ in range(2)] == [1, 1]
    changed = (
        admin.CreateBank(admin_pb2.CreateBankRequest(bank_id="family", request_id="c")),
        admin.DeleteBank(admin_pb2.DeleteBankRequest(bank_id="other", request_id="d")),
    )
    for call in changed:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert (caught.value.code(), reason(caught.value)) == (grpc.StatusCode.ABORTED, "REQUEST_ID_REUSED")


async def test_request_ids_pass_through_the_client(served: Served) -> None:
    brain = connect(served.address)
    made = await brain.create_bank("notes", display_name="Notes", request_id="c")
    assert await brain.create_bank("notes", display_name="Notes", request_id="c") == made
    changed = await brain.update_bank("notes", description="d", request_id="u")
    await brain.update_bank("notes", description="e")
    assert await brain.update_bank("notes", description="d", request_id="u") == changed
    kept = await brain.retain(FACTS[2], bank_id="notes", content_type="markdown")
    await brain.forget("notes", scope="all")
    back = await brain.undelete(kept.memory_id or "", "notes", request_id="b")
    assert await brain.undelete(kept.memory_id or "", "notes", request_id="b") == back
    assert back.content_type == "markdown"
    assert [await brain.delete_bank("notes", request_id="d") for _ in range(2)] == [1, 1]
    await brain.close()


async def test_a_format_without_a_number_keeps_its_name(served: Served) -> None:
    request = memory_pb2.RetainRequest(bank_id="family", content=FACTS[0], content_type_name="markdown")
    kept = await served.memory.Retain(request)
    assert (kept.memory_layer, kept.chunk_count) == ("semantic", 1)
    read = memory_pb2.GetMemoryRequest(bank_id="family", memory_id=kept.memory_id)
    memory = (await served.memory.GetMemory(read)).memory
    assert (memory.content_type, memory.content_type_name) == (types_pb2.CONTENT_TYPE_UNSPECIFIED, "markdown")
    request = memory_pb2.RetainRequest(bank_id="family", content=FACTS[1], content_type_name="event")
    kept = await served.memory.Retain(request)
    memory = (
        await served.memory.GetMemory(memory_pb2.GetMemoryRequest(bank_id="family", memory_id=kept.memory_id))
    ).memory
    assert (memory.content_type, memory.content_type_name) == (types_pb2.CONTENT_TYPE_EVENT, "")
    assert memory.memory_layer == "episodic"


async def test_validate_only_changes_nothing(served: Served) -> None:
    request = memory_pb2.RetainRequest(bank_id="family", content=FACTS[0], validate_only=True)
    checked = await served.memory.Retain(request)
    assert not checked.stored
    assert not checked.error
    with pytest.raises(grpc.aio.AioRpcError):
        await served.admin.GetBank(admin_pb2.GetBankRequest(bank_id="family"))
    (memory_id,) = await retain(served, FACTS[0])
    update = memory_pb2.UpdateMemoryRequest(
        bank_id="family",
        memory_id=memory_id,
        content=FACTS[1],
        update_mask=FieldMask(paths=["content"]),
        validate_only=True,
    )
    assert (await served.memory.UpdateMemory(update)).memory.version == 1


async def test_a_memory_is_read_updated_forgotten_and_brought_back(served: Served) -> None:
    (memory_id,) = await retain(served, FACTS[0])
    read = memory_pb2.GetMemoryRequest(bank_id="family", memory_id=memory_id)
    memory = (await served.memory.GetMemory(read)).memory
    assert (memory.content, memory.version, memory.state) == (FACTS[0], 1, types_pb2.MEMORY_STATE_ACTIVE)

    update = memory_pb2.UpdateMemoryRequest(
        bank_id="family",
        memory_id=memory_id,
        content="Mara can eat sesame again since last spring.",
        tags=["health"],
        update_mask=FieldMask(paths=["content", "tags"]),
        etag=memory.etag,
    )
    updated = (await served.memory.UpdateMemory(update)).memory
    assert (updated.version, list(updated.tags)) == (2, ["health"])
    with pytest.raises(grpc.aio.AioRpcError) as stale:
        await served.memory.UpdateMemory(update)
    assert stale.value.code() is grpc.StatusCode.ABORTED

    request = memory_pb2.HistoryRequest(bank_id="family", query="Mara sesame", as_of=memory.retained_at)
    past = await served.memory.History(request)
    assert [hit.text for hit in past.hits] == [FACTS[0]]
    assert past.as_of == memory.retained_at

    forget = memory_pb2.ForgetRequest(bank_id="family", memory_ids=[memory_id], reason="asked to")
    dry = await served.memory.Forget(memory_pb2.ForgetRequest(bank_id="family", memory_ids=[memory_id], dry_run=True))
    assert (dry.deleted_count, dry.dry_run, list(dry.memory_ids)) == (1, True, [memory_id])
    assert (await served.memory.Forget(forget)).deleted_count == 1
    assert await recalled(served, "Mara sesame") == []
    assert not (await served.memory.History(request)).hits
    with pytest.raises(grpc.aio.AioRpcError) as gone:
        await served.memory.GetMemory(read)
    assert gone.value.code() is grpc.StatusCode.NOT_FOUND

    undelete = memory_pb2.UndeleteMemoryRequest(bank_id="family", memory_id=memory_id)
    assert (await served.memory.UndeleteMemory(undelete)).memory.version == 2
    assert await recalled(served, "Mara sesame") == [memory_id]


async def test_erasing_answers_with_a_receipt(served: Served) -> None:
    (memory_id,) = await retain(served, FACTS[0])
    erased = await served.memory.Forget(
        memory_pb2.ForgetRequest(bank_id="family", memory_ids=[memory_id], compliance=True, reason="request 4821")
    )
    assert erased.deleted_count == 1
    assert len(erased.receipt.salted_ids) == 1
    assert erased.receipt.root_hash_before != erased.receipt.root_hash_after
    with pytest.raises(grpc.aio.AioRpcError) as gone:
        await served.memory.UndeleteMemory(memory_pb2.UndeleteMemoryRequest(bank_id="family", memory_id=memory_id))
    assert gone.value.code() is grpc.StatusCode.NOT_FOUND


async def test_pages_are_bound_to_the_first_ones_moment(served: Served) -> None:
    ids = await retain(served, *(f"The parcel number {number} has arrived at depot {number}." for number in range(7)))
    request = memory_pb2.ListMemoriesRequest(bank_id="family", page_size=3)
    first = await served.memory.ListMemories(request)
    await retain(served, "A late letter came in between.")
    request.page_token = first.next_page_token
    second = await served.memory.ListMemories(request)
    request.page_token = second.next_page_token
    third = await served.memory.ListMemories(request)
    pages = (first, second, third)
    assert [memory.memory_id for page in pages for memory in page.memories] == ids
    assert {page.total_size for page in pages} == {7}
    assert not third.next_page_token


async def test_a_batch_of_recalls_equals_the_single_ones(served: Served) -> None:
    await retain(served, *FACTS)
    await retain(served, "The school play is on Friday.", bank_id="school")
    queries = [
        memory_pb2.RecallRequest(bank_id=bank_id, query=query, include_trace=False)
        for bank_id, query in (("family", "ferry"), ("school", "play"), ("family", "who fixes bikes?"))
    ]
    batch = await served.memory.BatchRecall(memory_pb2.BatchRecallRequest(queries=queries))
    assert list(batch.results) == [await served.memory.Recall(query) for query in queries]


async def test_a_watch_sends_past_and_new_changes(served: Served) -> None:
    (memory_id,) = await retain(served, FACTS[0])
    changes = served.memory.Watch(memory_pb2.WatchRequest(bank_id="family", after_position=0))
    first = (await changes.read()).change
    assert (first.kind, first.memory_id) == (memory_pb2.CHANGE_KIND_CREATED, memory_id)
    await served.memory.Forget(memory_pb2.ForgetRequest(bank_id="family", memory_ids=[memory_id]))
    second = (await asyncio.wait_for(changes.read(), 5)).change
    assert (second.kind, second.memory_id) == (memory_pb2.CHANGE_KIND_FORGOTTEN, memory_id)
    assert second.position == first.position + 1
    changes.cancel()


async def test_a_watch_ends_with_its_bank(served: Served) -> None:
    await retain(served, FACTS[0])
    changes = served.memory.Watch(memory_pb2.WatchRequest(bank_id="family"))
    await changes.wait_for_connection()
    await served.admin.DeleteBank(admin_pb2.DeleteBankRequest(bank_id="family"))
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await asyncio.wait_for(changes.read(), 5)
    assert ended.value.code() is grpc.StatusCode.NOT_FOUND


async def test_banks(served: Served) -> None:
    made = await served.admin.CreateBank(admin_pb2.CreateBankRequest(bank_id="work", display_name="Work"))
    assert (made.bank.bank_id, made.bank.display_name, made.bank.tenant) == ("work", "Work", "default")
    own = admin_pb2.CreateBankRequest(bank_id="own-vectors", embedding_model="mine", dimensions=3)
    assert (await served.admin.CreateBank(own)).bank.dimensions == 3
    with pytest.raises(grpc.aio.AioRpcError) as exists:
        await served.admin.CreateBank(own)
    assert exists.value.code() is grpc.StatusCode.ALREADY_EXISTS

    update = admin_pb2.UpdateBankRequest(
        bank_id="work", update_mask=FieldMask(paths=["display_name"]), display_name="", etag=made.bank.etag
    )
    changed = (await served.admin.UpdateBank(update)).bank
    assert changed.display_name == ""
    assert changed.etag != made.bank.etag
    listed = await served.admin.ListBanks(admin_pb2.ListBanksRequest(page_size=1))
    assert [bank.bank_id for bank in listed.banks] == ["own-vectors"]
    rest = await served.admin.ListBanks(admin_pb2.ListBanksRequest(page_size=1, page_token=listed.next_page_token))
    assert [bank.bank_id for bank in rest.banks] == ["work"]

    await retain(served, *FACTS, bank_id="work")
    stats = (await served.admin.GetBankStats(admin_pb2.GetBankStatsRequest(bank_id="work"))).stats
    assert stats.memory_count == len(FACTS)
    deleted = await served.admin.DeleteBank(admin_pb2.DeleteBankRequest(bank_id="work"))
    assert deleted.deleted_count == len(FACTS)
    with pytest.raises(grpc.aio.AioRpcError) as gone:
        await recalled(served, "ferry", bank_id="work")
    assert gone.value.code() is grpc.StatusCode.NOT_FOUND


async def test_the_server_tells_what_runs(served: Served) -> None:
    info = (await served.admin.GetServerInfo(admin_pb2.GetServerInfoRequest())).server_info
    assert info.version
    assert info.dimensions > 0
    assert info.started_at.ToDatetime(UTC) <= datetime.now(UTC)


async def test_vectors_may_come_from_the_caller(served: Served) -> None:
    await served.admin.CreateBank(admin_pb2.CreateBankRequest(bank_id="own", embedding_model="mine", dimensions=2))
    for content, vector in (("North.", (0.0, 1.0)), ("East.", (1.0, 0.0))):
        embedding = types_pb2.Embedding(model="mine", dimensions=2, values=struct.pack("<2f", *vector))
        await served.memory.Retain(memory_pb2.RetainRequest(bank_id="own", content=content, embedding=embedding))
    toward_east = types_pb2.Embedding(model="mine", dimensions=2, values=struct.pack("<2f", 0.9, 0.1))
    answer = await served.memory.Recall(
        memory_pb2.RecallRequest(bank_id="own", query="which way?", embedding=toward_east)
    )
    assert [hit.text for hit in answer.hits] == ["East.", "North."]


async def test_the_client_has_the_same_methods_with_the_same_answers(served: Served) -> None:
    caller, backend = Caller(), served.backend
    kept = await backend.call(caller, Retain("family", RetainItem(FACTS[0], tags=("food",), metadata={"age": 9})))
    assert kept.retention_action == "created"
    query = RecallQuery("what can Mara not eat?", "family", include_sources=True, include_trace=False)
    remote, local = await backend.call(caller, Recall(query)), await served.app.gate.call(caller, Recall(query))
    assert remote == local
    assert await backend.call(caller, BatchRecall([query, query])) == [remote, remote]
    memory_id = str(kept.memory_id)
    assert await backend.call(caller, GetMemory("family", memory_id)) == await served.app.gate.call(
        caller, GetMemory("family", memory_id)
    )
    assert await backend.call(caller, GetBank("family")) == await served.app.gate.call(caller, GetBank("family"))
    assert await backend.call(caller, GetServerInfo()) == await served.app.gate.call(caller, GetServerInfo())
    assert (await backend.call(caller, ListBanks())).banks[0].bank_id == "family"
    assert await backend.call(caller, ListMemories("family", tags=["food"])) == await served.app.gate.call(
        caller, ListMemories("family", tags=["food"])
    )
    update = MemoryUpdate(memory_id, frozenset({"content"}), content=FACTS[1])
    assert (await backend.call(caller, UpdateMemory("family", update))).version == 2
    history = RecallQuery("ferry", "family", as_of=datetime.now(UTC) + timedelta(hours=1))
    assert [hit.text for hit in (await backend.call(caller, History(history))).hits] == [FACTS[1]]
    changes = backend.stream(caller, Watch("family", after_position=0))
    assert [(await anext(changes)).kind for _ in range(2)] == ["created", "updated"]
    await changes.aclose()  # type: ignore[attr-defined]
    assert (await backend.call(caller, GetBankStats("family"))).memory_count == 1
    assert (await backend.call(caller, UpdateBank("family", description="ours"))).description == "ours"
    assert await backend.call(caller, DeleteBank("family")) == 1


async def test_the_client_retains_many_with_each_its_own_outcome(served: Served) -> None:
    items = [RetainItem(FACTS[0]), RetainItem(""), RetainItem("\ud800"), RetainItem(FACTS[1])]
    outcomes = await served.backend.call(Caller(), StreamRetain("family", items))
    assert [type(outcome) for outcome in outcomes] == [RetainResult, ValidationError, ValidationError, RetainResult]


async def test_the_client_raises_from_the_same_tree(served: Served) -> None:
    caller, backend = Caller(), served.backend
    with pytest.raises(BankNotFound) as missing:
        await backend.call(caller, Recall(RecallQuery("q", "nowhere")))
    assert missing.value.bank_id == "nowhere"
    await backend.call(caller, Retain("family", RetainItem(FACTS[0])))
    with pytest.raises(MemoryNotFound):
        await backend.call(caller, GetMemory("family", "mem_" + "0" * 32))
    with pytest.raises(ValidationError) as naive:
        await backend.call(caller, Recall(RecallQuery("q", "family", as_of=datetime(2024, 1, 1))))  # noqa: DTZ001
    assert naive.value.field == "as_of"
    with pytest.raises(AuthorizationError, match="not what the credential says"):
        await backend.call(Caller("other", "ann"), Recall(RecallQuery("q", "family")))
    with pytest.raises(CapabilityNotSupported, match="use recall with as_of"):
        await backend.call(caller, History(RecallQuery("q", "family", as_of=datetime.now(UTC), include_sources=True)))


async def test_connect_gives_the_python_api(served: Served) -> None:
    async with connect(served.address) as brain:
        kept = await brain.retain(FACTS[0], bank_id="family", tags=["food"])
        result = await brain.recall("what can Mara not eat?", bank_id="family")
    assert [hit.memory_id for hit in result.hits] == [kept.memory_id]


async def test_health_per_service(served: Served) -> None:
    stub = health_pb2_grpc.HealthStub(served.channel)
    services = {rpc.service for rpc in RPCS.values()} | {""}
    for name in services:
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    watched = stub.Watch(health_pb2.HealthCheckRequest(service="astrocyte.v1.MemoryService"))
    assert (await watched.read()).status == health_pb2.HealthCheckResponse.SERVING
    listed = await stub.List(health_pb2.HealthListRequest())
    assert {name: answer.status for name, answer in listed.statuses.items()} == dict.fromkeys(
        services,
        health_pb2.HealthCheckResponse.SERVING,
    )
    watched.cancel()


async def test_reflection_can_be_off() -> None:
    async with serving(server={"reflection": False}) as served:
        call: Any = served.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(iter([b""])).read()
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
