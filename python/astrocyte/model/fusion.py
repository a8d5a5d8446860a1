"""How rankings become one."""

from __future__ import annotations

from enum import StrEnum


class FusionMethod(StrEnum):
    """How the arms' lists become one."""

    RRF = "rrf"
    RELATIVE_SCORE = "relative_score"
