"""Contract of memory stores on repeated requests, on disk and in memory."""

import asyncio
from collections.abc import Sequence

import pytest

from astrocyte.errors import (
    BankNotFound,
    Conflict,
    MemoryNotFound,
    RequestIdReused,
)
from astrocyte.model import Bank, ForgetSelector
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.records import Insert, Replace, RequestKey, WriteOutcome
from samples.memories import (
    EVERYTHING,
    LATER,
    Clock,
    current,
    forget,
    insert,
    listed,
    make_bank,
    memory,
    memory_id,
    replace,
)


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
