"""A graph is read for the bank that exists, and is the caller's."""

from dataclasses import replace
from pathlib import Path

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import BankNotFound
from astrocyte.stores.graph.entity_graph import GraphView
from entity_graphs import BANK, say, settled, visible


@pytest.mark.parametrize("change", [{"key": 99}, {"tenant": "other"}, {"bank_id": "other"}])
async def test_a_bank_that_is_not_what_it_says_has_no_graph(tmp_path: Path, change: dict[str, object]) -> None:
    app = App(Settings.from_mapping({"data_dir": str(tmp_path)}))
    await say(app, "Alice Smith sat beside Bob Miller.")
    await settled(app)
    bank = app.storage.store.get_bank("default", BANK)
    assert bank is not None
    assert visible(app, GraphView(bank)) == ["person:alice-smith", "person:bob-miller"]
    with pytest.raises(BankNotFound):
        visible(app, GraphView(replace(bank, **change)))  # type: ignore[arg-type]
    await app.close()
