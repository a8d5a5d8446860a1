"""Fusion methods of rankings."""

from __future__ import annotations

from enum import StrEnum


class FusionMethod(StrEnum):
    """The method that makes one list of several.

    RRF adds 1 / (k + rank). RELATIVE_SCORE adds scores that are laid over 0 to 1 by the least and the most of a list.
    DBSF, distribution-based score fusion, adds z-scores: distances from the mean in standard deviations.
    """

    RRF = "rrf"
    RELATIVE_SCORE = "relative_score"
    DBSF = "dbsf"
