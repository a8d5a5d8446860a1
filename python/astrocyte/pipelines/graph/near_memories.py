"""Memories with near vectors, by the index of their bank, within the filter of a recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from astrocyte.core import Core, RecallRequest
from astrocyte.pipelines.index.bank_index import BankIndex
from astrocyte.pipelines.index.rows import id_to_bytes
from astrocyte.providers.storage import StoreFilters
from astrocyte.stores.graph.entity_graph import GraphReader

# Nearest memories of one, and the least cosine.
NEAREST, SIMILAR = 5, 0.7
# Memories whose nearest are looked for.
COMPARED = 4
# Vectors that are compared in one recall, over all of these memories: some tenths of a millisecond.
MOST_ROWS = 65_536
# Of the arms of the core, the semantic one alone.
SEMANTIC = (1.0, 0.0, 0.0)


class NearMemories:
    """Tells the nearest memories of some.

    Args:
        core: Searches.
        index: The bank's index; None where it is not in memory, and then nothing is near.
        reader: Knows the vectors.
        filters: The filter of the recall.
    """

    def __init__(self, core: Core, index: BankIndex | None, reader: GraphReader, filters: StoreFilters) -> None:
        self._core = core
        self._index = index
        self._reader = reader
        self._filters = filters

    def of(self, row_keys: Sequence[int]) -> dict[int, list[tuple[int, float]]]:
        """Row keys and cosines of the nearest memories, by row key; of the first few, and in a large bank of none."""
        index = self._index
        if index is None:
            return {}
        count = min(COMPARED, MOST_ROWS // max(1, index.row_count))
        vectors = self._reader.memory_links.vectors(row_keys[:count], index.model) if count else {}
        narrowed = narrowing(self._filters)
        requests = [
            (
                index.core,
                RecallRequest(
                    vector=vector,
                    # The memory itself is the nearest.
                    k=NEAREST + 1,
                    depth=NEAREST + 1,
                    weights=SEMANTIC,
                    context_windows=False,
                    **narrowed,
                ),
            )
            for vector in vectors.values()
        ]
        found: dict[int, list[tuple[int, float]]] = {}
        for row_key, answer in zip(vectors, self._core.recall_many(requests), strict=True):
            near = [(hit.key, cosine) for hit in answer.hits for _, _, cosine in hit.arms if hit.key != row_key]
            found[row_key] = [(key, cosine) for key, cosine in near[:NEAREST] if cosine >= SIMILAR]
        return found


def narrowing(filters: StoreFilters) -> dict[str, Any]:
    """A filter as arguments of a request to the core."""
    given: dict[str, Any] = {
        "tags": filters.tags,
        "fact_types": filters.fact_types,
        "metadata": list(filters.metadata.items()),
        "session": filters.session_id,
        "occurred": filters.time_range,
        "retained": filters.retained_range,
        "as_of": filters.as_of,
        "valid_at": filters.valid_at,
    }
    if filters.memory_ids:
        given["memory_ids"] = [one for name in filters.memory_ids if (one := id_to_bytes(name)) is not None]
    narrowed = {name: value for name, value in given.items() if value not in (None, (), [])}
    if filters.tags:
        narrowed["tag_match"] = filters.tag_match
    if filters.memory_ids:
        narrowed["memory_ids"] = given["memory_ids"]
    return narrowed
