"""Contract of what ingest keeps, on disk and in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from astrocyte.stores.ingest import Delivery, Standing
from astrocyte.stores.sqlite.store import SqliteStore
from memories import Clock

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
