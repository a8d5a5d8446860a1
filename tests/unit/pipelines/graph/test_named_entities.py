"""The entities that external graph stores get are those of the entity graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from astrocyte.api.requests import Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Bank, Entity, RetainItem
from astrocyte.pipelines.graph import derivation, named_entities
from astrocyte.stores.records import VersionRecord
from samples.entity_graphs import ME, settled
from samples.memories import memory

TEXTS = [
    "Alice Smith (formerly Alice Johnson) works at Acme Corp.",
    "Dr. Bob Miller leads Project Apollo in Lisbon.",
    "Mara Silva and MARA SILVA are one on 2024-03-05, says `ORION_42`.",
    "A kettle stands in the kitchen.",
]


def version(content: str, *entities: Entity) -> VersionRecord:
    return VersionRecord(1, 1, 5, 5, None, memory(1, content, entities=entities))


async def test_ids_are_those_of_the_graph(tmp_path: Path) -> None:
    settings = {"data_dir": str(tmp_path), "pipeline": {"entity_extraction": {"mode": "rules"}}}
    app = App(Settings.from_mapping({**settings, "entity_graph": {"read_wait_seconds": 20}}))
    for text in TEXTS:
        await app.gate.call(ME, Retain("people", RetainItem(text, speaker="Ines Lopes")))
    await settled(app)
    bank: Bank = app.storage.store.following.banks(after=0, limit=1)[0]
    versions = [one for batch in app.storage.store.iter_versions(bank) for one in batch]
    told = {one.entity_id for each in versions for one in named_entities.named_entities(each)}
    with app.storage.store._connections.snapshot() as connection:
        graph = {str(row[0]) for row in connection.execute("SELECT entity_id FROM graph_entities")}
    await app.close()
    assert {"person:alice-smith", "org:acme-corp", "project:project-apollo", "person:ines-lopes"} <= graph
    assert {one for one in told if not one.startswith(("date:", "code:"))} == graph
    assert {"date:2024-03-05", "code:orion-42"} <= told


def test_each_spelling_is_told_once() -> None:
    given = (Entity("Tom Reed", "PERSON"), Entity("5 March", "DATE"), Entity("5  march", "DATE"))
    found = named_entities.named_entities(version("Tom Reed met TOM REED and Tom Reed on 5 March.", *given))
    assert [(one.entity_id, one.folded) for one in found] == [
        ("person:tom-reed", "tom reed"),
        ("date:5-march", "5 march"),
    ]


def test_a_text_that_the_rules_fail_on_has_the_names_that_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_: object) -> None:
        raise RuntimeError("secret content")

    monkeypatch.setattr(derivation, "extract", lambda *_, **__: failing(None))
    found = named_entities.named_entities(version("Tom Reed", Entity("5 March", "DATE")))
    assert [one.entity_id for one in found] == ["date:5-march"]
