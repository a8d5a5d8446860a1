import asyncio
import inspect
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api import Backend
from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    CreateBank,
    DeleteBank,
    Forget,
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
    UndeleteMemory,
    UpdateBank,
    UpdateMemory,
    Watch,
)
from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.errors import (
    AlreadyExists,
    AstrocyteError,
    BankNotFound,
    Conflict,
    DimensionMismatch,
    FailedPrecondition,
    MemoryNotFound,
    RequestIdReused,
    ValidationError,
)
from astrocyte.model import (
    Caller,
    ChangeKind,
    Embedding,
    ForgetSelector,
    MemoryUpdate,
    RecallQuery,
    RetainItem,
    RetainResult,
)
from astrocyte.policy.gate import Gate
from astrocyte.policy.observability.middleware import MiddlewareBackend

ME = Caller()
ID = "8d4f9f3c-7a34-4a6e-9a3b-1d6f4c7e2b10"


def vector(*values: float, model: str = "mine") -> Embedding:
    return Embedding(model, len(values), struct.pack(f"<{len(values)}f", *values))


async def ids(gate: Gate, query: str = "tea", bank_id: str = "b", **options: Any) -> list[str | None]:
    return [hit.memory_id for hit in (await gate.call(ME, Recall(RecallQuery(query, bank_id, **options)))).hits]


@pytest.mark.parametrize("backend", [Gate, MiddlewareBackend, RemoteBackend])
def test_a_backend_has_the_surface_of_one(backend: type[Any]) -> None:
    names = [name for name, value in vars(Backend).items() if callable(value) and not name.startswith("_")]
    assert names == ["call", "stream", "close"]
    for name in names:
        ours = inspect.signature(getattr(backend, name)).parameters
        wanted = inspect.signature(getattr(Backend, name)).parameters
        assert [(one.name, one.kind, one.default) for one in ours.values()] == [
            (one.name, one.kind, one.default) for one in wanted.values()
        ], name


async def test_what_is_no_request_is_refused(gate: Gate) -> None:
    with pytest.raises(TypeError, match=r"expected a request of astrocyte\.api\.requests, got RecallQuery"):
        await gate.call(ME, RecallQuery("x", "b"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got Recall"):
        gate.stream(ME, Recall(RecallQuery("x", "b")))  # type: ignore[arg-type]
    remote = RemoteBackend("localhost:1")
    with pytest.raises(TypeError, match="got RecallQuery"):
        await remote.call(ME, RecallQuery("x", "b"))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="got Recall"):
        await anext(remote.stream(ME, Recall(RecallQuery("x", "b"))))  # type: ignore[arg-type]
    await remote.close()


async def test_a_memory_is_found_by_the_next_recall(gate: Gate) -> None:
    for number in range(50):
        result = await gate.call(ME, Retain("b", RetainItem(f"note {number} about the lighthouse")))
        assert (await ids(gate, f"note {number} about the lighthouse"))[0] == result.memory_id


async def test_a_write_that_is_refused_makes_no_bank(gate: Gate) -> None:
    wrong = [
        RetainItem(""),
        RetainItem("\ufeff"),
        RetainItem("x", embedding=vector(1.0, 2.0)),
        RetainItem("x", occurred_at=datetime(2024, 1, 1)),  # noqa: DTZ001 - the point
    ]
    for item in wrong:
        with pytest.raises(ValidationError):
            await gate.call(ME, Retain("b", item))
        with pytest.raises(ValidationError) as caught:
            await gate.call(ME, BatchRetain("b", [RetainItem("fine"), item]))
        assert caught.value.field.startswith("items[1].")
    with pytest.raises(BankNotFound):
        await gate.call(ME, GetBank("b"))


async def test_banks_are_not_made_where_that_is_switched_off() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "bank_defaults": {"auto_create": False}}))
    with pytest.raises(BankNotFound):
        await app.gate.call(ME, Retain("b", RetainItem("tea")))
    await app.gate.call(ME, CreateBank("b"))
    assert (await app.gate.call(ME, Retain("b", RetainItem("tea")))).stored
    await app.close()


