"""The conditions of a recall on memories, as far as a version tells them; its clocks are those of a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# First and last instant in milliseconds since the epoch, both included; None is open.
Span = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class MemoryFilter:
    """The conditions on a version. They combine with AND; of several fact types or memory ids, any one is enough.

    Attributes:
        tags: Tags, combined by ``tag_match``.
        tag_match: ``any``, ``all`` or ``none`` of the tags.
        fact_types: Fact types.
        memory_ids: Ids of memories.
        session_id: Session; None for all.
        metadata: Keys with typed values, as `astrocyte.pipelines.index.rows.metadata_pairs` writes them.
        happened: When it happened, or was retained where that is not known.
        retained: When it was retained.
    """

    tags: tuple[str, ...] = ()
    tag_match: Literal["any", "all", "none"] = "any"
    fact_types: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = ()
    session_id: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    happened: Span = (None, None)
    retained: Span = (None, None)


# Admits every version.
EVERYTHING = MemoryFilter()
