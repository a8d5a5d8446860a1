"""The guard that decides what recall returns, and what happens without it."""

from pathlib import Path

import pytest

from astrocyte.model import ForgetSelector
from astrocyte.stores.protocols import Passage, Visibility
from astrocyte.stores.sqlite import SqliteStore
from memories import Clock, insert, make_bank, memory, memory_id, replace


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