async def test_reads_make_no_bank(gate: Gate) -> None:
    for call in (
        gate.call(ME, Recall(RecallQuery("x", "none"))),
        gate.call(ME, History(RecallQuery("x", "none", as_of=datetime.now(UTC)))),
        gate.call(ME, Forget("none", ForgetSelector(scope="all"))),
        gate.call(ME, GetBankStats("none")),
        gate.call(ME, DeleteBank("none")),
        gate.call(ME, ListMemories("none")),
        gate.call(ME, UndeleteMemory("none", "mem_1")),
    ):
        with pytest.raises(BankNotFound):
            await call


async def test_two_first_writers_share_a_bank(gate: Gate) -> None:
    results = await asyncio.gather(*(gate.call(ME, Retain("b", RetainItem(f"tea {n}"))) for n in range(20)))
    assert all(result.stored for result in results)
    assert (await gate.call(ME, GetBankStats("b"))).memory_count == 20


async def test_tenants_do_not_meet(gate: Gate) -> None:
    other = Caller("other", "p")
    await gate.call(ME, Retain("b", RetainItem("tea")))
    with pytest.raises(BankNotFound):
        await gate.call(other, Recall(RecallQuery("tea", "b")))
    await gate.call(other, Retain("b", RetainItem("tea of another")))
    assert len(await ids(gate)) == 1


async def test_a_batch_is_all_or_nothing(gate: Gate) -> None:
    await gate.call(ME, CreateBank("b"))
    with pytest.raises(ValidationError) as caught:
        await gate.call(ME, BatchRetain("b", [RetainItem("tea"), RetainItem(" ")]))
    assert caught.value.field == "items[1].content"
    assert await ids(gate) == []
    results = await gate.call(
        ME, BatchRetain("b", [RetainItem("green tea"), RetainItem("black tea"), RetainItem("green  tea")])
    )
    assert [result.stored for result in results] == [True, True, False]
    assert results[2].memory_id == results[0].memory_id


async def test_many_items_fail_one_by_one(gate: Gate) -> None:
    items = [
        RetainItem("tea"),
        RetainItem(""),
        RetainItem("\ufeff"),
        RetainItem("x", embedding=vector(1.0)),
        RetainItem("jam"),
    ]
    results = await gate.call(ME, StreamRetain("b", items))
    assert [type(result) for result in results] == [
        RetainResult,
        ValidationError,
        ValidationError,
        DimensionMismatch,
        RetainResult,
    ]
    assert len(await ids(gate)) == 2
    with pytest.raises(ValidationError):
        await gate.call(ME, StreamRetain("bad id", items))
    with pytest.raises(ValidationError):
        await gate.call(ME, StreamRetain("b", items, request_ids=["x"]))


async def test_many_items_with_request_ids(gate: Gate) -> None:
    items = [RetainItem("tea"), RetainItem("jam"), RetainItem("ham")]
    first = await gate.call(ME, StreamRetain("b", items, request_ids=["1", None, "3"]))
    again = await gate.call(ME, StreamRetain("b", items, request_ids=["1", None, "3"]))
    assert again[0] == first[0]
    assert again[2] == first[2]
    assert isinstance(again[1], RetainResult)
    assert again[1].deduplicated
    reused = await gate.call(ME, StreamRetain("b", [RetainItem("rum")], request_ids=["1"]))
    assert isinstance(reused[0], RequestIdReused)


async def test_a_repeated_request_gets_the_first_answer(gate: Gate) -> None:
    first = await gate.call(ME, Retain("b", RetainItem("tea"), request_id=ID))
    assert await gate.call(ME, Retain("b", RetainItem("tea"), request_id=ID)) == first
    with pytest.raises(RequestIdReused):
        await gate.call(ME, Retain("b", RetainItem("coffee"), request_id=ID))
    with pytest.raises(RequestIdReused):
        await gate.call(ME, Retain("other", RetainItem("tea"), request_id=ID))
    with pytest.raises(BankNotFound):
        await gate.call(ME, GetBank("other"))
    # Another tenant's ids are its own.
    assert (await gate.call(Caller("t2"), Retain("b", RetainItem("x"), request_id=ID))).stored


