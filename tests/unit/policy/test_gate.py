import asyncio
import inspect
import struct
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.app import App
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
from astrocyte.policy.backend import Backend
from astrocyte.policy.gate import Gate

ME = Caller()
ID = "8d4f9f3c-7a34-4a6e-9a3b-1d6f4c7e2b10"


def vector(*values: float, model: str = "mine") -> Embedding:
    return Embedding(model, len(values), struct.pack(f"<{len(values)}f", *values))


async def ids(gate: Gate, query: str = "tea", bank_id: str = "b", **options: Any) -> list[str | None]:
    return [hit.memory_id for hit in (await gate.recall(ME, RecallQuery(query, bank_id, **options))).hits]


def test_the_gate_has_the_surface_of_a_backend() -> None:
    names = [name for name, value in vars(Backend).items() if callable(value) and not name.startswith("_")]
    assert len(names) == 42
    for name in names:
        ours = inspect.signature(getattr(Gate, name)).parameters
        wanted = inspect.signature(getattr(Backend, name)).parameters
        assert [(one.name, one.kind, one.default) for one in ours.values()] == [
            (one.name, one.kind, one.default) for one in wanted.values()
        ], name


async def test_a_memory_is_found_by_the_next_recall(gate: Gate) -> None:
    for number in range(50):
        result = await gate.retain(ME, "b", RetainItem(f"note {number} about the lighthouse"))
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
            await gate.retain(ME, "b", item)
        with pytest.raises(ValidationError) as caught:
            await gate.retain_batch(ME, "b", [RetainItem("fine"), item])
        assert caught.value.field.startswith("items[1].")
    with pytest.raises(BankNotFound):
        await gate.get_bank(ME, "b")


async def test_banks_are_not_made_where_that_is_switched_off() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "bank_defaults": {"auto_create": False}}))
    with pytest.raises(BankNotFound):
        await app.gate.retain(ME, "b", RetainItem("tea"))
    await app.gate.create_bank(ME, "b")
    assert (await app.gate.retain(ME, "b", RetainItem("tea"))).stored
    await app.close()


async def test_reads_make_no_bank(gate: Gate) -> None:
    for call in (
        gate.recall(ME, RecallQuery("x", "none")),
        gate.history(ME, RecallQuery("x", "none", as_of=datetime.now(UTC))),
        gate.forget(ME, "none", ForgetSelector(scope="all")),
        gate.bank_stats(ME, "none"),
        gate.delete_bank(ME, "none"),
        gate.list_memories(ME, "none"),
        gate.undelete(ME, "none", "mem_1"),
    ):
        with pytest.raises(BankNotFound):
            await call


async def test_two_first_writers_share_a_bank(gate: Gate) -> None:
    results = await asyncio.gather(*(gate.retain(ME, "b", RetainItem(f"tea {n}")) for n in range(20)))
    assert all(result.stored for result in results)
    assert (await gate.bank_stats(ME, "b")).memory_count == 20


async def test_tenants_do_not_meet(gate: Gate) -> None:
    other = Caller("other", "p")
    await gate.retain(ME, "b", RetainItem("tea"))
    with pytest.raises(BankNotFound):
        await gate.recall(other, RecallQuery("tea", "b"))
    await gate.retain(other, "b", RetainItem("tea of another"))
    assert len(await ids(gate)) == 1


