"""The types of the API, under the module name that the API reference uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from astrocyte.model import *  # noqa: F403 - an alias module by design; the model defines the names


@dataclass(frozen=True, slots=True)
class EntityLink:
    """A directed relationship between two entities of a graph store."""

    entity_a: str
    entity_b: str
    link_type: str
    evidence: str = ""
    confidence: float = 1.0
    created_at: datetime | None = None
    metadata: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class MemoryEntityAssociation:
    """That a memory mentions an entity."""

    memory_id: str
    entity_id: str
