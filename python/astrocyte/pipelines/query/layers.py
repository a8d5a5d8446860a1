"""Weights of memory layers: ``fact`` names the layers of ordinary memories together."""

from __future__ import annotations

from collections.abc import Mapping

FACT = "fact"
# The layers of memories that were stored without curation.
FACT_LAYERS = ("semantic", "episodic")


def by_layer(weights: Mapping[str, float]) -> dict[str, float]:
    """The weights of single layers; one that a caller gives by name wins over that of ``fact``."""
    if FACT not in weights:
        return dict(weights)
    return {**dict.fromkeys(FACT_LAYERS, weights[FACT]), **weights}