async def test_a_repeated_update_gets_the_version_that_the_first_made(gate: Gate) -> None:
    memory_id = (await gate.call(ME, Retain("b", RetainItem("tea")))).memory_id or ""
    update = MemoryUpdate(memory_id, frozenset({"content"}), content="jam")
    first = await gate.call(ME, UpdateMemory("b", update, request_id=ID))
    await gate.call(ME, UpdateMemory("b", replace(update, content="ham")))
    assert await gate.call(ME, UpdateMemory("b", update, request_id=ID)) == first
    assert (first.version, first.content) == (2, "jam")
    assert (await gate.call(ME, GetMemory("b", memory_id))).version == 3
    with pytest.raises(RequestIdReused):
        await gate.call(ME, UpdateMemory("b", replace(update, content="rum"), request_id=ID))
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,))))
    with pytest.raises(MemoryNotFound):
        await gate.call(ME, UpdateMemory("b", update, request_id=ID))


async def test_concurrent_equal_updates_make_one_version(gate: Gate) -> None:
    memory_id = (await gate.call(ME, Retain("b", RetainItem("tea")))).memory_id or ""
    update = MemoryUpdate(memory_id, frozenset({"tags"}), tags=("x",))
    made = await asyncio.gather(*(gate.call(ME, UpdateMemory("b", update, request_id=ID)) for _ in range(8)))
    assert {memory.version for memory in made} == {2}
    others = [replace(update, tags=(f"t{number}",)) for number in range(8)]
    made = await asyncio.gather(*(gate.call(ME, UpdateMemory("b", other)) for other in others))
    assert sorted(memory.version for memory in made) == list(range(3, 11))


async def test_a_repeated_undelete_gets_the_first_answer(gate: Gate) -> None:
    memory_id = (await gate.call(ME, Retain("b", RetainItem("tea")))).memory_id or ""
    selector = ForgetSelector(memory_ids=(memory_id,))
    await gate.call(ME, Forget("b", selector))
    back = await gate.call(ME, UndeleteMemory("b", memory_id, request_id=ID))
    assert await gate.call(ME, UndeleteMemory("b", memory_id, request_id=ID)) == back
    await gate.call(ME, Forget("b", selector))
    with pytest.raises(MemoryNotFound):
        await gate.call(ME, UndeleteMemory("b", memory_id, request_id=ID))
    assert await ids(gate) == []
    with pytest.raises(RequestIdReused):
        await gate.call(ME, UndeleteMemory("b", "mem_other", request_id=ID))


async def test_repeated_calls_on_banks_get_the_first_answer(gate: Gate) -> None:
    made = await gate.call(ME, CreateBank("b", display_name="one", request_id="c"))
    assert await gate.call(ME, CreateBank("b", display_name="one", request_id="c")) == made
    changed = await gate.call(ME, UpdateBank("b", description="about tea", etag=made.etag, request_id="u"))
    await gate.call(ME, UpdateBank("b", display_name="two", description="about jam"))
    assert await gate.call(ME, UpdateBank("b", description="about tea", etag=made.etag, request_id="u")) == changed
    await gate.call(ME, Retain("b", RetainItem("tea")))
    assert await gate.call(ME, DeleteBank("b", request_id="d")) == 1
    assert await gate.call(ME, DeleteBank("b", request_id="d")) == 1
    await gate.call(ME, CreateBank("b"))
    assert await gate.call(ME, DeleteBank("b", request_id="d")) == 1
    assert (await gate.call(ME, GetBank("b"))).key != made.key
    with pytest.raises(BankNotFound):
        await gate.call(ME, UpdateBank("b", description="about tea", etag=made.etag, request_id="u"))
    for again in (
        gate.call(ME, CreateBank("b", request_id="c")),
        gate.call(ME, UpdateBank("b", display_name="x", request_id="d")),
        gate.call(ME, DeleteBank("b", etag="x", request_id="d")),
        gate.call(ME, Retain("b", RetainItem("tea"), request_id="d")),
    ):
        with pytest.raises(RequestIdReused):
            await again
    for wrong in ("", "x" * 129, "a\n"):
        with pytest.raises(ValidationError) as caught:
            await gate.call(ME, DeleteBank("b", request_id=wrong))
        assert caught.value.field == "request_id"


async def test_concurrent_equal_requests_store_once(gate: Gate) -> None:
    await gate.call(ME, CreateBank("b"))
    answers = await asyncio.gather(*(gate.call(ME, Retain("b", RetainItem("tea"), request_id=ID)) for _ in range(10)))
    assert len(set(answers)) == 1
    assert answers[0].stored
    batches = await asyncio.gather(
        *(gate.call(ME, BatchRetain("b", [RetainItem("a"), RetainItem("b")], request_id="batch")) for _ in range(5))
    )
    assert all(batch == batches[0] for batch in batches)