async def test_a_batch_is_all_or_nothing(gate: Gate) -> None:
    await gate.create_bank(ME, "b")
    with pytest.raises(ValidationError) as caught:
        await gate.retain_batch(ME, "b", [RetainItem("tea"), RetainItem(" ")])
    assert caught.value.field == "items[1].content"
    assert await ids(gate) == []
    results = await gate.retain_batch(
        ME, "b", [RetainItem("green tea"), RetainItem("black tea"), RetainItem("green  tea")]
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
    results = await gate.retain_many(ME, "b", items)
    assert [type(result) for result in results] == [
        RetainResult,
        ValidationError,
        ValidationError,
        DimensionMismatch,
        RetainResult,
    ]
    assert len(await ids(gate)) == 2
    with pytest.raises(ValidationError):
        await gate.retain_many(ME, "bad id", items)
    with pytest.raises(ValidationError):
        await gate.retain_many(ME, "b", items, request_ids=["x"])


async def test_many_items_with_request_ids(gate: Gate) -> None:
    items = [RetainItem("tea"), RetainItem("jam"), RetainItem("ham")]
    first = await gate.retain_many(ME, "b", items, request_ids=["1", None, "3"])
    again = await gate.retain_many(ME, "b", items, request_ids=["1", None, "3"])
    assert again[0] == first[0]
    assert again[2] == first[2]
    assert isinstance(again[1], RetainResult)
    assert again[1].deduplicated
    reused = await gate.retain_many(ME, "b", [RetainItem("rum")], request_ids=["1"])
    assert isinstance(reused[0], RequestIdReused)


async def test_a_repeated_request_gets_the_first_answer(gate: Gate) -> None:
    first = await gate.retain(ME, "b", RetainItem("tea"), request_id=ID)
    assert await gate.retain(ME, "b", RetainItem("tea"), request_id=ID) == first
    with pytest.raises(RequestIdReused):
        await gate.retain(ME, "b", RetainItem("coffee"), request_id=ID)
    with pytest.raises(RequestIdReused):
        await gate.retain(ME, "other", RetainItem("tea"), request_id=ID)
    with pytest.raises(BankNotFound):
        await gate.get_bank(ME, "other")
    # Another tenant's ids are its own.
    assert (await gate.retain(Caller("t2"), "b", RetainItem("x"), request_id=ID)).stored


async def test_a_repeated_update_gets_the_version_that_the_first_made(gate: Gate) -> None:
    memory_id = (await gate.retain(ME, "b", RetainItem("tea"))).memory_id or ""
    update = MemoryUpdate(memory_id, frozenset({"content"}), content="jam")
    first = await gate.update_memory(ME, "b", update, request_id=ID)
    await gate.update_memory(ME, "b", replace(update, content="ham"))
    assert await gate.update_memory(ME, "b", update, request_id=ID) == first
    assert (first.version, first.content) == (2, "jam")
    assert (await gate.get_memory(ME, "b", memory_id)).version == 3
    with pytest.raises(RequestIdReused):
        await gate.update_memory(ME, "b", replace(update, content="rum"), request_id=ID)
    await gate.forget(ME, "b", ForgetSelector(memory_ids=(memory_id,)))
    with pytest.raises(MemoryNotFound):
        await gate.update_memory(ME, "b", update, request_id=ID)


async def test_concurrent_equal_updates_make_one_version(gate: Gate) -> None:
    memory_id = (await gate.retain(ME, "b", RetainItem("tea"))).memory_id or ""
    update = MemoryUpdate(memory_id, frozenset({"tags"}), tags=("x",))
    made = await asyncio.gather(*(gate.update_memory(ME, "b", update, request_id=ID) for _ in range(8)))
    assert {memory.version for memory in made} == {2}
    others = [replace(update, tags=(f"t{number}",)) for number in range(8)]
    made = await asyncio.gather(*(gate.update_memory(ME, "b", other) for other in others))
    assert sorted(memory.version for memory in made) == list(range(3, 11))


async def test_a_repeated_undelete_gets_the_first_answer(gate: Gate) -> None:
    memory_id = (await gate.retain(ME, "b", RetainItem("tea"))).memory_id or ""
    selector = ForgetSelector(memory_ids=(memory_id,))
    await gate.forget(ME, "b", selector)
    back = await gate.undelete(ME, "b", memory_id, request_id=ID)
    assert await gate.undelete(ME, "b", memory_id, request_id=ID) == back
    await gate.forget(ME, "b", selector)
    with pytest.raises(MemoryNotFound):
        await gate.undelete(ME, "b", memory_id, request_id=ID)
    assert await ids(gate) == []
    with pytest.raises(RequestIdReused):
        await gate.undelete(ME, "b", "mem_other", request_id=ID)


async def test_repeated_calls_on_banks_get_the_first_answer(gate: Gate) -> None:
    made = await gate.create_bank(ME, "b", display_name="one", request_id="c")
    assert await gate.create_bank(ME, "b", display_name="one", request_id="c") == made
    changed = await gate.update_bank(ME, "b", description="about tea", etag=made.etag, request_id="u")
    await gate.update_bank(ME, "b", display_name="two", description="about jam")
    assert await gate.update_bank(ME, "b", description="about tea", etag=made.etag, request_id="u") == changed
    await gate.retain(ME, "b", RetainItem("tea"))
    assert await gate.delete_bank(ME, "b", request_id="d") == 1
    assert await gate.delete_bank(ME, "b", request_id="d") == 1
    await gate.create_bank(ME, "b")
    assert await gate.delete_bank(ME, "b", request_id="d") == 1
    assert (await gate.get_bank(ME, "b")).key != made.key
    with pytest.raises(BankNotFound):
        await gate.update_bank(ME, "b", description="about tea", etag=made.etag, request_id="u")
    for again in (
        gate.create_bank(ME, "b", request_id="c"),
        gate.update_bank(ME, "b", display_name="x", request_id="d"),
        gate.delete_bank(ME, "b", etag="x", request_id="d"),
        gate.retain(ME, "b", RetainItem("tea"), request_id="d"),
    ):
        with pytest.raises(RequestIdReused):
            await again
    for wrong in ("", "x" * 129, "a\n"):
        with pytest.raises(ValidationError) as caught:
            await gate.delete_bank(ME, "b", request_id=wrong)
        assert caught.value.field == "request_id"


async def test_concurrent_equal_requests_store_once(gate: Gate) -> None:
    await gate.create_bank(ME, "b")
    answers = await asyncio.gather(*(gate.retain(ME, "b", RetainItem("tea"), request_id=ID) for _ in range(10)))
    assert len(set(answers)) == 1
    assert answers[0].stored
    batches = await asyncio.gather(
        *(gate.retain_batch(ME, "b", [RetainItem("a"), RetainItem("b")], request_id="batch") for _ in range(5))
    )
    assert all(batch == batches[0] for batch in batches)


async def test_a_repeated_request_whose_answer_was_to_skip(gate: Gate) -> None:
    kept = await gate.retain(ME, "b", RetainItem("the tea is on the table"))
    first = await gate.retain(ME, "b", RetainItem("The tea is on the table!"), request_id=ID)
    assert first.deduplicated
    await gate.forget(ME, "b", ForgetSelector(memory_ids=(kept.memory_id or "",)))
    assert await gate.retain(ME, "b", RetainItem("The tea is on the table!"), request_id=ID) == first


async def test_validate_only_changes_nothing(gate: Gate) -> None:
    assert await gate.retain(ME, "b", RetainItem("tea"), validate_only=True) == RetainResult(stored=False)
    assert await gate.retain_batch(ME, "b", [RetainItem("tea")] * 2, validate_only=True) == [RetainResult(False)] * 2
    with pytest.raises(ValidationError):
        await gate.retain(ME, "b", RetainItem("x", embedding=vector(1.0)), validate_only=True)
    with pytest.raises(BankNotFound):
        await gate.get_bank(ME, "b")
    memory_id = (await gate.retain(ME, "b", RetainItem("tea"))).memory_id or ""
    update = MemoryUpdate(memory_id, frozenset({"content"}), content="jam")
    assert (await gate.update_memory(ME, "b", update, validate_only=True)).content == "tea"
    with pytest.raises(MemoryNotFound):
        await gate.update_memory(ME, "b", replace(update, memory_id="mem_none"), validate_only=True)


async def test_update(gate: Gate) -> None:
    memory_id = (await gate.retain(ME, "b", RetainItem("tea at noon", tags=("a",), speaker="Ann"))).memory_id or ""
    before = await gate.get_memory(ME, "b", memory_id)
    changed = await gate.update_memory(ME, "b", MemoryUpdate(memory_id, frozenset({"tags"}), tags=("b", "b")))
    assert (changed.version, changed.tags, changed.content, changed.speaker) == (2, ("b",), "tea at noon", "Ann")
    # What was not changed is still found by meaning: its vector was kept.
    hit = (await gate.recall(ME, RecallQuery("tea", "b"))).hits[0]
    assert {arm.arm for arm in hit.arms} == {"semantic", "keyword"}
    with pytest.raises(Conflict):
        await gate.update_memory(
            ME, "b", MemoryUpdate(memory_id, frozenset({"content"}), content="x", etag=before.etag)
        )
    update = MemoryUpdate(memory_id, frozenset({"content", "tags"}), content="coffee at ten", etag=changed.etag)
    latest = await gate.update_memory(ME, "b", update, request_id=ID)
    assert (latest.version, latest.content, latest.tags) == (3, "coffee at ten", ())
    assert await gate.update_memory(ME, "b", update, request_id=ID) == latest
    assert (await gate.recall(ME, RecallQuery("coffee", "b"))).hits[0].text == "coffee at ten"
    past = await gate.history(ME, RecallQuery("tea", "b", as_of=before.retained_at))
    assert [hit.text for hit in past.hits] == ["tea at noon"]


async def test_clearing_fields(gate: Gate) -> None:
    item = RetainItem("tea", metadata={"a": 1}, source="s", occurred_at=datetime(2024, 1, 1, tzinfo=UTC))
    memory_id = (await gate.retain(ME, "b", item)).memory_id or ""
    fields = frozenset({"metadata", "source", "occurred_at"})
    cleared = await gate.update_memory(ME, "b", MemoryUpdate(memory_id, fields))
    assert (cleared.metadata, cleared.source, cleared.occurred_at) == ({}, None, None)


async def test_forget_and_undelete(gate: Gate) -> None:
    memory_id = (await gate.retain(ME, "b", RetainItem("tea"))).memory_id or ""
    selector = ForgetSelector(memory_ids=(memory_id,))
    preview = await gate.forget(ME, "b", selector, dry_run=True)
    assert (preview.deleted_count, preview.memory_ids, preview.dry_run) == (1, (memory_id,), True)
    assert await ids(gate) == [memory_id]
    first = await gate.forget(ME, "b", selector, request_id=ID, reason="asked")
    assert first.deleted_count == 1
    assert await gate.forget(ME, "b", selector, request_id=ID, reason="asked") == first
    assert (await gate.forget(ME, "b", selector)).deleted_count == 0
    assert await ids(gate) == []
    with pytest.raises(MemoryNotFound):
        await gate.get_memory(ME, "b", memory_id)
    assert (await gate.undelete(ME, "b", memory_id)).memory_id == memory_id
    assert await ids(gate) == [memory_id]


async def test_erase_takes_forgotten_memories_too(gate: Gate) -> None:
    memory_id = (await gate.retain(ME, "b", RetainItem("tea"))).memory_id or ""
    selector = ForgetSelector(memory_ids=(memory_id,))
    await gate.forget(ME, "b", selector)
    assert (await gate.forget(ME, "b", selector, dry_run=True)).deleted_count == 0
    assert (await gate.forget(ME, "b", selector, dry_run=True, compliance=True)).deleted_count == 1
    erased = await gate.forget(ME, "b", selector, compliance=True)
    assert erased.deleted_count == 1
    assert erased.receipt is not None
    with pytest.raises(MemoryNotFound):
        await gate.undelete(ME, "b", memory_id)


async def test_selectors_combine(gate: Gate) -> None:
    one = (await gate.retain(ME, "b", RetainItem("tea", tags=("x",)))).memory_id or ""
    await gate.retain(ME, "b", RetainItem("jam", tags=("x",)))
    both = ForgetSelector(memory_ids=(one,), tags=("x",))
    assert (await gate.forget(ME, "b", both, dry_run=True)).memory_ids == (one,)
    with pytest.raises(ValidationError) as caught:
        await gate.forget(ME, "b", ForgetSelector())
    assert caught.value.field == "selector"


async def test_paging_shows_one_state(gate: Gate) -> None:
    results = await gate.retain_batch(ME, "b", [RetainItem(f"tea {n}", tags=("t",)) for n in range(25)])
    page = await gate.list_memories(ME, "b", page_size=10, tags=["t"])
    seen = [memory.memory_id for memory in page.memories]
    assert page.total_size == 25
    await gate.retain(ME, "b", RetainItem("later", tags=("t",)))
    while page.next_page_token:
        page = await gate.list_memories(ME, "b", page_size=10, tags=["t"], page_token=page.next_page_token)
        seen += [memory.memory_id for memory in page.memories]
    assert seen == [result.memory_id for result in results]


async def test_page_tokens_of_others_are_refused(gate: Gate) -> None:
    await gate.retain_batch(ME, "b", [RetainItem(f"tea {n}") for n in range(5)])
    token = (await gate.list_memories(ME, "b", page_size=2)).next_page_token
    for options in ({"tags": ["x"]}, {"session_id": "s"}):
        with pytest.raises(ValidationError):
            await gate.list_memories(ME, "b", page_token=token, **options)
    await gate.delete_bank(ME, "b")
    await gate.retain(ME, "b", RetainItem("another bank of that name"))
    with pytest.raises(ValidationError) as caught:
        await gate.list_memories(ME, "b", page_token=token)
    assert caught.value.field == "page_token"


async def test_listing_banks(gate: Gate) -> None:
    for name in ("b2", "a", "b1", "b3", "B"):
        await gate.create_bank(ME, name)
    page = await gate.list_banks(ME, prefix="b", page_size=2)
    assert [bank.bank_id for bank in page.banks] == ["b1", "b2"]
    page = await gate.list_banks(ME, prefix="b", page_size=2, page_token=page.next_page_token)
    assert [bank.bank_id for bank in page.banks] == ["b3"]
    assert page.next_page_token == ""
    with pytest.raises(ValidationError):
        await gate.list_banks(ME, prefix="a b")


async def test_banks_of_their_own_space(gate: Gate) -> None:
    await gate.create_bank(ME, "own", embedding_model="mine", dimensions=2, display_name="Own")
    with pytest.raises(AlreadyExists):
        await gate.create_bank(ME, "own")
    with pytest.raises(DimensionMismatch, match="send a vector"):
        await gate.retain(ME, "own", RetainItem("tea"))
    with pytest.raises(DimensionMismatch) as caught:
        await gate.retain(ME, "own", RetainItem("tea", embedding=vector(1.0, 2.0, 3.0)))
    assert caught.value.field == "embedding.dimensions"
    with pytest.raises(DimensionMismatch) as caught:
        await gate.retain(ME, "own", RetainItem("tea", embedding=vector(1.0, 2.0, model="other")))
    assert caught.value.field == "embedding.model"
    await gate.retain(ME, "own", RetainItem("green tea", embedding=vector(1.0, 0.0)))
    await gate.retain(ME, "own", RetainItem("black tea", embedding=vector(0.0, 1.0)))
    by_words = await gate.recall(ME, RecallQuery("green", "own"))
    assert by_words.trace is not None
    assert by_words.trace.strategies_used == ("keyword",)
    assert [hit.text for hit in by_words.hits] == ["green tea"]
    by_vector = await gate.recall(ME, RecallQuery("", "own", embedding=vector(0.1, 1.0)))
    assert by_vector.hits[0].text == "black tea"
    with pytest.raises(DimensionMismatch) as caught:
        await gate.recall_batch(ME, [RecallQuery("tea", "own"), RecallQuery("t", "own", embedding=vector(1.0))])
    assert caught.value.field == "queries[1].embedding.dimensions"


@pytest.mark.parametrize(
    ("model", "dimensions", "field"),
    [(None, 3, "dimensions"), ("mine", None, "dimensions"), ("mine", 0, "dimensions"), ("", 3, "embedding_model")],
)
async def test_spaces_that_are_none(gate: Gate, model: str | None, dimensions: int | None, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        await gate.create_bank(ME, "b", embedding_model=model, dimensions=dimensions)
    assert caught.value.field == field


async def test_updating_and_deleting_a_bank(gate: Gate) -> None:
    made = await gate.create_bank(ME, "b", display_name="one")
    changed = await gate.update_bank(ME, "b", description="about tea", etag=made.etag)
    assert (changed.display_name, changed.description) == ("one", "about tea")
    with pytest.raises(Conflict):
        await gate.update_bank(ME, "b", display_name="two", etag=made.etag)
    with pytest.raises(ValidationError):
        await gate.update_bank(ME, "b")
    await gate.retain(ME, "b", RetainItem("tea"))
    assert await gate.delete_bank(ME, "b") == 1
    with pytest.raises(BankNotFound):
        await gate.recall(ME, RecallQuery("tea", "b"))
    await gate.create_bank(ME, "b")
    assert await ids(gate) == []


async def test_stats_and_info(gate: Gate) -> None:
    await gate.retain(ME, "b", RetainItem("tea for two"))
    stats = await gate.bank_stats(ME, "b")
    assert (stats.memory_count, stats.position, stats.indexed_position) == (1, 1, 1)
    assert stats.index_bytes > 0
    info = await gate.server_info(ME)
    assert info.dimensions == 256
    assert info.store == "in_memory"


async def test_min_position(gate: Gate) -> None:
    written = await gate.retain(ME, "b", RetainItem("tea"))
    assert len(await ids(gate, min_position=written.position)) == 1

    async def later() -> RetainResult:
        await asyncio.sleep(0.02)
        return await gate.retain(ME, "b", RetainItem("jam"))

    found, _ = await asyncio.gather(ids(gate, min_position=2), later())
    assert len(found) == 2


async def test_a_position_that_never_comes() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "recall": {"min_position_seconds": 0.02}}))
    await app.gate.retain(ME, "b", RetainItem("tea"))
    with pytest.raises(FailedPrecondition):
        await app.gate.recall(ME, RecallQuery("tea", "b", min_position=2))
    await app.close()


