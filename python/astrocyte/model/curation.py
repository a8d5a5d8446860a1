"""Decisions of a language model on items to be retained."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CurationAction(StrEnum):
    """Store it; replace a memory by it, or make both one; leave it out; or forget the memory that it disproves."""

    ADD = "add"
    UPDATE = "update"
    MERGE = "merge"
    SKIP = "skip"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Curation:
    """A decision: on which memory it rests, whether it was followed, and why it was made, or why it was not followed.

    ``reason`` is the model's, or the server's where ``applied`` is False; it is not kept with the answer to a request
    id, because it may tell of what was stored.
    """

    action: CurationAction
    applied: bool = True
    target_id: str | None = None
    reason: str = ""
    model: str = ""
