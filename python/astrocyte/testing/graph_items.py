"""Items of the contract of graph stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from astrocyte.providers.storage import EntityLink, EntityRecord, LinkRecord
from astrocyte.testing.contract import BANK, attributes


def link(link_id: str, memory: int, name: str, bank_id: str = BANK, **fields: object) -> EntityLink:
    """A link from the memory of that number to an entity."""
    return EntityLink(link_id, bank_id, f"thing:{name}", name.title(), name, "THING", attributes(memory, **fields))


def record(record_id: str, word: str, bank_id: str = BANK, **fields: Any) -> EntityRecord:
    """A record of an entity."""
    return replace(EntityRecord(record_id, bank_id, f"thing:{word}", "THING"), **fields)


def between(link_id: str, source: str, target: str, bank_id: str = BANK, **fields: Any) -> LinkRecord:
    """A link of a caller between two entities."""
    made = LinkRecord(link_id, bank_id, f"thing:{source}", f"thing:{target}", "beside", "seen", 0.5, 1_000)
    return replace(made, **fields)