async def test_a_repeated_request_whose_answer_was_to_skip(gate: Gate) -> None:
    kept = await gate.call(ME, Retain("b", RetainItem("the tea is on the table")))
    first = await gate.call(ME, Retain("b", RetainItem("The tea is on the table!"), request_id=ID))
    assert first.deduplicated
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(kept.memory_id or "",))))
    assert await gate.call(ME, Retain("b", RetainItem("The tea is on the table!"), request_id=ID)) == first


async def test_validate_only_changes_nothing(gate: Gate) -> None:
    assert await gate.call(ME, Retain("b", RetainItem("tea"), validate_only=True)) == RetainResult(stored=False)
    assert (
        await gate.call(ME, BatchRetain("b", [RetainItem("tea")] * 2, validate_only=True)) == [RetainResult(False)] * 2
    )
    with pytest.raises(ValidationError):
        await gate.call(ME, Retain("b", RetainItem("x", embedding=vector(1.0)), validate_only=True))
    with pytest.raises(BankNotFound):
        await gate.call(ME, GetBank("b"))
    memory_id = (await gate.call(ME, Retain("b", RetainItem("tea")))).memory_id or ""
    update = MemoryUpdate(memory_id, frozenset({"content"}), content="jam")
    assert (await gate.call(ME, UpdateMemory("b", update, validate_only=True))).content == "tea"
    with pytest.raises(MemoryNotFound):
        await gate.call(ME, UpdateMemory("b", replace(update, memory_id="mem_none"), validate_only=True))


async def test_update(gate: Gate) -> None:
    memory_id = (
        await gate.call(ME, Retain("b", RetainItem("tea at noon", tags=("a",), speaker="Ann")))
    ).memory_id or ""
    before = await gate.call(ME, GetMemory("b", memory_id))
    changed = await gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"tags"}), tags=("b", "b"))))
    assert (changed.version, changed.tags, changed.content, changed.speaker) == (2, ("b",), "tea at noon", "Ann")
    # What was not changed is still found by meaning: its vector was kept.
    hit = (await gate.call(ME, Recall(RecallQuery("tea", "b")))).hits[0]
    assert {arm.arm for arm in hit.arms} == {"semantic", "keyword"}
    with pytest.raises(Conflict):
        await gate.call(
            ME, UpdateMemory("b", MemoryUpdate(memory_id, frozenset({"content"}), content="x", etag=before.etag))
        )
    update = MemoryUpdate(memory_id, frozenset({"content", "tags"}), content="coffee at ten", etag=changed.etag)
    latest = await gate.call(ME, UpdateMemory("b", update, request_id=ID))
    assert (latest.version, latest.content, latest.tags) == (3, "coffee at ten", ())
    assert await gate.call(ME, UpdateMemory("b", update, request_id=ID)) == latest
    assert (await gate.call(ME, Recall(RecallQuery("coffee", "b")))).hits[0].text == "coffee at ten"
    past = await gate.call(ME, History(RecallQuery("tea", "b", as_of=before.retained_at)))
    assert [hit.text for hit in past.hits] == ["tea at noon"]


async def test_clearing_fields(gate: Gate) -> None:
    item = RetainItem("tea", metadata={"a": 1}, source="s", occurred_at=datetime(2024, 1, 1, tzinfo=UTC))
    memory_id = (await gate.call(ME, Retain("b", item))).memory_id or ""
    fields = frozenset({"metadata", "source", "occurred_at"})
    cleared = await gate.call(ME, UpdateMemory("b", MemoryUpdate(memory_id, fields)))
    assert (cleared.metadata, cleared.source, cleared.occurred_at) == ({}, None, None)


async def test_forget_and_undelete(gate: Gate) -> None:
    memory_id = (await gate.call(ME, Retain("b", RetainItem("tea")))).memory_id or ""
    selector = ForgetSelector(memory_ids=(memory_id,))
    preview = await gate.call(ME, Forget("b", selector, dry_run=True))
    assert (preview.deleted_count, preview.memory_ids, preview.dry_run) == (1, (memory_id,), True)
    assert await ids(gate) == [memory_id]
    first = await gate.call(ME, Forget("b", selector, request_id=ID, reason="asked"))
    assert first.deleted_count == 1
    assert await gate.call(ME, Forget("b", selector, request_id=ID, reason="asked")) == first
    assert (await gate.call(ME, Forget("b", selector))).deleted_count == 0
    assert await ids(gate) == []
    with pytest.raises(MemoryNotFound):
        await gate.call(ME, GetMemory("b", memory_id))
    assert (await gate.call(ME, UndeleteMemory("b", memory_id))).memory_id == memory_id
    assert await ids(gate) == [memory_id]


