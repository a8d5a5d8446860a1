"""Checks of hits of other systems, which callers bring and engines return: as right as memories would have to be."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.config import LimitSettings
from astrocyte.errors import ValidationError
from astrocyte.model import MemoryHit
from astrocyte.policy.requests import field_checks

# Scores of other systems are cosines, BM25 or ranks; sums with larger ones would lose digits.
LARGEST_SCORE = 1e9
INSTANTS = ("occurred_at", "retained_at")
LABELS = ("memory_id", "bank_id", "source", "memory_layer", "fact_type", "session_id", "speaker")


def check_external_hits(items: Sequence[MemoryHit], limits: LimitSettings, path: str) -> None:
    """Check hits of another system: no more than hits may be, and each by itself.

    Raises:
        ValidationError: One is wrong; its field is below ``path``.
    """
    field_checks.count(items, path, limits.max_results)
    for index, item in enumerate(items):
        if not isinstance(item, MemoryHit):
            raise ValidationError(f"expected a MemoryHit, got {type(item).__name__}", field=f"{path}[{index}]")
        check_external_hit(item, limits, f"{path}[{index}].")


def check_external_hit(item: MemoryHit, limits: LimitSettings, at: str = "") -> None:
    """Check one hit; ``at`` is the path before its fields.

    Raises:
        ValidationError: A field is wrong.
    """
    if not field_checks.text(item.text, f"{at}text", limits.external_bytes).strip():
        raise ValidationError("is empty", field=f"{at}text")
    field_checks.number(item.score, f"{at}score", -LARGEST_SCORE, LARGEST_SCORE)
    if item.tags:
        field_checks.labels(item.tags, f"{at}tags", limits.tags, limits.tag_chars)
    if item.metadata:
        field_checks.metadata(item.metadata, f"{at}metadata", limits, reserved=False)
    for name in INSTANTS:
        value = getattr(item, name)
        if value is not None:
            field_checks.instant(value, f"{at}{name}")
    for name in LABELS:
        value = getattr(item, name)
        if value is not None:
            field_checks.label(value, f"{at}{name}", limits.name_chars)
