"""Search for entities by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from astrocyte.model import Entity, GraphEntity
from astrocyte.stores.graph.entity_graph import GraphReader

# Words of a query that are looked for; a name has no more.
MOST_WORDS = 12
_WORD = re.compile(r"[^\W_]+")


def search(reader: GraphReader, query: str, entity_types: Sequence[str], limit: int) -> list[GraphEntity]:
    """The entities whose names match a query, best first."""
    words = list(dict.fromkeys(_WORD.findall(query.casefold())))[:MOST_WORDS]
    if not words:
        return []
    keys = reader.search(Entity(query).id.partition(":")[2], words, entity_types, limit)
    groups = reader.groups(keys)
    return reader.entities([groups[key] for key in keys])