async def test_erase_takes_forgotten_memories_too(gate: Gate) -> None:
    memory_id = (await gate.call(ME, Retain("b", RetainItem("tea")))).memory_id or ""
    selector = ForgetSelector(memory_ids=(memory_id,))
    await gate.call(ME, Forget("b", selector))
    assert (await gate.call(ME, Forget("b", selector, dry_run=True))).deleted_count == 0
    assert (await gate.call(ME, Forget("b", selector, dry_run=True, compliance=True))).deleted_count == 1
    erased = await gate.call(ME, Forget("b", selector, compliance=True))
    assert erased.deleted_count == 1
    assert erased.receipt is not None
    with pytest.raises(MemoryNotFound):
        await gate.call(ME, UndeleteMemory("b", memory_id))


async def test_selectors_combine(gate: Gate) -> None:
    one = (await gate.call(ME, Retain("b", RetainItem("tea", tags=("x",))))).memory_id or ""
    await gate.call(ME, Retain("b", RetainItem("jam", tags=("x",))))
    both = ForgetSelector(memory_ids=(one,), tags=("x",))
    assert (await gate.call(ME, Forget("b", both, dry_run=True))).memory_ids == (one,)
    with pytest.raises(ValidationError) as caught:
        await gate.call(ME, Forget("b", ForgetSelector()))
    assert caught.value.field == "selector"


async def test_paging_shows_one_state(gate: Gate) -> None:
    results = await gate.call(ME, BatchRetain("b", [RetainItem(f"tea {n}", tags=("t",)) for n in range(25)]))
    page = await gate.call(ME, ListMemories("b", page_size=10, tags=["t"]))
    seen = [memory.memory_id for memory in page.memories]
    assert page.total_size == 25
    await gate.call(ME, Retain("b", RetainItem("later", tags=("t",))))
    while page.next_page_token:
        page = await gate.call(ME, ListMemories("b", page_size=10, tags=["t"], page_token=page.next_page_token))
        seen += [memory.memory_id for memory in page.memories]
    assert seen == [result.memory_id for result in results]


async def test_page_tokens_of_others_are_refused(gate: Gate) -> None:
    await gate.call(ME, BatchRetain("b", [RetainItem(f"tea {n}") for n in range(5)]))
    token = (await gate.call(ME, ListMemories("b", page_size=2))).next_page_token
    for options in ({"tags": ["x"]}, {"session_id": "s"}):
        with pytest.raises(ValidationError):
            await gate.call(ME, ListMemories("b", page_token=token, **options))
    await gate.call(ME, DeleteBank("b"))
    await gate.call(ME, Retain("b", RetainItem("another bank of that name")))
    with pytest.raises(ValidationError) as caught:
        await gate.call(ME, ListMemories("b", page_token=token))
    assert caught.value.field == "page_token"


async def test_listing_banks(gate: Gate) -> None:
    for name in ("b2", "a", "b1", "b3", "B"):
        await gate.call(ME, CreateBank(name))
    page = await gate.call(ME, ListBanks(prefix="b", page_size=2))
    assert [bank.bank_id for bank in page.banks] == ["b1", "b2"]
    page = await gate.call(ME, ListBanks(prefix="b", page_size=2, page_token=page.next_page_token))
    assert [bank.bank_id for bank in page.banks] == ["b3"]
    assert page.next_page_token == ""
    with pytest.raises(ValidationError):
        await gate.call(ME, ListBanks(prefix="a b"))


