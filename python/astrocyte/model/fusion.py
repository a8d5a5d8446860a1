"""Fusion methods of rankings."""

from __future__ import annotations

from enum import StrEnum


class FusionMethod(StrEnum):
    """The method that makes one list of those of the arms."""

    RRF = "rrf"
    RELATIVE_SCORE = "relative_score"
