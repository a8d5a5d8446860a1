"""Contract of what ingest keeps, on disk and in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from astrocyte.stores.ingest import Delivery, KnownItem, Standing
from astrocyte.stores.sqlite.store import SqliteStore
from samples.memories import Clock

DELIVERY = Delivery(b"k" * 32, b"d" * 32, 100)
LATER = replace(DELIVERY, signed_at=101)
OTHER = replace(LATER, digest=b"o" * 32)


async def test_a_delivery_is_new_once_and_known_from_its_receipt_on(store: SqliteStore) -> None:
    ingest = store.ingest
    assert ingest.standing("tickets", DELIVERY) is Standing.NEW
    assert await ingest.accept("tickets", DELIVERY, expires_at=None) is Standing.NEW
    assert ingest.standing("tickets", DELIVERY) is Standing.REPLAYED
    assert await ingest.accept("tickets", DELIVERY, expires_at=None) is Standing.REPLAYED
    assert ingest.standing("mails", DELIVERY) is Standing.NEW


async def test_a_sender_repeats_with_a_newer_time_and_the_same_body(store: SqliteStore) -> None:
    ingest = store.ingest
    await ingest.accept("tickets", DELIVERY, expires_at=None)
    assert await ingest.accept("tickets", OTHER, expires_at=None) is Standing.CHANGED
    assert await ingest.accept("tickets", LATER, expires_at=None) is Standing.REPEATED
    # Neither the first nor the second may come again.
    assert {ingest.standing("tickets", one) for one in (DELIVERY, LATER)} == {Standing.REPLAYED}


async def test_of_copies_at_once_one_is_new(store: SqliteStore) -> None:
    found = await asyncio.gather(*(store.ingest.accept("tickets", DELIVERY, expires_at=None) for _ in range(20)))
    assert sorted(found) == [Standing.NEW, *[Standing.REPLAYED] * 19]


async def test_receipts_go_when_they_may(store: SqliteStore, clock: Clock) -> None:
    del clock
    for number, expires_at in enumerate((1_000, 2_000, None)):
        await store.ingest.accept("tickets", replace(DELIVERY, key=bytes([number]) * 32), expires_at=expires_at)
    await store.purge(1_500)
    standings = [store.ingest.standing("tickets", replace(DELIVERY, key=bytes([number]) * 32)) for number in range(3)]
    assert standings == [Standing.NEW, Standing.REPLAYED, Standing.REPLAYED]


def item(number: int, version: bytes = b"v") -> KnownItem:
    return KnownItem(bytes([number]) * 32, version * 32, "ships", f"memory-{number}" if number else None)


async def test_a_cursor_and_its_items_are_written_together_and_found_by_source_and_place(store: SqliteStore) -> None:
    ingest = store.ingest
    assert ingest.poll_cursor("issues", "here") is None
    await ingest.advance_poll("issues", "here", '{"at":1}', [item(0), item(1)])
    await ingest.advance_poll("issues", "here", '{"at":2}', [item(1, b"w"), item(2)])
    assert ingest.poll_cursor("issues", "here") == '{"at":2}'
    assert ingest.poll_cursor("issues", "there") is None
    assert ingest.poll_cursor("mails", "here") is None
    expected = {one.key: one for one in (item(0), item(1, b"w"), item(2))}
    assert ingest.known_items("issues", [item(number).key for number in range(4)]) == expected
    assert ingest.known_items("mails", [item(1).key]) == {}
    assert ingest.known_items("issues", []) == {}


async def test_another_place_drops_the_items_of_that_source_only(store: SqliteStore) -> None:
    ingest = store.ingest
    for source_id in ("issues", "mails"):
        await ingest.advance_poll(source_id, "here", "{}", [item(1)])
    await ingest.advance_poll("issues", "there", "{}", [item(2)])
    assert list(ingest.known_items("issues", [item(1).key, item(2).key])) == [item(2).key]
    assert list(ingest.known_items("mails", [item(1).key])) == [item(1).key]
    assert ingest.poll_cursor("issues", "here") is None