async def test_banks_of_their_own_space(gate: Gate) -> None:
    await gate.call(ME, CreateBank("own", embedding_model="mine", dimensions=2, display_name="Own"))
    with pytest.raises(AlreadyExists):
        await gate.call(ME, CreateBank("own"))
    with pytest.raises(DimensionMismatch, match="send a vector"):
        await gate.call(ME, Retain("own", RetainItem("tea")))
    with pytest.raises(DimensionMismatch) as caught:
        await gate.call(ME, Retain("own", RetainItem("tea", embedding=vector(1.0, 2.0, 3.0))))
    assert caught.value.field == "embedding.dimensions"
    with pytest.raises(DimensionMismatch) as caught:
        await gate.call(ME, Retain("own", RetainItem("tea", embedding=vector(1.0, 2.0, model="other"))))
    assert caught.value.field == "embedding.model"
    await gate.call(ME, Retain("own", RetainItem("green tea", embedding=vector(1.0, 0.0))))
    await gate.call(ME, Retain("own", RetainItem("black tea", embedding=vector(0.0, 1.0))))
    by_words = await gate.call(ME, Recall(RecallQuery("green", "own")))
    assert by_words.trace is not None
    assert by_words.trace.strategies_used == ("keyword",)
    assert [hit.text for hit in by_words.hits] == ["green tea"]
    by_vector = await gate.call(ME, Recall(RecallQuery("", "own", embedding=vector(0.1, 1.0))))
    assert by_vector.hits[0].text == "black tea"
    with pytest.raises(DimensionMismatch) as caught:
        await gate.call(ME, BatchRecall([RecallQuery("tea", "own"), RecallQuery("t", "own", embedding=vector(1.0))]))
    assert caught.value.field == "queries[1].embedding.dimensions"


@pytest.mark.parametrize(
    ("model", "dimensions", "field"),
    [(None, 3, "dimensions"), ("mine", None, "dimensions"), ("mine", 0, "dimensions"), ("", 3, "embedding_model")],
)
async def test_spaces_that_are_none(gate: Gate, model: str | None, dimensions: int | None, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        await gate.call(ME, CreateBank("b", embedding_model=model, dimensions=dimensions))
    assert caught.value.field == field


async def test_updating_and_deleting_a_bank(gate: Gate) -> None:
    made = await gate.call(ME, CreateBank("b", display_name="one"))
    changed = await gate.call(ME, UpdateBank("b", description="about tea", etag=made.etag))
    assert (changed.display_name, changed.description) == ("one", "about tea")
    with pytest.raises(Conflict):
        await gate.call(ME, UpdateBank("b", display_name="two", etag=made.etag))
    with pytest.raises(ValidationError):
        await gate.call(ME, UpdateBank("b"))
    await gate.call(ME, Retain("b", RetainItem("tea")))
    assert await gate.call(ME, DeleteBank("b")) == 1
    with pytest.raises(BankNotFound):
        await gate.call(ME, Recall(RecallQuery("tea", "b")))
    await gate.call(ME, CreateBank("b"))
    assert await ids(gate) == []


async def test_stats_and_info(gate: Gate) -> None:
    await gate.call(ME, Retain("b", RetainItem("tea for two")))
    stats = await gate.call(ME, GetBankStats("b"))
    assert (stats.memory_count, stats.position, stats.indexed_position) == (1, 1, 1)
    assert stats.index_bytes > 0
    info = await gate.call(ME, GetServerInfo())
    assert info.dimensions == 256
    assert info.store == "in_memory"


async def test_min_position(gate: Gate) -> None:
    written = await gate.call(ME, Retain("b", RetainItem("tea")))
    assert len(await ids(gate, min_position=written.position)) == 1

    async def later() -> RetainResult:
        await asyncio.sleep(0.02)
        return await gate.call(ME, Retain("b", RetainItem("jam")))

    found, _ = await asyncio.gather(ids(gate, min_position=2), later())
    assert len(found) == 2


async def test_a_position_that_never_comes() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "recall": {"min_position_seconds": 0.02}}))
    await app.gate.call(ME, Retain("b", RetainItem("tea")))
    with pytest.raises(FailedPrecondition):
        await app.gate.call(ME, Recall(RecallQuery("tea", "b", min_position=2)))
    await app.close()


