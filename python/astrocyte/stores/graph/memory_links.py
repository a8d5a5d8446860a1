"""Links between versions of memories, as a view of the entity graph sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class SessionNeighbor(NamedTuple):
    """A turn near a version in its session: the milliseconds between the two, and the visible turns from one to it."""

    row_key: int
    other: int
    apart: int
    steps: int


class MemoryLinks(Protocol):
    """Reads of links between versions, by row key."""

    def beside(self, row_keys: Sequence[int], distance: int) -> list[SessionNeighbor]:
        """The visible turns of the same session up to ``distance`` before and after each version."""

    def memory_ids(self, row_keys: Sequence[int]) -> dict[int, str]:
        """Ids of the memories of visible versions, by row key."""

    def vectors(self, row_keys: Sequence[int], model: str) -> dict[int, bytes]:
        """The vectors of versions as wholes, by row key, little-endian f32; of those that have one of this model."""