async def test_batches_of_queries_equal_single_ones(gate: Gate) -> None:
    await gate.retain_batch(
        ME,
        "b",
        [
            RetainItem(
                f"tea number {n} in the kitchen", occurred_at=datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=n)
            )
            for n in range(40)
        ],
    )
    await gate.retain(ME, "c", RetainItem("tea elsewhere"))
    queries = [
        RecallQuery("tea", "b"),
        RecallQuery("tea", "c"),
        RecallQuery("kitchen in January 2024", "b", max_results=3),
        RecallQuery("number 7", "b", max_tokens=12, detail_level=RecallQuery("x", "b").detail_level),
    ]
    batch = await gate.recall_batch(ME, queries)
    for query, together in zip(queries, batch, strict=True):
        alone = await gate.recall(ME, query)
        assert (together.hits, together.total_available, together.truncated) == (
            alone.hits,
            alone.total_available,
            alone.truncated,
        )
    with pytest.raises(BankNotFound):
        await gate.recall_batch(ME, [*queries, RecallQuery("x", "none")])


async def test_history_needs_an_instant(gate: Gate) -> None:
    with pytest.raises(ValidationError) as caught:
        await gate.history(ME, RecallQuery("x", "b"))
    assert caught.value.field == "as_of"


async def test_watch(gate: Gate) -> None:
    memory_id = (await gate.retain(ME, "b", RetainItem("tea"))).memory_id or ""
    changes = gate.watch(ME, "b", after=0)
    first = await anext(changes)
    assert (first.position, first.kind, first.memory_id) == (1, ChangeKind.CREATED, memory_id)
    following = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.01)
    assert not following.done()
    await gate.forget(ME, "b", ForgetSelector(memory_ids=(memory_id,)))
    assert (await following).kind is ChangeKind.FORGOTTEN
    waiting = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.01)
    await gate.delete_bank(ME, "b")
    with pytest.raises(BankNotFound):
        await waiting


