"""What every memory store promises, on disk and in memory alike."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import fields
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from astrocyte.errors import (
    AlreadyExists,
    BankNotFound,
    Conflict,
    DimensionMismatch,
    MemoryNotFound,
    RequestIdReused,
    StoreError,
)
from astrocyte.model import Bank, ChangeKind, Entity, ForgetSelector, Memory, MemoryState
from astrocyte.pipelines.analysis import to_ms
from astrocyte.stores.protocols import (
    ChunkRecord,
    IndexBatch,
    Insert,
    MemoryStore,
    Passage,
    Replace,
    RequestKey,
    Visibility,
    WriteOutcome,
)
from astrocyte.stores.sqlite import open_store
from memories import (
    DIMENSIONS,
    MODEL,
    Clock,
    current,
    insert,
    listed,
    make_bank,
    memory,
    memory_id,
    replace,
    vector,
)

# The year 2286.
LATER = 10**13
EVERYTHING = ForgetSelector(scope="all")
RICH = memory(
    1,
    "Grüße aus Zürich 👋 — second line\nthird",
    content_type="conversation",
    fact_type="experience",
    memory_layer="episodic",
    chunks=(ChunkRecord("Grüße aus Zürich 👋", 4, vector(1.0)), ChunkRecord("third", 1, None)),
    tags=("b", "a", "ünï"),
    metadata={"n": 1, "f": 0.5, "s": "x", "t": True, "none": None, "big": 2**70},
    source="mail",
    session_id="s1",
    speaker="Ana",
    principal="someone",
    occurred_at=-1_000,
    valid_from=5,
    valid_until=4_102_444_800_000,
    entities=(Entity("Zürich", "PLACE"), Entity("Straße", "NAME")),
)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[MemoryStore]:
    opened = open_store(tmp_path / "data" if request.param == "file" else None, clock=clock, ballast_bytes=0)
    yield opened
    opened.close()


@pytest.fixture
async def bank(store: MemoryStore) -> Bank:
    return await make_bank(store)


def seen(store: MemoryStore, bank: Bank, visibility: Visibility | None = None, ordinal: int = -1) -> list[str]:
    """Ids that hydrate lets through when everything is proposed."""
    passages = [Passage(key, ordinal) for key in range(1, 200)]
    return sorted(row.memory_id for row in store.hydrate(bank, passages, visibility or Visibility()))


async def forget(store: MemoryStore, bank: Bank, selector: ForgetSelector, purge_after: int = LATER) -> list[str]:
    _, memory_ids, _ = await store.forget(bank, selector, reason="test", principal="tester", purge_after=purge_after)
    return memory_ids


class TestBanks:
    async def test_a_bank_is_what_it_was_made(self, store: MemoryStore, clock: Clock) -> None:
        made = await make_bank(store, "notes", display_name="Notes", description="Of the day")
        assert (made.tenant, made.bank_id, made.display_name, made.description) == (
            "default", "notes", "Notes", "Of the day",
        )  # fmt: skip
        assert (made.embedding_model, made.dimensions, made.position) == (MODEL, DIMENSIONS, 0)
        assert made.created_at == made.updated_at == datetime.fromtimestamp(clock.now / 1_000, UTC)
        assert store.get_bank("default", "notes") == made

    async def test_a_name_is_taken_once_per_tenant(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(AlreadyExists, match="bank"):
            await make_bank(store)
        other = await make_bank(store, tenant="other")
        assert other.key != bank.key
        assert store.get_bank("nobody", "bank") is None

    async def test_listing_goes_by_id_prefix_and_page(self, store: MemoryStore) -> None:
        for bank_id in ("b", "a", "a%", "a_c", "ab", "A"):
            await make_bank(store, bank_id)
        await make_bank(store, "a", tenant="other")
        ids = [one.bank_id for one in store.list_banks("default", prefix="", after="", limit=100)]
        assert ids == sorted(ids)
        assert len(ids) == 6
        assert [one.bank_id for one in store.list_banks("default", prefix="a", after="a", limit=2)] == ["a%", "a_c"]
        assert [one.bank_id for one in store.list_banks("default", prefix="a_", after="", limit=9)] == ["a_c"]

    async def test_an_update_keeps_what_is_not_named(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        clock.now += 5
        updated = await store.update_bank(bank, display_name="New", description=None, expected_etag=bank.etag)
        assert (updated.display_name, updated.description) == ("New", "")
        assert updated.etag != bank.etag
        assert updated.updated_at > updated.created_at
        with pytest.raises(Conflict):
            await store.update_bank(bank, display_name="Again", description=None, expected_etag=bank.etag)
        await insert(store, bank, memory(1))
        assert current(store, bank).etag == updated.etag

    async def test_deleting_takes_everything(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, RICH, *[memory(number) for number in range(2, 40)])
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(2),)))
        with pytest.raises(Conflict):
            await store.delete_bank(bank, expected_etag="other")
        assert await store.delete_bank(bank, expected_etag=current(store, bank).etag) == 38
        assert store.get_bank("default", "bank") is None
        assert seen(store, bank) == []
        assert store.changes(bank, after=0, limit=10) == []
        assert store.memory(bank, memory_id(1)) is None
        with pytest.raises(BankNotFound):
            await insert(store, bank, memory(100))
        with pytest.raises(BankNotFound):
            await store.delete_bank(bank, expected_etag=None)

    async def test_a_bank_made_again_is_another(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        await store.delete_bank(bank, expected_etag=None)
        again = await make_bank(store)
        assert again.key != bank.key
        assert again.position == 0
        assert listed(store, again) == []
        await insert(store, again, memory(1))
        assert seen(store, again) == [memory_id(1)]
        assert seen(store, bank) == []

    async def test_statistics_count_what_is_visible(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, RICH, memory(2, "two words"), memory(3, "three more words"))
        await replace(store, bank, memory(2, "now three words"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(3),)))
        stats = store.bank_stats(bank)
        assert (stats.memory_count, stats.chunk_count, stats.forgotten_count) == (2, 3, 1)
        assert stats.token_count == RICH.token_count + 3
        assert (stats.position, stats.indexed_position, stats.index_bytes) == (5, -1, 0)

    async def test_references_are_those_of_current_memories_in_words(self, store: MemoryStore, bank: Bank) -> None:
        named = {"also_relevant_to": "team,org"}
        await insert(
            store,
            bank,
            memory(1, metadata=named),
            memory(2),
            memory(3, metadata=named),
            memory(4, metadata=named),
            memory(5, metadata={"also_relevant_to": 7}),
        )
        await replace(store, bank, memory(3, "other words"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(4),)))
        (reference,) = store.references()
        assert (reference.tenant, reference.bank_id, reference.memory_id) == (bank.tenant, "bank", memory_id(1))
        assert reference.targets == ("team", "org")
        await store.delete_bank(bank, expected_etag=None)
        assert store.references() == []


class TestCommit:
    async def test_every_field_comes_back(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        (outcome,) = await insert(store, bank, RICH)
        assert (outcome.memory_id, outcome.position, outcome.version, outcome.duplicate_of) == (
            RICH.memory_id, 1, 1, None,
        )  # fmt: skip
        found = store.memory(bank, RICH.memory_id)
        assert found is not None
        for name in ("content", "content_type", "fact_type", "memory_layer", "tags", "metadata", "source",
                     "session_id", "speaker", "principal", "token_count", "entities"):  # fmt: skip
            assert getattr(found, name) == getattr(RICH, name), name
        now = datetime.fromtimestamp(clock.now / 1_000, UTC)
        assert (found.retained_at, found.updated_at, found.forgotten_at) == (now, now, None)
        assert found.occurred_at == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
        assert found.valid_from == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=5)
        assert found.valid_until == datetime(2100, 1, 1, tzinfo=UTC)
        assert (found.version, found.chunk_count, found.position, found.state) == (1, 2, 1, MemoryState.ACTIVE)
        assert store.versions(bank, RICH.memory_id) == [found]
        assert store.memory(bank, RICH.memory_id, version=1) == found
        assert store.memory(bank, RICH.memory_id, version=2) is None
        record = store.version(bank, RICH.memory_id)
        assert record is not None
        assert record.memory == RICH
        assert (record.version, record.known_from, record.known_until) == (1, clock.now, None)

    async def test_positions_count_changes(self, store: MemoryStore, bank: Bank) -> None:
        outcomes = await insert(store, bank, *[memory(number) for number in range(1, 131)])
        assert [outcome.position for outcome in outcomes] == list(range(1, 131))
        assert current(store, bank).position == 130
        other = await make_bank(store, "other")
        assert (await insert(store, other, memory(1)))[0].position == 1

    async def test_the_same_content_is_stored_once(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1, "same"))
        outcomes = await insert(store, bank, memory(2, "same"), memory(3, "new"), memory(4, "new"))
        assert [outcome.duplicate_of for outcome in outcomes] == [memory_id(1), None, memory_id(3)]
        assert listed(store, bank) == [memory_id(1), memory_id(3)]
        assert (await insert(store, await make_bank(store, "other"), memory(5, "same")))[0].duplicate_of is None

    async def test_only_current_visible_content_counts_as_the_same(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1, "old"), memory(2, "gone"))
        await replace(store, bank, memory(1, "new"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(2),)))
        outcomes = await insert(store, bank, memory(3, "old"), memory(4, "gone"), memory(5, "new"))
        assert [outcome.duplicate_of for outcome in outcomes] == [None, None, memory_id(1)]

    async def test_a_replacement_is_the_next_version(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, RICH)
        first = store.memory(bank, RICH.memory_id)
        assert first is not None
        clock.now += 1_000
        outcome = await replace(store, bank, memory(1, "new content", tags=("z",)), first.etag)
        assert (outcome.version, outcome.position) == (2, 2)
        second = store.memory(bank, RICH.memory_id)
        assert second is not None
        assert (second.content, second.tags, second.version) == ("new content", ("z",), 2)
        assert second.retained_at == first.retained_at < second.updated_at
        assert second.etag != first.etag
        assert store.versions(bank, RICH.memory_id) == [first, second]
        assert listed(store, bank, tags=("a",)) == []

    async def test_a_stale_etag_changes_nothing(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        with pytest.raises(Conflict):
            await store.commit(bank, [Insert(memory(2)), Replace(memory(1, "x"), "stale")])
        assert listed(store, bank) == [memory_id(1)]
        assert current(store, bank).position == 1

    async def test_what_is_not_there_cannot_be_replaced(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(MemoryNotFound):
            await replace(store, bank, memory(1))
        await insert(store, bank, memory(1))
        await forget(store, bank, EVERYTHING)
        with pytest.raises(MemoryNotFound):
            await replace(store, bank, memory(1, "new"))

    async def test_one_commit_may_replace_what_it_inserts(self, store: MemoryStore, bank: Bank) -> None:
        batches: list[IndexBatch] = []
        store.subscribe(batches.append)
        outcomes, _ = await store.commit(
            bank, [Insert(memory(1, "a")), Replace(memory(1, "b")), Insert(memory(2, "a")), Replace(memory(1, "c"))]
        )
        assert [(one.memory_id, one.version) for one in outcomes] == [
            (memory_id(1), 1), (memory_id(1), 2), (memory_id(2), 1), (memory_id(1), 3),
        ]  # fmt: skip
        assert [one.content for one in store.versions(bank, memory_id(1))] == ["a", "b", "c"]
        ((upserts, ended),) = [(batch.upserts, batch.ended) for batch in batches]
        assert ended == ()
        assert [(one.memory.content, one.known_until is None) for one in upserts] == [
            ("a", False), ("b", False), ("a", True), ("c", True),
        ]  # fmt: skip

    async def test_a_batch_with_a_wrong_vector_is_refused_as_a_whole(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(DimensionMismatch, match="16"):
            await insert(store, bank, memory(1), memory(2, vector=b"1234"))
        assert listed(store, bank) == []

    async def test_an_id_is_used_once(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        await forget(store, bank, EVERYTHING)
        with pytest.raises(AlreadyExists):
            await insert(store, bank, memory(2), memory(1, "other"))
        assert listed(store, bank) == []

    async def test_text_that_is_not_unicode_fails_alone(self, store: MemoryStore, bank: Bank) -> None:
        bad = memory(1, "ok", content_hash=b"h")
        with pytest.raises(StoreError):
            await insert(store, bank, changed(bad, content="lone \ud800"))
        await insert(store, bank, memory(2))
        assert listed(store, bank) == [memory_id(2)]

    async def test_concurrent_writers_share_no_failure(self, store: MemoryStore, bank: Bank) -> None:
        async def one(number: int) -> str:
            try:
                if number % 3 == 0:
                    await replace(store, bank, memory(10_000 + number))
                else:
                    await insert(store, bank, memory(number))
            except MemoryNotFound:
                return "missing"
            return "stored"

        results = await asyncio.gather(*(one(number) for number in range(90)))
        assert results.count("missing") == 30
        assert len(listed(store, bank)) == 60
        assert [change.position for change in store.changes(bank, after=0, limit=100)] == list(range(1, 61))

    async def test_a_caller_that_gives_up_does_not_stop_its_write(self, store: MemoryStore, bank: Bank) -> None:
        begun, release = threading.Event(), threading.Event()

        def respond(_: object) -> bytes:
            begun.set()
            release.wait(10)
            return b""

        key = RequestKey("r", "retain", b"f")
        task = asyncio.create_task(store.commit(bank, [Insert(memory(1))], request=key, respond=respond))
        assert await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        await insert(store, bank, memory(2))
        assert listed(store, bank) == [memory_id(1), memory_id(2)]


class TestRequests:
    KEY = RequestKey("id-1", "retain", b"fingerprint")

    async def test_a_retry_gets_the_first_answer(self, store: MemoryStore, bank: Bank) -> None:
        outcomes, response = await store.commit(
            bank, [Insert(memory(1))], request=self.KEY, respond=lambda done: done[0].memory_id.encode()
        )
        assert (len(outcomes), response) == (1, memory_id(1).encode())
        again = await store.commit(bank, [Insert(memory(2))], request=self.KEY, respond=lambda _: b"other")
        assert again == ([], response)
        assert store.find_response("default", self.KEY) == response
        assert store.find_response("other", self.KEY) is None
        assert listed(store, bank) == [memory_id(1)]

    async def test_concurrent_retries_write_once(self, store: MemoryStore, bank: Bank) -> None:
        async def attempt(number: int) -> bytes | None:
            writes = [Insert(memory(number))]
            _, response = await store.commit(
                bank, writes, request=self.KEY, respond=lambda done: done[0].memory_id.encode()
            )
            return response

        responses = await asyncio.gather(*(attempt(number) for number in range(1, 9)))
        assert set(responses) == {listed(store, bank)[0].encode()}

    @pytest.mark.parametrize(
        "other", [RequestKey("id-1", "retain", b"else"), RequestKey("id-1", "forget", b"fingerprint")]
    )
    async def test_another_request_with_the_id_is_refused(
        self, store: MemoryStore, bank: Bank, other: RequestKey
    ) -> None:
        await store.commit(bank, [Insert(memory(1))], request=self.KEY, respond=lambda _: b"x")
        with pytest.raises(RequestIdReused):
            store.find_response("default", other)
        with pytest.raises(RequestIdReused):
            await store.commit(bank, [Insert(memory(2))], request=other, respond=lambda _: b"x")
        assert listed(store, bank) == [memory_id(1)]

    async def test_a_failed_request_leaves_no_answer(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(MemoryNotFound):
            await store.commit(bank, [Replace(memory(1))], request=self.KEY, respond=lambda _: b"x")
        assert store.find_response("default", self.KEY) is None

    async def test_one_commit_answers_several_requests(self, store: MemoryStore, bank: Bank) -> None:
        other = RequestKey("id-2", "retain", b"other")

        def settle(outcomes: Sequence[WriteOutcome]) -> list[tuple[RequestKey, bytes]]:
            return [(self.KEY, outcomes[0].memory_id.encode()), (other, outcomes[1].memory_id.encode())]

        outcomes, response = await store.commit(bank, [Insert(memory(1)), Insert(memory(2))], settle=settle)
        assert ([one.position for one in outcomes], response) == ([1, 2], None)
        assert store.find_response("default", self.KEY) == memory_id(1).encode()
        assert store.find_response("default", other) == memory_id(2).encode()
        with pytest.raises(RequestIdReused):
            store.find_response("default", RequestKey("id-2", "retain", b"else"))

    async def test_several_requests_go_together_or_not_at_all(self, store: MemoryStore, bank: Bank) -> None:
        other = RequestKey("id-2", "retain", b"other")
        await store.commit(bank, [Insert(memory(1))], request=self.KEY, respond=lambda _: b"x")
        with pytest.raises(Conflict):
            await store.commit(bank, [Insert(memory(2))], settle=lambda _: [(other, b"y"), (self.KEY, b"z")])
        taken = RequestKey("id-1", "retain", b"else")
        with pytest.raises(RequestIdReused):
            await store.commit(bank, [Insert(memory(2))], settle=lambda _: [(other, b"y"), (taken, b"z")])
        assert listed(store, bank) == [memory_id(1)]
        assert store.find_response("default", self.KEY) == b"x"
        assert store.find_response("default", other) is None

    async def test_what_settling_raises_undoes_the_writes(self, store: MemoryStore, bank: Bank) -> None:
        seen: list[str | None] = []

        def settle(outcomes: Sequence[WriteOutcome]) -> list[tuple[RequestKey, bytes]]:
            seen.extend(one.duplicate_of for one in outcomes)
            raise Conflict("not as foreseen")

        await insert(store, bank, memory(1, "tea"))
        with pytest.raises(Conflict, match="not as foreseen"):
            await store.commit(bank, [Insert(memory(2, "tea")), Insert(memory(3))], settle=settle)
        assert seen == [memory_id(1), None]
        assert listed(store, bank) == [memory_id(1)]

    async def test_a_version_has_the_etag_of_its_memory(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        await replace(store, bank, memory(1, "new"))
        found, version = store.memory(bank, memory_id(1)), store.version(bank, memory_id(1))
        assert found is not None
        assert version is not None
        assert version.etag == found.etag

    async def test_a_bank_is_found_by_its_key_until_it_is_deleted(self, store: MemoryStore, bank: Bank) -> None:
        assert store.bank_of_key(bank.key) == current(store, bank)
        assert store.bank_of_key(bank.key + 1) is None
        await store.delete_bank(bank, expected_etag=None)
        assert store.bank_of_key(bank.key) is None

    async def test_records_of_some_memories_are_those_of_all(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 7)])
        await replace(store, bank, memory(2, "new"))
        before = current(store, bank).position
        for number in (3, 4):
            one = ForgetSelector(memory_ids=(memory_id(number),))
            await store.forget(bank, one, reason="", principal="", purge_after=LATER)
        await store.undelete(bank, memory_id(4))
        wanted = [memory_id(number) for number in (1, 2, 3, 4)] + ["mem_unknown"]
        position = current(store, bank).position
        everything = [record for part in store.iter_versions(bank) for record in part]
        found = store.version_records(bank, wanted, at_position=position)
        assert found == [record for record in everything if record.memory.memory_id in wanted]
        assert [record.memory.memory_id for record in found] == [memory_id(number) for number in (1, 2, 4, 2)]
        # As of before: what came back since comes with the change that brought it.
        assert [record.memory.memory_id for record in store.version_records(bank, wanted, at_position=before)] == [
            memory_id(number) for number in (1, 2, 2)
        ]
        ends = [record.known_until for record in store.version_records(bank, wanted, at_position=before - 1)]
        assert ends == [None, None]

    async def test_forget_and_erase_answer_a_retry(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 5)])
        key = RequestKey("f", "forget", b"1")
        selector = ForgetSelector(memory_ids=(memory_id(1),))
        first = await store.forget(bank, selector, reason="", principal="", purge_after=LATER, request=key)
        await insert(store, bank, memory(9))
        assert await store.forget(bank, selector, reason="", principal="", purge_after=LATER, request=key) == first
        erase = RequestKey("e", "erase", b"1")
        receipt = await store.erase(bank, selector, reason="", principal="", request=erase)
        assert await store.erase(bank, selector, reason="", principal="", request=erase) == receipt

    async def test_bank_calls_answer_a_retry(self, store: MemoryStore) -> None:
        create, update = RequestKey("c", "create_bank", b"1"), RequestKey("u", "update_bank", b"1")
        made = await make_bank(store, display_name="Notes", request=create)
        assert await make_bank(store, display_name="Notes", request=create) == made
        with pytest.raises(RequestIdReused):
            await make_bank(store, "other", request=RequestKey("c", "create_bank", b"2"))
        assert store.get_bank("default", "other") is None

        async def change(name: str | None, text: str | None, request: RequestKey | None) -> Bank:
            return await store.update_bank(
                made, display_name=name, description=text, expected_etag=made.etag if request else None, request=request
            )

        changed = await change("Diary", None, update)
        await change("Log", "Of the day", None)
        assert await change("Diary", None, update) == changed
        assert (current(store, made).display_name, current(store, made).description) == ("Log", "Of the day")
        assert await make_bank(store, display_name="Notes", request=create) == made
        with pytest.raises(RequestIdReused):
            await change("Log", None, RequestKey("u", "update_bank", b"2"))

    async def test_a_deleted_bank_answers_a_retry(self, store: MemoryStore) -> None:
        create, update, delete = (RequestKey(name, name, b"1") for name in ("create", "update", "delete"))
        made = await make_bank(store, display_name="Notes", request=create)
        await store.update_bank(made, display_name="N", description=None, expected_etag=None, request=update)
        await insert(store, made, memory(1), memory(2))
        with pytest.raises(Conflict):
            await store.delete_bank(made, expected_etag="other", request=delete)
        assert store.find_response("default", delete) is None
        assert await store.delete_bank(made, expected_etag=None, request=delete) == 2
        assert store.find_response("default", delete) == b"2"
        assert await store.delete_bank(made, expected_etag=None, request=delete) == 2
        # The retry of what came before does not bring it back.
        assert await make_bank(store, display_name="Notes", request=create) == made
        assert store.get_bank("default", "bank") is None
        again = await make_bank(store)
        await insert(store, again, memory(3))
        assert await store.delete_bank(again, expected_etag=None, request=delete) == 2
        assert listed(store, again) == [memory_id(3)]
        with pytest.raises(BankNotFound):
            await store.update_bank(again, display_name="N", description=None, expected_etag=None, request=update)

    async def test_undelete_answers_a_retry(self, store: MemoryStore, bank: Bank) -> None:
        key = RequestKey("u", "undelete", b"1")
        await insert(store, bank, memory(1))
        await replace(store, bank, memory(1, "second"))
        with pytest.raises(MemoryNotFound):
            await store.undelete(bank, memory_id(2), request=key)
        one = ForgetSelector(memory_ids=(memory_id(1),))
        await forget(store, bank, one)
        back = await store.undelete(bank, memory_id(1), request=key)
        assert (back.version, back.content) == (2, "second")
        await replace(store, bank, memory(1, "third"))
        position = current(store, bank).position
        assert await store.undelete(bank, memory_id(1), request=key) == back
        await forget(store, bank, one)
        with pytest.raises(MemoryNotFound):
            await store.undelete(bank, memory_id(1), request=key)
        assert current(store, bank).position == position + 1
        with pytest.raises(RequestIdReused):
            await store.undelete(bank, memory_id(1), request=RequestKey("u", "undelete", b"2"))

    async def test_an_answer_goes_with_its_bank(self, store: MemoryStore, bank: Bank) -> None:
        await store.commit(bank, [Insert(memory(1))], request=self.KEY, respond=lambda _: b"first")
        await store.delete_bank(bank, expected_etag=None)
        assert store.find_response("default", self.KEY) is None
        again = await make_bank(store)
        outcomes, response = await store.commit(
            again, [Insert(memory(1))], request=self.KEY, respond=lambda _: b"second"
        )
        assert ([one.memory_id for one in outcomes], response) == ([memory_id(1)], b"second")
        assert store.find_response("default", self.KEY) == b"second"
        assert listed(store, again) == [memory_id(1)]

    async def test_after_an_erasure_the_id_alone_tells_a_retry(self, store: MemoryStore, bank: Bank) -> None:
        other = await make_bank(store, "other")
        kept = RequestKey("id-2", "retain", b"fingerprint")
        await store.commit(bank, [Insert(memory(1))], request=self.KEY, respond=lambda _: b"x")
        await store.commit(other, [Insert(memory(1))], request=kept, respond=lambda _: b"y")
        await store.erase(bank, EVERYTHING, reason="", principal="")
        assert store.find_response("default", self.KEY) == b"x"
        assert store.find_response("default", RequestKey("id-1", "retain", b"else")) == b"x"
        with pytest.raises(RequestIdReused):
            store.find_response("default", RequestKey("id-1", "forget", b"fingerprint"))
        with pytest.raises(RequestIdReused):
            store.find_response("default", RequestKey("id-2", "retain", b"else"))

    async def test_old_answers_are_purged(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await store.commit(bank, [Insert(memory(1))], request=self.KEY, respond=lambda _: b"x")
        await store.purge(clock.now + 3_600_000)
        assert store.find_response("default", self.KEY) == b"x"
        await store.purge(clock.now + 25 * 3_600_000)
        assert store.find_response("default", self.KEY) is None


class TestListing:
    async def test_tags_and_sessions_filter(self, store: MemoryStore, bank: Bank) -> None:
        await insert(
            store,
            bank,
            memory(1, tags=("a",), session_id="s"),
            memory(2, tags=("b",)),
            memory(3, tags=("a", "b"), session_id="s"),
            memory(4),
        )
        assert listed(store, bank, tags=("a",)) == [memory_id(1), memory_id(3)]
        assert listed(store, bank, tags=("a", "b")) == [memory_id(1), memory_id(2), memory_id(3)]
        assert listed(store, bank, session_id="s") == [memory_id(1), memory_id(3)]
        assert listed(store, bank, tags=("b",), session_id="s") == [memory_id(3)]
        assert listed(store, bank, tags=("A",)) == []

    async def test_pages_show_one_position(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 8)])
        position = current(store, bank).position
        first, total = store.list_memories(bank, tags=(), session_id=None, at_position=position, after=0, limit=3)
        assert ([one.memory_id for _, one in first], total) == ([memory_id(1), memory_id(2), memory_id(3)], 7)
        await replace(store, bank, memory(5, "changed"))
        await insert(store, bank, memory(8))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(6),)))
        rest, total = store.list_memories(
            bank, tags=(), session_id=None, at_position=position, after=first[-1][0], limit=10
        )
        assert [(one.memory_id, one.content) for _, one in rest] == [
            (memory_id(4), "memory number 4"), (memory_id(5), "memory number 5"), (memory_id(7), "memory number 7"),
        ]  # fmt: skip
        assert total == 6
        assert listed(store, bank) == [memory_id(n) for n in (1, 2, 3, 4, 7, 5, 8)]

    async def test_what_was_brought_back_later_is_not_in_an_older_page(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1), memory(2))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(1),)))
        position = current(store, bank).position
        await store.undelete(bank, memory_id(1))
        rows, total = store.list_memories(bank, tags=(), session_id=None, at_position=position, after=0, limit=10)
        assert ([one.memory_id for _, one in rows], total) == ([memory_id(2)], 1)
        assert listed(store, bank) == [memory_id(1), memory_id(2)]

    async def test_what_was_there_then_and_is_now_stays_in_the_pages(self, store: MemoryStore, bank: Bank) -> None:
        """Forgotten and brought back between two pages, twice: the pages show what was visible at their position."""
        await insert(store, bank, *[memory(number) for number in range(1, 5)])
        positions = [current(store, bank).position]
        one = ForgetSelector(memory_ids=(memory_id(3),))
        for _ in range(2):
            await forget(store, bank, one)
            positions.append(current(store, bank).position)
            await store.undelete(bank, memory_id(3))
            positions.append(current(store, bank).position)
        assert positions == [4, 5, 6, 7, 8]
        counts = []
        for position in positions:
            first, total = store.list_memories(bank, tags=(), session_id=None, at_position=position, after=0, limit=2)
            rest, again = store.list_memories(
                bank, tags=(), session_id=None, at_position=position, after=first[-1][0], limit=9
            )
            assert total == again == len(first) + len(rest)
            counts.append(total)
        assert counts == [4, 3, 4, 3, 4]


class TestHydrate:
    async def test_the_chunk_asked_for_comes_back(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(7), RICH)
        rows = store.hydrate(bank, [Passage(2, 1), Passage(1, -1), Passage(2, -1), Passage(2, 0)], Visibility())
        assert sorted((row.row_key, row.ordinal, row.chunk_text) for row in rows) == [
            (1, -1, "memory number 7"),
            (2, -1, RICH.content),
            (2, 0, "Grüße aus Zürich 👋"),
            (2, 1, "third"),
        ]

    async def test_a_hydrated_memory_equals_the_memory(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, RICH)
        (row,) = store.hydrate(bank, [Passage(1, -1)], Visibility())
        found = store.memory(bank, RICH.memory_id)
        shared = set(row._fields) & {field.name for field in fields(Memory)}
        assert shared == set(row._fields) - {"row_key", "ordinal", "chunk_text"}
        assert found is not None
        assert found.occurred_at is not None
        timed = row._asdict() | {"occurred_at": found.occurred_at, "retained_at": found.retained_at}
        assert [timed[name] for name in sorted(shared)] == [getattr(found, name) for name in sorted(shared)]
        times = (to_ms(found.occurred_at), to_ms(found.retained_at))
        assert (row.occurred_at, row.retained_at) == times

    async def test_nothing_asked_nothing_read(self, store: MemoryStore, bank: Bank) -> None:
        assert store.hydrate(bank, [], Visibility()) == []

    async def test_unknown_rows_are_left_out(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        rows = store.hydrate(bank, [Passage(99, -1), Passage(1, -1), Passage(1, 5)], Visibility())
        assert [row.row_key for row in rows] == [1, 1]

    async def test_another_bank_or_tenant_gets_nothing(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1))
        other = await make_bank(store, tenant="other")
        assert seen(store, bank) == [memory_id(1)]
        assert seen(store, other) == []
        assert seen(store, changed(bank, tenant="other")) == []
        assert seen(store, changed(bank, bank_id="elsewhere")) == []
        assert seen(store, changed(other, key=bank.key)) == []

    async def test_ended_versions_are_seen_in_their_time_only(
        self, store: MemoryStore, bank: Bank, clock: Clock
    ) -> None:
        start = clock.now
        await insert(store, bank, memory(1, "old"))
        clock.now += 100
        await replace(store, bank, memory(1, "new"))

        def contents(as_of: int | None) -> list[str]:
            rows = store.hydrate(bank, [Passage(1, -1), Passage(2, -1)], Visibility(as_of))
            return [row.chunk_text for row in rows]

        assert contents(None) == ["new"]
        assert contents(start - 1) == []
        assert contents(start) == contents(start + 99) == ["old"]
        assert contents(start + 100) == contents(LATER) == ["new"]

    async def test_validity_includes_both_ends(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, memory(1, valid_from=10, valid_until=20), memory(2, valid_from=15), memory(3))
        by_instant = {at: seen(store, bank, Visibility(valid_at=at)) for at in (9, 10, 20, 21)}
        one, two, three = memory_id(1), memory_id(2), memory_id(3)
        assert by_instant == {9: [three], 10: [one, three], 20: [one, two, three], 21: [two, three]}
        assert seen(store, bank, Visibility(as_of=LATER, valid_at=9)) == [three]

    async def test_forgotten_is_absent_at_every_instant(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        start = clock.now
        await insert(store, bank, memory(1, "old"))
        clock.now += 100
        await replace(store, bank, memory(1, "new"))
        clock.now += 100
        await forget(store, bank, EVERYTHING)
        for as_of in (None, start, start + 100, start + 200, LATER):
            assert seen(store, bank, Visibility(as_of)) == []
        assert store.versions(bank, memory_id(1)) == []
        assert store.version(bank, memory_id(1)) is None


class TestForget:
    @pytest.fixture
    async def filled(self, store: MemoryStore, bank: Bank, clock: Clock) -> Bank:
        """1: tag a, 1970; 2: tags a and b, retained now; 3: tag b, 2100; 4: untagged."""
        await insert(
            store,
            bank,
            memory(1, tags=("a",), occurred_at=0),
            memory(2, tags=("a", "b")),
            memory(3, tags=("b",), occurred_at=4_102_444_800_000),
            memory(4),
        )
        return bank

    @pytest.mark.parametrize(
        ("selector", "expected"),
        [
            (ForgetSelector(memory_ids=(memory_id(1), memory_id(3), memory_id(77))), [1, 3]),
            (ForgetSelector(tags=("a",)), [1, 2]),
            (ForgetSelector(tags=("a", "b")), [1, 2, 3]),
            (ForgetSelector(scope="all"), [1, 2, 3, 4]),
            (ForgetSelector(before_date=datetime(2000, 1, 1, tzinfo=UTC)), [1]),
            (ForgetSelector(before_date=datetime(2050, 1, 1, tzinfo=UTC)), [1, 2, 4]),
            (ForgetSelector(before_date=datetime(1970, 1, 1, tzinfo=UTC)), []),
            (ForgetSelector(memory_ids=(memory_id(1), memory_id(4)), tags=("a",)), [1]),
            (ForgetSelector(tags=("b",), before_date=datetime(2050, 1, 1, tzinfo=UTC), scope="all"), [2]),
        ],
    )
    async def test_selectors_combine_with_and(
        self, store: MemoryStore, filled: Bank, selector: ForgetSelector, expected: list[int]
    ) -> None:
        ids = [memory_id(number) for number in expected]
        assert store.select(filled, selector) == (len(ids), ids)
        before = current(store, filled).position
        answer = await store.forget(filled, selector, reason="", principal="", purge_after=LATER)
        assert answer == (len(ids), ids, before + len(ids))
        assert set(listed(store, filled)) == {memory_id(number) for number in (1, 2, 3, 4)} - set(ids)
        assert store.select(filled, selector) == (0, [])
        assert store.select(filled, selector, include_forgotten=True) == (len(ids), ids)

    async def test_the_latest_version_decides(self, store: MemoryStore, filled: Bank) -> None:
        await replace(store, filled, memory(1, "retagged", tags=("c",)))
        assert store.select(filled, ForgetSelector(tags=("a",)))[1] == [memory_id(2)]
        assert await forget(store, filled, ForgetSelector(tags=("c",))) == [memory_id(1)]

    async def test_only_the_first_thousand_ids_are_told(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 1_201)])
        count, ids = store.select(bank, EVERYTHING)
        assert (count, len(ids)) == (1_200, 1_000)
        count, ids, position = await store.forget(bank, EVERYTHING, reason="", principal="", purge_after=LATER)
        assert (count, len(ids), position) == (1_200, 1_000, 2_400)

    async def test_a_forgotten_memory_is_gone_from_every_read(self, store: MemoryStore, filled: Bank) -> None:
        await forget(store, filled, ForgetSelector(memory_ids=(memory_id(2),)))
        assert store.memory(filled, memory_id(2)) is None
        assert memory_id(2) not in listed(store, filled, tags=("a",))
        assert memory_id(2) not in {row.memory.memory_id for batch in store.iter_versions(filled) for row in batch}
        kept = store.memory(filled, memory_id(2), include_forgotten=True)
        assert kept is not None
        assert kept.state is MemoryState.FORGOTTEN
        assert kept.forgotten_at is not None
        assert kept.purge_after == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=LATER)

    async def test_undelete_brings_every_version_back(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, RICH)
        clock.now += 1
        await replace(store, bank, memory(1, "new"))
        before = store.versions(bank, RICH.memory_id)
        await forget(store, bank, EVERYTHING)
        batches: list[IndexBatch] = []
        store.subscribe(batches.append)
        back = await store.undelete(bank, RICH.memory_id)
        assert back == before[-1]
        assert store.versions(bank, RICH.memory_id) == before
        (batch,) = batches
        assert [(one.row_key, one.version, one.known_until) for one in batch.upserts] == [
            (1, 1, clock.now), (2, 2, None),
        ]  # fmt: skip
        assert batch.upserts[0].memory == RICH
        assert await store.undelete(bank, RICH.memory_id) == back
        assert current(store, bank).position == 4

    async def test_what_is_due_cannot_be_brought_back(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, memory(1), memory(2))
        await forget(store, bank, EVERYTHING, clock.now + 10)
        clock.now += 9
        await store.undelete(bank, memory_id(1))
        clock.now += 1
        key = RequestKey("u", "undelete", b"1")
        with pytest.raises(MemoryNotFound):
            await store.undelete(bank, memory_id(2), request=key)
        assert store.find_response("default", key) is None
        assert listed(store, bank) == [memory_id(1)]

    async def test_what_never_was_cannot_be_brought_back(self, store: MemoryStore, bank: Bank) -> None:
        with pytest.raises(MemoryNotFound):
            await store.undelete(bank, memory_id(1))


class TestErase:
    async def test_rows_go_for_good_and_a_receipt_comes(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, RICH, memory(2), memory(3))
        await replace(store, bank, memory(1, "second version"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(2),)))
        selector = ForgetSelector(memory_ids=(memory_id(1), memory_id(2)))
        ids, position, receipt = await store.erase(bank, selector, reason="", principal="")
        assert ids == [memory_id(2), memory_id(1)]
        assert position == current(store, bank).position
        assert receipt.counts == {"memories": 2, "versions": 3, "chunks": 2, "embeddings": 4}

        def salted(number: int) -> str:
            return hashlib.sha256(f"{receipt.salt}{memory_id(number)}".encode()).hexdigest()

        def root(*numbers: int) -> str:
            return hashlib.sha256("".join(sorted(salted(number) for number in numbers)).encode()).hexdigest()

        assert set(receipt.salted_ids) == {salted(1), salted(2)}
        assert receipt.root_hash_before == root(1, 2, 3)
        assert receipt.root_hash_after == root(3)
        for number in (1, 2):
            assert store.memory(bank, memory_id(number), include_forgotten=True) is None
            with pytest.raises(MemoryNotFound):
                await store.undelete(bank, memory_id(number))
        assert listed(store, bank) == [memory_id(3)]
        assert listed(store, bank, tags=("a",)) == []

    async def test_erasing_nothing_is_no_error(self, store: MemoryStore, bank: Bank) -> None:
        ids, position, receipt = await store.erase(bank, EVERYTHING, reason="", principal="")
        assert (ids, position, receipt.salted_ids) == ([], 0, ())
        assert receipt.root_hash_before == receipt.root_hash_after

    async def test_many_slices_make_one_erasure(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number, f"long {number} " * 200) for number in range(1, 1_301)])
        ids, _, receipt = await store.erase(bank, EVERYTHING, reason="", principal="")
        assert (len(ids), receipt.counts["memories"], len(receipt.salted_ids)) == (1_000, 1_300, 1_300)
        assert listed(store, bank) == []

    async def test_purge_erases_what_is_due(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 702)])
        due = tuple(memory_id(number) for number in range(1, 601))
        await forget(store, bank, ForgetSelector(memory_ids=due), clock.now + 10)
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(700),)), clock.now + 20)
        assert await store.purge(clock.now + 9) == 0
        assert await store.purge(clock.now + 10) == 600
        assert store.bank_stats(bank).forgotten_count == 1
        assert await store.purge(clock.now + 10) == 0
        assert (await store.undelete(bank, memory_id(700))).memory_id == memory_id(700)


class TestChanges:
    async def test_every_change_is_logged_in_order(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        await insert(store, bank, memory(1), memory(2))
        await replace(store, bank, memory(1, "new"))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(1),)))
        await store.undelete(bank, memory_id(1))
        await store.erase(bank, ForgetSelector(memory_ids=(memory_id(2),)), reason="", principal="")
        log = store.changes(bank, after=0, limit=100)
        assert [(one.position, one.kind, one.memory_id) for one in log] == [
            (1, ChangeKind.CREATED, memory_id(1)),
            (2, ChangeKind.CREATED, memory_id(2)),
            (3, ChangeKind.UPDATED, memory_id(1)),
            (4, ChangeKind.FORGOTTEN, memory_id(1)),
            (5, ChangeKind.UNDELETED, memory_id(1)),
            (6, ChangeKind.FORGOTTEN, memory_id(2)),
            (7, ChangeKind.ERASED, memory_id(2)),
        ]
        assert store.changes(bank, after=4, limit=2) == log[4:6]
        assert store.changes(bank, after=7, limit=2) == []

    async def test_times_never_go_back(self, store: MemoryStore, bank: Bank, clock: Clock) -> None:
        start = clock.now
        await insert(store, bank, memory(1))
        clock.now = start - 3_600_000
        await replace(store, bank, memory(1, "new"))
        clock.now = start + 5
        await insert(store, bank, memory(2))
        times = [one.changed_at for one in store.changes(bank, after=0, limit=10)]
        assert times == sorted(times)
        first, second = store.versions(bank, memory_id(1))
        assert first.updated_at == second.updated_at == times[0]
        # Both began in the same millisecond: the later one holds from it on.
        assert [row.row_key for row in store.hydrate(bank, [Passage(1, -1), Passage(2, -1)], Visibility(start))] == [2]

    async def test_listeners_hear_each_commit_before_its_caller(self, store: MemoryStore, bank: Bank) -> None:
        batches: list[IndexBatch] = []
        store.subscribe(batches.append)
        for number in range(1, 4):
            await insert(store, bank, memory(number))
            assert batches[-1].position == number
        await replace(store, bank, memory(1, "new"))
        batch = batches[-1]
        assert [key for key, _ in batch.ended] == [1]
        assert [one.row_key for one in batch.upserts] == [4]
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(1),)))
        assert sorted(batches[-1].removed) == [1, 4]
        assert [batch.position for batch in batches] == [1, 2, 3, 4, 5]
        assert {batch.bank.key for batch in batches} == {bank.key}

    async def test_listeners_hear_what_is_gone_for_good(self, store: MemoryStore, bank: Bank) -> None:
        batches: list[IndexBatch] = []
        store.subscribe(batches.append)
        for number in (1, 2):
            await insert(store, bank, memory(number))
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(1),)))
        assert not any(batch.erased for batch in batches)
        await store.purge(2**60)
        assert batches[-1].erased
        count = len(batches)
        selector = ForgetSelector(memory_ids=(memory_id(2),))
        await store.erase(bank, selector, reason="", principal="p", request=None)
        assert any(batch.erased for batch in batches[count:])

    async def test_concurrent_commits_reach_the_listener_in_order(self, store: MemoryStore, bank: Bank) -> None:
        heard: list[str] = []
        positions: list[int] = []

        def listen(batch: IndexBatch) -> None:
            positions.append(batch.position)
            heard.extend(one.memory.memory_id for one in batch.upserts)

        store.subscribe(listen)
        await asyncio.gather(*(insert(store, bank, memory(number)) for number in range(64)))
        assert positions == sorted(set(positions))
        assert heard == [change.memory_id for change in store.changes(bank, after=0, limit=100)]

    async def test_a_listener_that_fails_does_not_fail_the_write(self, store: MemoryStore, bank: Bank) -> None:
        def fail(_: IndexBatch) -> None:
            raise ValueError("index")

        heard: list[int] = []
        store.subscribe(fail)
        store.subscribe(lambda batch: heard.append(batch.position))
        await insert(store, bank, memory(1))
        assert heard == [1]
        assert listed(store, bank) == [memory_id(1)]


class TestIteration:
    async def test_every_visible_version_comes_with_its_parts(
        self, store: MemoryStore, bank: Bank, clock: Clock
    ) -> None:
        other = await make_bank(store, "other")
        await insert(store, bank, RICH)
        for number in range(2, 30):
            await insert(store, bank, memory(number))
            await insert(store, other, memory(number))
        clock.now += 7
        await replace(store, bank, memory(3, "new", vector=None))
        batches = list(store.iter_versions(bank, batch_size=7))
        assert [len(batch) for batch in batches] == [7, 7, 7, 7, 2]
        rows = [row for batch in batches for row in batch]
        assert [row.row_key for row in rows] == sorted(row.row_key for row in rows)
        assert rows[0].memory == RICH
        by_content = {row.memory.content: row for row in rows}
        assert by_content["memory number 3"].known_until == clock.now
        assert by_content["new"].known_until is None
        assert by_content["new"].memory.vector is None
        assert by_content["memory number 4"].memory == memory(4)

    async def test_what_comes_while_reading_is_not_seen(self, store: MemoryStore, bank: Bank) -> None:
        await insert(store, bank, *[memory(number) for number in range(1, 7)])
        await forget(store, bank, ForgetSelector(memory_ids=(memory_id(4),)))
        reading = store.iter_versions(bank, batch_size=2)
        rows = next(reading)
        await replace(store, bank, memory(5, "later"))
        await insert(store, bank, memory(7))
        await store.undelete(bank, memory_id(4))
        rows += [row for batch in reading for row in batch]
        assert [row.memory.content for row in rows] == [f"memory number {number}" for number in (1, 2, 3, 5, 6)]
        assert {row.known_until for row in rows} == {None}


class TestReaders:
    async def test_reads_from_many_threads_see_whole_commits(self, store: MemoryStore, bank: Bank) -> None:
        stop = threading.Event()
        problems: list[int] = []
        first = (await insert(store, bank, memory(1, "v0"), memory(2, "v0 b")))[-1].position

        def read() -> None:
            while not stop.is_set():
                rows, total = store.list_memories(
                    bank, tags=(), session_id=None, at_position=LATER, after=0, limit=1_000
                )
                if total != len(rows) or total % 2:
                    problems.append(total)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(3, 103, 2):
            await insert(store, bank, memory(number), memory(number + 1))
        stop.set()
        for thread in threads:
            thread.join()
        assert problems == []
        assert current(store, bank).position == first + 100

    async def test_a_closed_store_says_so(self, store: MemoryStore, bank: Bank) -> None:
        assert store.healthy
        store.close()
        store.close()
        assert not store.healthy
        with pytest.raises(StoreError, match="closed"):
            await insert(store, bank, memory(1))
        with pytest.raises(StoreError, match="closed"):
            store.memory(bank, memory_id(1))
