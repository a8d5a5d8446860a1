"""Banks that go: whatever becomes of the call that deletes one, nothing of it stays behind in the gate."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, CreateBank, DeleteBank, GetBank, ListBanks, Recall, Retain, Watch
from astrocyte.app import App
from astrocyte.errors import BankNotFound, Conflict, DiskFull, ValidationError
from astrocyte.model import Bank, Caller, Change, RecallQuery, RetainItem
from astrocyte.policy.gate import Gate

ME = Caller()
TEA = RecallQuery("tea", "b")


@pytest.fixture
async def shelf(gate: Gate) -> Bank:
    """Bank b, used and in memory."""
    for start in range(0, 600, 200):
        await gate.call(ME, BatchRetain("b", [RetainItem(f"tea number {start + number}") for number in range(200)]))
    assert (await gate.call(ME, Recall(TEA))).hits
    return await gate.call(ME, GetBank("b"))


async def until_deleted(gate: Gate) -> None:
    """Nobody waits for the deletion any more, so the bank list tells when it has ended."""
    await asyncio.gather(*gate._banks._deletions)
    assert "b" not in {bank.bank_id for bank in (await gate.call(ME, ListBanks())).banks}


async def gone_and_made_again(gate: Gate) -> None:
    with pytest.raises(BankNotFound):
        await gate.call(ME, Recall(TEA))
    with pytest.raises(BankNotFound):
        await gate.call(ME, GetBank("b"))
    assert (await gate.call(ME, Retain("b", RetainItem("new tea")))).stored
    assert [hit.text for hit in (await gate.call(ME, Recall(TEA))).hits] == ["new tea"]


@pytest.mark.usefixtures("shelf")
@pytest.mark.parametrize("ticks", [1, 2, 3, 5])
async def test_a_deletion_whose_caller_gives_up_ends(gate: Gate, ticks: int) -> None:
    deletion = asyncio.create_task(gate.call(ME, DeleteBank("b")))
    for _ in range(ticks):
        await asyncio.sleep(0)
    deletion.cancel()
    with pytest.raises(asyncio.CancelledError):
        await deletion
    await until_deleted(gate)
    await gone_and_made_again(gate)


@pytest.mark.usefixtures("shelf")
async def test_a_deletion_that_fails_half_way_leaves_no_handle(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    delete = app.storage.store.delete_bank

    async def full(*args: Any, **options: Any) -> int:
        await delete(*args, **options)
        raise DiskFull("the rows are hidden, but not all are gone")

    monkeypatch.setattr(app.storage.store, "delete_bank", full)
    with pytest.raises(DiskFull):
        await app.gate.call(ME, DeleteBank("b"))
    await gone_and_made_again(app.gate)


@pytest.mark.usefixtures("shelf")
async def test_a_bank_made_after_a_cancelled_deletion_takes_writes(gate: Gate) -> None:
    deletion = asyncio.create_task(gate.call(ME, DeleteBank("b")))
    await asyncio.sleep(0.0005)
    deletion.cancel()
    await asyncio.gather(deletion, return_exceptions=True)
    await until_deleted(gate)
    await gate.call(ME, CreateBank("b"))
    assert (await gate.call(ME, Retain("b", RetainItem("new tea")))).stored


@pytest.mark.usefixtures("shelf")
async def test_a_bank_is_gone_for_all_while_its_rows_go(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, delete = app.gate, app.storage.store.delete_bank
    hidden, release = asyncio.Event(), asyncio.Event()

    async def slow(*args: Any, **options: Any) -> int:
        count = await delete(*args, **options)
        hidden.set()
        await release.wait()
        return count

    monkeypatch.setattr(app.storage.store, "delete_bank", slow)
    deletion = asyncio.create_task(gate.call(ME, DeleteBank("b")))
    # Readers and writers come all the while, also between the gate's look and the store's commit.
    while not hidden.is_set():
        await asyncio.gather(gate.call(ME, Recall(TEA)), return_exceptions=True)
        await asyncio.sleep(0)
    await gone_and_made_again(gate)
    release.set()
    assert await deletion == 600
    assert [hit.text for hit in (await gate.call(ME, Recall(TEA))).hits] == ["new tea"]


async def test_a_write_with_an_old_handle_makes_the_bank_anew(app: App, shelf: Bank) -> None:
    # Behind the gate's back, as between its look and its commit.
    await app.storage.store.delete_bank(shelf, expected_etag=None)
    assert (await app.gate.call(ME, Retain("b", RetainItem("new tea")))).stored
    assert [hit.text for hit in (await app.gate.call(ME, Recall(TEA))).hits] == ["new tea"]


async def test_a_deletion_that_is_refused_costs_nothing(app: App, shelf: Bank) -> None:
    index = await app.gate._registry.get(shelf)
    with pytest.raises(Conflict):
        await app.gate.call(ME, DeleteBank("b", etag="another"))
    assert app.gate._registry.loaded(shelf) is index
    assert (await app.gate.call(ME, Recall(TEA))).hits


async def test_closing_waits_for_a_deletion(app: App, shelf: Bank) -> None:
    deletion = asyncio.create_task(app.gate.call(ME, DeleteBank(shelf.bank_id)))
    await asyncio.sleep(0)
    await app.gate.close()
    assert await deletion == 600


async def test_a_repeated_creation_does_not_bring_a_dead_handle_back(gate: Gate) -> None:
    made = await gate.call(ME, CreateBank("b", request_id="c"))
    await gate.call(ME, DeleteBank("b"))
    assert (await gate.call(ME, CreateBank("b", request_id="c"))).key == made.key
    with pytest.raises(BankNotFound):
        await gate.call(ME, Recall(TEA))
    assert (await gate.call(ME, Retain("b", RetainItem("tea")))).stored


async def changes(watched: AsyncIterator[Change]) -> list[int]:
    return [change.position async for change in watched]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_watch_ends_with_its_bank(gate: Gate, shelf: Bank, *, cancelled: bool) -> None:
    watching = asyncio.create_task(changes(gate.stream(ME, Watch("b", after_position=shelf.position))))
    await asyncio.sleep(0.01)
    deletion = asyncio.create_task(gate.call(ME, DeleteBank("b")))
    await asyncio.sleep(0.0005)
    if cancelled:
        deletion.cancel()
    await asyncio.gather(deletion, return_exceptions=True)
    with pytest.raises(BankNotFound):
        await asyncio.wait_for(watching, 5)


async def test_a_watch_from_a_position_that_was_not_reached_is_refused(gate: Gate) -> None:
    await gate.call(ME, Retain("b", RetainItem("tea")))
    with pytest.raises(ValidationError, match="is 5, but the bank is at position 1") as caught:
        await anext(gate.stream(ME, Watch("b", after_position=5)))
    assert caught.value.field == "after_position"
    assert caught.value.metadata["position"] == "1"
    watch = gate.stream(ME, Watch("b", after_position=1))
    first = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    await gate.call(ME, Retain("b", RetainItem("jam")))
    assert (await asyncio.wait_for(first, 5)).position == 2
