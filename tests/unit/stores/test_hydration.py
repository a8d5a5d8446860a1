"""The guard that decides what recall returns, and what happens without it."""

from pathlib import Path

import pytest

from astrocyte.model import ForgetSelector
from astrocyte.stores.records import Passage, Visibility
from astrocyte.stores.sqlite import SqliteStore
from astrocyte.stores.sqlite.hydration import ANSWERS_PER_CHECK
from samples.memories import Clock, insert, make_bank, memory, memory_id, replace


@pytest.mark.parametrize("guarded", [True, False])
async def test_the_guard_is_what_keeps_rows_in(tmp_path: Path, guarded: bool) -> None:
    """An index that proposes everything: other tenants' rows, ended versions, forgotten ones."""
    clock = Clock()
    store = SqliteStore(tmp_path, clock=clock, _guarded=guarded)
    bank, other = await make_bank(store), await make_bank(store, tenant="other")
    await insert(store, bank, memory(1, "first"), memory(2, "forgotten"))
    await insert(store, other, memory(3, "foreign"))
    clock.now += 1
    await replace(store, bank, memory(1, "second"))
    await store.forget(bank, ForgetSelector(memory_ids=(memory_id(2),)), reason="", principal="", purge_after=10**13)
    passages = [Passage(key, -1) for key in range(1, 5)]
    alone = store.hydrate(bank, passages, Visibility())
    among, _ = store.hydrate_each([(bank, passages), (other, [])], Visibility())
    for rows in (alone, among):
        texts = {row.chunk_text for row in rows}
        assert texts == ({"second"} if guarded else {"first", "second", "forgotten", "foreign"})
    store.close()


async def test_hits_of_which_no_row_is_left_are_no_error(tmp_path: Path) -> None:
    """One answer in several is compared with its hashes, and may be empty by then."""
    compared: list[bytes] = []

    def fits(stored: bytes, *_: object) -> bool:
        compared.append(stored)
        return True

    store = SqliteStore(tmp_path, hash_fits=fits)
    bank = await make_bank(store)
    await insert(store, bank, memory(1, "first"))
    for _ in range(2 * ANSWERS_PER_CHECK):
        assert store.hydrate(bank, [Passage(99, -1)], Visibility()) == []
    for _ in range(ANSWERS_PER_CHECK):
        assert len(store.hydrate(bank, [Passage(1, -1)], Visibility())) == 1
    assert len(compared) == 1
    store.close()