async def test_watching_from_now_on(gate: Gate) -> None:
    await gate.retain(ME, "b", RetainItem("tea"))
    changes = gate.watch(ME, "b")
    following = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(0.01)
    await gate.retain(ME, "b", RetainItem("jam"))
    assert (await following).position == 2
    await changes.aclose()  # type: ignore[attr-defined] # an async generator
    with pytest.raises(ValidationError):
        await anext(gate.watch(ME, "b", after=-1))


async def test_every_error_is_of_our_tree(gate: Gate) -> None:
    await gate.create_bank(ME, "b")
    strange: list[Any] = [None, 3, b"x", [], "\ud800", "\x00", "x" * 300]
    for value in strange:
        for call in (
            gate.get_memory(ME, value, "m"),
            gate.get_memory(ME, "b", value),
            gate.retain(ME, "b", RetainItem(value)) if value != "x" * 300 else gate.get_bank(ME, value),
            gate.recall(ME, RecallQuery(value, "b")) if value != "x" * 300 else gate.get_bank(ME, value),
            gate.list_memories(ME, "b", session_id=value) if value is not None else gate.get_bank(ME, ""),
        ):
            with pytest.raises(AstrocyteError):
                await call


async def test_a_bank_has_limits_of_its_own() -> None:
    banks = {"small": {"homeostasis": {"retain_max_content_bytes": 8, "recall_max_tokens": 2}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "banks": banks}))
    gate, long = app.gate, RetainItem("we drank tea in the garden")
    stored = await gate.retain(ME, "large", long)
    update = MemoryUpdate(stored.memory_id or "", frozenset({"content"}), content=long.content + "!")
    calls: list[Callable[[str], Awaitable[object]]] = [
        lambda bank: gate.retain(ME, bank, long),
        lambda bank: gate.retain_batch(ME, bank, [long]),
        lambda bank: gate.update_memory(ME, bank, update),
    ]
    await gate.retain(ME, "small", RetainItem("tea"))
    for call in calls:
        with pytest.raises(ValidationError, match="the limit is 8"):
            await call("small")
        await call("large")
    (refused,) = await gate.retain_many(ME, "small", [long])
    assert isinstance(refused, ValidationError)
    await gate.retain(ME, "small", RetainItem("jam tea"))
    for bank, budget in (("small", 2), ("large", 100)):
        single = await gate.recall(ME, RecallQuery("tea", bank, max_tokens=100))
        (batched,) = await gate.recall_batch(ME, [RecallQuery("tea", bank, max_tokens=100)])
        assert sum(hit.token_count for hit in single.hits) <= budget
        assert single.truncated == batched.truncated == (bank == "small")
    await app.close()
