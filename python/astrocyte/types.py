"""The types of the API, under the module name that the API reference uses."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.model import *  # noqa: F403 - an alias module by design; the model defines the names


@dataclass(frozen=True, slots=True)
class MemoryEntityAssociation:
    """That a memory mentions an entity."""

    memory_id: str
    entity_id: str