async def test_batches_of_queries_equal_single_ones(gate: Gate) -> None:
    await gate.call(
        ME,
        BatchRetain(
            "b",
            [
                RetainItem(
                    f"tea number {n} in the kitchen", occurred_at=datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=n)
                )
                for n in range(40)
            ],
        ),
    )
    await gate.call(ME, Retain("c", RetainItem("tea elsewhere")))
    queries = [
        RecallQuery("tea", "b"),
        RecallQuery("tea", "c"),
        RecallQuery("kitchen in January 2024", "b", max_results=3),
        RecallQuery("number 7", "b", max_tokens=12, detail_level=RecallQuery("x", "b").detail_level),
    ]
    batch = await gate.call(ME, BatchRecall(queries))
    for query, together in zip(queries, batch, strict=True):
        alone = await gate.call(ME, Recall(query))
        assert (together.hits, together.total_available, together.truncated) == (
            alone.hits,
            alone.total_available,
            alone.truncated,
        )
    with pytest.raises(BankNotFound):
        await gate.call(ME, BatchRecall([*queries, RecallQuery("x", "none")]))


async def test_history_needs_an_instant(gate: Gate) -> None:
    with pytest.raises(ValidationError) as caught:
        await gate.call(ME, History(RecallQuery("x", "b")))
    assert caught.value.field == "as_of"


async def test_watch(gate: Gate) -> None:
    memory_id = (await gate.call(ME, Retain("b", RetainItem("tea")))).memory_id or ""
    changes = gate.stream(ME, Watch("b", after_position=0))
    first = await anext(changes)
    assert (first.position, first.kind, first.memory_id) == (1, ChangeKind.CREATED, memory_id)
    following = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.01)
    assert not following.done()
    await gate.call(ME, Forget("b", ForgetSelector(memory_ids=(memory_id,))))
    assert (await following).kind is ChangeKind.FORGOTTEN
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.01)
    await gate.call(ME, DeleteBank("b"))
    with pytest.raises(BankNotFound):
        await waiting


async def test_watching_from_now_on(gate: Gate) -> None:
    await gate.call(ME, Retain("b", RetainItem("tea")))
    changes = gate.stream(ME, Watch("b"))
    following = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.01)
    await gate.call(ME, Retain("b", RetainItem("jam")))
    assert (await following).position == 2
    await changes.aclose()  # type: ignore[attr-defined] # an async generator
    with pytest.raises(ValidationError):
        await anext(gate.stream(ME, Watch("b", after_position=-1)))


async def test_every_error_is_of_our_tree(gate: Gate) -> None:
    await gate.call(ME, CreateBank("b"))
    strange: list[Any] = [None, 3, b"x", [], "\ud800", "\x00", "x" * 300]
    for value in strange:
        for call in (
            gate.call(ME, GetMemory(value, "m")),
            gate.call(ME, GetMemory("b", value)),
            gate.call(ME, Retain("b", RetainItem(value))) if value != "x" * 300 else gate.call(ME, GetBank(value)),
            gate.call(ME, Recall(RecallQuery(value, "b"))) if value != "x" * 300 else gate.call(ME, GetBank(value)),
            gate.call(ME, ListMemories("b", session_id=value)) if value is not None else gate.call(ME, GetBank("")),
        ):
            with pytest.raises(AstrocyteError):
                await call


async def test_a_bank_has_limits_of_its_own() -> None:
    banks = {"small": {"homeostasis": {"retain_max_content_bytes": 8, "recall_max_tokens": 2}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "banks": banks}))
    gate, long = app.gate, RetainItem("we drank tea in the garden")
    stored = await gate.call(ME, Retain("large", long))
    update = MemoryUpdate(stored.memory_id or "", frozenset({"content"}), content=long.content + "!")
    calls: list[Callable[[str], Awaitable[object]]] = [
        lambda bank: gate.call(ME, Retain(bank, long)),
        lambda bank: gate.call(ME, BatchRetain(bank, [long])),
        lambda bank: gate.call(ME, UpdateMemory(bank, update)),
    ]
    await gate.call(ME, Retain("small", RetainItem("tea")))
    for call in calls:
        with pytest.raises(ValidationError, match="the limit is 8"):
            await call("small")
        await call("large")
    (refused,) = await gate.call(ME, StreamRetain("small", [long]))
    assert isinstance(refused, ValidationError)
    await gate.call(ME, Retain("small", RetainItem("jam tea")))
    for bank, budget in (("small", 2), ("large", 100)):
        single = await gate.call(ME, Recall(RecallQuery("tea", bank, max_tokens=100)))
        (batched,) = await gate.call(ME, BatchRecall([RecallQuery("tea", bank, max_tokens=100)]))
        assert sum(hit.token_count for hit in single.hits) <= budget
        assert single.truncated == batched.truncated == (bank == "small")
    await app.close()
