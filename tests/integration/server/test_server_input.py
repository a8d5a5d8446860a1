"""Bad input over the wire: refused with the code, the reason and the field, and nothing is changed."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc import error_details_pb2

from astrocyte.client import translate
from astrocyte.errors import MessageTooLarge
from astrocyte.services.status import DETAILS_KEY
from astrocyte.v1 import admin_pb2, memory_pb2, types_pb2
from harness.serving import Served, detail, reason, serving, trailer

NOBODY = "mem_" + "0" * 32
KNOWN = "Mara cannot eat sesame because of an allergy."
DIMENSIONS = 4


def vector(*values: float, model: str = "mine", dimensions: int | None = None) -> types_pb2.Embedding:
    packed = struct.pack(f"<{len(values)}f", *values)
    return types_pb2.Embedding(model=model, dimensions=dimensions or len(values), values=packed)


def retain(**fields: Any) -> memory_pb2.RetainRequest:
    return memory_pb2.RetainRequest(**{"bank_id": "known", "content": "fine", **fields})


def recall(**fields: Any) -> memory_pb2.RecallRequest:
    return memory_pb2.RecallRequest(**{"bank_id": "known", "query": "fine", **fields})


def update(**fields: Any) -> memory_pb2.UpdateMemoryRequest:
    return memory_pb2.UpdateMemoryRequest(**{"bank_id": "known", "memory_id": NOBODY, **fields})


def kinds(**values: Any) -> dict[str, types_pb2.MetadataValue]:
    return {key: types_pb2.MetadataValue(string_value=value) for key, value in values.items()}


@dataclass(frozen=True)
class Bad:
    """One wrong request, and what is said about it."""

    request: Any
    field: str
    reason: str = "INVALID_ARGUMENT"
    code: grpc.StatusCode = grpc.StatusCode.INVALID_ARGUMENT
    service: str = "memory"
    method: str = ""

    def call(self, served: Served) -> Any:
        method = self.method or type(self.request).__name__.removesuffix("Request")
        return getattr(getattr(served, self.service), method)(self.request)


MISMATCH: dict[str, Any] = {"reason": "EMBEDDING_MISMATCH"}
NO_BANK: dict[str, Any] = {"reason": "BANK_NOT_FOUND", "code": grpc.StatusCode.NOT_FOUND}
NO_MEMORY: dict[str, Any] = {"reason": "MEMORY_NOT_FOUND", "code": grpc.StatusCode.NOT_FOUND}
CASES: dict[str, Bad] = {
    "empty content": Bad(retain(content=""), "content"),
    "blank content": Bad(retain(content=" \n\t"), "content"),
    "1 MB of content": Bad(retain(content="x" * 1_000_000), "content"),
    "content of one byte too much": Bad(retain(content="x" * 102_401), "content"),
    "NUL in content": Bad(retain(content="a\x00b"), "content"),
    "no bank": Bad(retain(bank_id=""), "bank_id"),
    "a bank id with a slash": Bad(retain(bank_id="a/b"), "bank_id"),
    "a bank id that NFKC changes": Bad(retain(bank_id="\uff41"), "bank_id"),
    "a bank id of 256 characters": Bad(retain(bank_id="a" * 256), "bank_id"),
    "10,000 tags": Bad(retain(tags=[f"tag{i}" for i in range(10_000)]), "tags"),
    "a long tag": Bad(retain(tags=["ok", "t" * 129]), "tags[1]"),
    "an empty tag": Bad(retain(tags=[""]), "tags[0]"),
    "a control character in a tag": Bad(retain(tags=["a\x07"]), "tags[0]"),
    "65 metadata keys": Bad(retain(metadata=kinds(**{f"k{i}": "v" for i in range(65)})), "metadata"),
    "a reserved metadata key": Bad(retain(metadata=kinds(_internal="v")), "metadata[_internal]"),
    "an empty metadata key": Bad(retain(metadata={"": types_pb2.MetadataValue(int_value=1)}), "metadata"),
    "a long metadata value": Bad(retain(metadata=kinds(k="v" * 1_025)), "metadata[k]"),
    "metadata of no kind": Bad(retain(metadata={"k": types_pb2.MetadataValue()}), "metadata[k]"),
    "NaN in metadata": Bad(retain(metadata={"k": types_pb2.MetadataValue(double_value=float("nan"))}), "metadata[k]"),
    "an unknown content type": Bad(retain(content_type=77), "content_type"),
    "a content type twice": Bad(retain(content_type=1, content_type_name="text"), "content_type_name"),
    "a content type with a control": Bad(retain(content_type_name="a\n"), "content_type"),
    "an unknown profile": Bad(retain(extraction_profile="mine"), "extraction_profile"),
    "an impossible time": Bad(retain(occurred_at=Timestamp(seconds=2**62)), "occurred_at"),
    "impossible nanoseconds": Bad(retain(valid_from=Timestamp(nanos=-1)), "valid_from"),
    "valid until before valid from": Bad(
        retain(valid_from=Timestamp(seconds=200), valid_until=Timestamp(seconds=100)), "valid_until"
    ),
    "a threshold of NaN": Bad(retain(dedup_threshold=float("nan")), "dedup_threshold"),
    "a threshold above 1": Bad(retain(dedup_threshold=1.5), "dedup_threshold"),
    "a vector of another size": Bad(
        retain(bank_id="own", embedding=vector(1, 2, 3)), "embedding.dimensions", **MISMATCH
    ),
    "a vector of another model": Bad(
        retain(bank_id="own", embedding=vector(1, 2, 3, 4, model="theirs")), "embedding.model", **MISMATCH
    ),
    "a vector that is not what it says": Bad(
        retain(bank_id="own", embedding=vector(1, 2, 3, dimensions=4)), "embedding.values"
    ),
    "NaN in a vector": Bad(retain(bank_id="own", embedding=vector(1, float("nan"), 3, 4)), "embedding.values"),
    "infinity in a vector": Bad(retain(bank_id="own", embedding=vector(1, float("inf"), 3, 4)), "embedding.values"),
    "a vector of zeros": Bad(retain(bank_id="own", embedding=vector(0, 0, 0, 0)), "embedding.values"),
    "no vector where the server has none": Bad(retain(bank_id="own"), "embedding", **MISMATCH),
    "an empty batch": Bad(memory_pb2.BatchRetainRequest(bank_id="known"), "items"),
    "a batch of 257": Bad(
        memory_pb2.BatchRetainRequest(
            bank_id="known", items=[memory_pb2.RetainItem(content=f"c{i}") for i in range(257)]
        ),
        "items",
    ),
    "a bad item in a batch": Bad(
        memory_pb2.BatchRetainRequest(
            bank_id="known", items=[memory_pb2.RetainItem(content="ok"), memory_pb2.RetainItem(content="\x00")]
        ),
        "items[1].content",
    ),
    "a long request id": Bad(retain(request_id="r" * 129), "request_id"),
    "no query": Bad(recall(query=""), "query"),
    "a query of 8,193 bytes": Bad(recall(query="q" * 8_193), "query"),
    "NUL in a query": Bad(recall(query="a\x00"), "query"),
    "a million results": Bad(recall(max_results=1_000_000), "max_results"),
    "fewer than no results": Bad(recall(max_results=-1), "max_results"),
    "fewer than no tokens": Bad(recall(max_tokens=-1), "max_tokens"),
    "a range that ends before it starts": Bad(
        recall(time_range=types_pb2.TimeRange(start=Timestamp(seconds=200), end=Timestamp(seconds=100))), "time_range"
    ),
    "an impossible range": Bad(recall(time_range=types_pb2.TimeRange(end=Timestamp(nanos=-1))), "time_range.end"),
    "a weight of NaN": Bad(recall(weights={"semantic": float("nan")}), "weights[semantic]"),
    "a weight below 0": Bad(recall(layer_weights={"semantic": -1.0}), "layer_weights[semantic]"),
    "a weight of an unknown arm": Bad(recall(weights={"psychic": 1.0}), "weights"),
    "a rank constant of 0": Bad(recall(rank_constant=0.0), "rank_constant"),
    "an unknown detail level": Bad(recall(detail_level=9), "detail_level"),
    "an unknown fusion": Bad(recall(fusion_method=9), "fusion_method"),
    "a query vector of another size": Bad(
        recall(bank_id="own", embedding=vector(1, 2)), "embedding.dimensions", **MISMATCH
    ),
    "NaN in a query vector": Bad(recall(bank_id="own", embedding=vector(1, 2, 3, float("nan"))), "embedding.values"),
    "a position below 0": Bad(recall(min_position=-1), "min_position"),
    "a bad query in a batch": Bad(
        memory_pb2.BatchRecallRequest(queries=[recall(), recall(query="")]), "queries[1].query"
    ),
    "an explanation of no recall": Bad(memory_pb2.ExplainRequest(memory_ids=["mem_0"]), "recall"),
    "an explanation of no memory": Bad(memory_pb2.ExplainRequest(recall=recall()), "memory_ids"),
    "an empty batch of queries": Bad(memory_pb2.BatchRecallRequest(), "queries"),
    "an unknown bank": Bad(recall(bank_id="nowhere"), "", **NO_BANK),
    "an unknown bank in a batch": Bad(
        memory_pb2.BatchRecallRequest(queries=[recall(), recall(bank_id="nowhere")]), "", **NO_BANK
    ),
    "the history of an unknown bank": Bad(
        memory_pb2.HistoryRequest(bank_id="nowhere", query="q", as_of=Timestamp(seconds=1)), "", **NO_BANK
    ),
    "history without its instant": Bad(memory_pb2.HistoryRequest(bank_id="known", query="q"), "as_of"),
    "forgetting nothing in particular": Bad(memory_pb2.ForgetRequest(bank_id="known"), "selector"),
    "forgetting in an unknown bank": Bad(
        memory_pb2.ForgetRequest(bank_id="nowhere", memory_ids=[NOBODY]), "", **NO_BANK
    ),
    "an unknown scope": Bad(memory_pb2.ForgetRequest(bank_id="known", scope=5), "scope"),  # type: ignore[arg-type]
    "a memory id that is none": Bad(memory_pb2.GetMemoryRequest(bank_id="known", memory_id="7"), "", **NO_MEMORY),
    "an unknown memory": Bad(memory_pb2.GetMemoryRequest(bank_id="known", memory_id=NOBODY), "", **NO_MEMORY),
    "undeleting an unknown memory": Bad(
        memory_pb2.UndeleteMemoryRequest(bank_id="known", memory_id=NOBODY), "", **NO_MEMORY
    ),
    "an update of nothing": Bad(update(content="new"), "update_mask"),
    "an update of an unknown field": Bad(update(update_mask=FieldMask(paths=["principal"])), "update_mask"),
    "an update to no content": Bad(update(update_mask=FieldMask(paths=["content"])), "content"),
    "an update of an unknown memory": Bad(update(update_mask=FieldMask(paths=["source"]), source="s"), "", **NO_MEMORY),
    "a page of 1,001": Bad(memory_pb2.ListMemoriesRequest(bank_id="known", page_size=1_001), "page_size"),
    "a page of -1": Bad(memory_pb2.ListMemoriesRequest(bank_id="known", page_size=-1), "page_size"),
    "a page token that is none": Bad(memory_pb2.ListMemoriesRequest(bank_id="known", page_token="x"), "page_token"),
    "a page token of banks that is none": Bad(
        admin_pb2.ListBanksRequest(page_token="x"), "page_token", service="admin"
    ),
    "half of a vector space": Bad(
        admin_pb2.CreateBankRequest(bank_id="half", embedding_model="mine"), "dimensions", service="admin"
    ),
    "the other half of a vector space": Bad(
        admin_pb2.CreateBankRequest(bank_id="half", dimensions=3), "dimensions", service="admin"
    ),
    "too many dimensions": Bad(
        admin_pb2.CreateBankRequest(bank_id="large", embedding_model="m", dimensions=2**30),
        "dimensions",
        service="admin",
    ),
    "a bank that is there": Bad(
        admin_pb2.CreateBankRequest(bank_id="known"),
        "",
        "ALREADY_EXISTS",
        grpc.StatusCode.ALREADY_EXISTS,
        service="admin",
    ),
    "no change of a bank": Bad(admin_pb2.UpdateBankRequest(bank_id="known"), "update_mask", service="admin"),
    "a change of what is fixed": Bad(
        admin_pb2.UpdateBankRequest(bank_id="known", update_mask=FieldMask(paths=["dimensions"])),
        "update_mask",
        service="admin",
    ),
    "a stale etag": Bad(
        admin_pb2.DeleteBankRequest(bank_id="known", etag="stale"),
        "",
        "ETAG_MISMATCH",
        grpc.StatusCode.ABORTED,
        service="admin",
    ),
    "deleting an unknown bank": Bad(admin_pb2.DeleteBankRequest(bank_id="nowhere"), "", service="admin", **NO_BANK),
}


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving() as served:
        await served.memory.Retain(retain(content=KNOWN))
        await served.admin.CreateBank(
            admin_pb2.CreateBankRequest(bank_id="own", embedding_model="mine", dimensions=DIMENSIONS)
        )
        yield served


async def failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


def refused_field(error: grpc.aio.AioRpcError) -> str:
    if error.code() is not grpc.StatusCode.INVALID_ARGUMENT:
        return ""
    (violation,) = detail(error, error_details_pb2.BadRequest).field_violations
    assert error.details() == f"{violation.field}: {violation.description}"
    return str(violation.field)


async def test_every_wrong_request_is_refused_with_its_reason(served: Served) -> None:
    before = (await served.admin.ListBanks(admin_pb2.ListBanksRequest())).banks
    wrong: dict[str, object] = {}
    for name, case in CASES.items():
        try:
            await case.call(served)
        except grpc.aio.AioRpcError as error:
            said = (error.code(), reason(error), refused_field(error))
            if said != (case.code, case.reason, case.field):
                wrong[name] = (*said, error.details())
        else:
            wrong[name] = "accepted"
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())
    # Nothing was changed: neither the banks, nor how many changes each has seen.
    assert list((await served.admin.ListBanks(admin_pb2.ListBanksRequest())).banks) == list(before)
    answer = await served.memory.Recall(recall(query="what can Mara not eat?"))
    assert [hit.text for hit in answer.hits] == [KNOWN]


async def test_no_results_asked_for_means_ten(served: Served) -> None:
    facts = [f"On day {day} the harbour master counted {day * 7} boats." for day in range(1, 15)]
    items = [memory_pb2.RetainItem(content=fact) for fact in facts]
    await served.memory.BatchRetain(memory_pb2.BatchRetainRequest(bank_id="harbour", items=items))
    answer = await served.memory.Recall(recall(bank_id="harbour", query="how many boats?", max_results=0))
    assert len(answer.hits) == 10


async def test_a_page_token_of_another_list_is_refused(served: Served) -> None:
    await served.memory.Retain(retain(content="Another fact about lighthouses."))
    request = memory_pb2.ListMemoriesRequest(bank_id="known", page_size=1)
    token = (await served.memory.ListMemories(request)).next_page_token
    assert token
    others = (
        memory_pb2.ListMemoriesRequest(bank_id="own", page_size=1, page_token=token),
        memory_pb2.ListMemoriesRequest(bank_id="known", page_size=1, page_token=token, tags=["x"]),
    )
    for other in others:
        error = await failure(served.memory.ListMemories(other))
        assert (error.code(), reason(error)) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")


async def test_a_page_token_of_a_bank_that_was_deleted_is_refused(served: Served) -> None:
    for content in ("One.", "Two."):
        await served.memory.Retain(retain(bank_id="short", content=content))
    request = memory_pb2.ListMemoriesRequest(bank_id="short", page_size=1)
    request.page_token = (await served.memory.ListMemories(request)).next_page_token
    await served.admin.DeleteBank(admin_pb2.DeleteBankRequest(bank_id="short"))
    await served.memory.Retain(retain(bank_id="short", content="Three."))
    assert (await failure(served.memory.ListMemories(request))).code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "change",
    [
        lambda request: setattr(request, "content", "something else"),
        lambda request: request.tags.append("more"),
        lambda request: setattr(request, "bank_id", "other"),
    ],
)
async def test_a_request_id_with_another_request_is_refused(
    served: Served, change: Callable[[memory_pb2.RetainRequest], None]
) -> None:
    request = retain(content="The first.", request_id="3f0f6f4e-6f4e-4c55-9a5e-0e6a2f4c9d11")
    await served.memory.Retain(request)
    change(request)
    error = await failure(served.memory.Retain(request))
    assert (error.code(), reason(error)) == (grpc.StatusCode.ABORTED, "REQUEST_ID_REUSED")


async def test_bytes_that_are_no_message(served: Served) -> None:
    call: Any = served.channel.unary_unary("/astrocyte.v1.MemoryService/Recall")
    error = await failure(call(b"\xff\xff\xff"))
    assert (error.code(), reason(error)) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")


async def test_text_that_is_no_utf_8(served: Served) -> None:
    call: Any = served.channel.unary_unary("/astrocyte.v1.MemoryService/Retain")
    for binary in (b"\xff\xfe\x00\x01", b"\xed\xa0\x80"):
        error = await failure(call(b"\x0a\x05known\x12" + bytes([len(binary)]) + binary))
        assert (error.code(), reason(error)) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")


async def test_bytes_that_are_no_message_in_a_stream(served: Served) -> None:
    call: Any = served.channel.stream_stream(
        "/astrocyte.v1.MemoryService/StreamRetain",
        response_deserializer=memory_pb2.StreamRetainResponse.FromString,
    )
    first = memory_pb2.StreamRetainRequest(
        sequence=1, bank_id="known", item=memory_pb2.RetainItem(content="A good one.")
    )
    stream = call(iter([first.SerializeToString(), b"\xff\xff"]))
    assert (await stream.read()).result.stored
    error = await failure(stream.read())
    assert (error.code(), reason(error)) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")


async def test_a_message_beyond_the_limit(served: Served) -> None:
    error = await failure(served.memory.Retain(retain(content="x" * 1_100_000)))
    assert (error.code(), reason(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_TOO_LARGE")
    info = detail(error, error_details_pb2.ErrorInfo)
    assert (info.metadata["limit"], int(info.metadata["size"]) > 1_100_000) == ("1048576", True)
    items = iter([memory_pb2.StreamRetainRequest(bank_id="known", item=memory_pb2.RetainItem(content="x" * 1_100_000))])
    error = await failure(served.memory.StreamRetain(items).read())
    assert reason(error) == "MESSAGE_TOO_LARGE"


async def test_a_message_far_beyond_the_limit_is_refused_by_grpc(served: Served) -> None:
    error = await failure(served.memory.Retain(retain(content="x" * 5_000_000)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert trailer(error, DETAILS_KEY) is None
    assert type(translate(error)) is MessageTooLarge


async def test_a_method_that_does_not_exist(served: Served) -> None:
    call: Any = served.channel.unary_unary("/astrocyte.v1.MemoryService/Dream")
    error = await failure(call(b""))
    assert (error.code(), reason(error)) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_SUPPORTED")
    assert trailer(error, "x-request-id")
