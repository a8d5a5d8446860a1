"""The protocol of custom entity extractors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from astrocyte.model import Entity, Metadata


class EntityExtractor(Protocol):
    """Finds the entities of one content; made without arguments, once for the process."""

    async def extract(self, text: str, metadata: Metadata) -> Sequence[Entity]:
        """Entities in the order of their weight; names of up to 128 characters.

        It has the time that ``pipeline.entity_extraction.deadline_seconds`` gives it. Where it raises, or is late, the
        memory is stored without entities, and its caller is told.
        """
