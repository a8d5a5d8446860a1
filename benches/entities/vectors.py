"""Count the labelled pairs of names that vectors take for one entity although no rule does.

Example:
    python -m benches.entities.vectors --thresholds 0.8 0.9
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from array import array
from collections.abc import Sequence
from math import hypot
from operator import mul
from typing import get_args

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Entity, KnownEntity
from astrocyte.pipelines.graph.resolution import resolve
from benches.entities.pairs import pairs
from benches.entities.sentences import Split


def _known(name: str, kind: str, mark: str) -> KnownEntity:
    # The mark keeps two spellings with one id apart.
    return KnownEntity(Entity(name, kind).id + mark, name, kind)


def _unit(vector: bytes) -> list[float]:
    values = array("f", vector)
    length = hypot(*values) or 1.0
    return [value / length for value in values]


async def measure(split: Split, thresholds: Sequence[float]) -> None:
    """Print, by threshold, the pairs of one entity and of two entities that only their vectors join."""
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    embedder = app.providers.spaces.default
    open_pairs = []
    for pair in pairs(split):
        left, right = _known(pair.left, pair.left_type, ""), _known(pair.right, pair.right_type, "-")
        if not resolve([left], [right]) and not resolve([right], [left]):
            first, second = map(_unit, await embedder.embed([pair.left, pair.right]))
            open_pairs.append((sum(map(mul, first, second)), pair.same))
    await app.close()
    print(f"{split}: {len(open_pairs)} pairs that no rule joins")
    for least in thresholds:
        joined = [same for similarity, same in open_pairs if similarity >= least]
        print(f"  similarity >= {least:.2f}: {sum(joined)} of one entity, {len(joined) - sum(joined)} of two")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both splits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.7, 0.8, 0.9, 0.95], help="of the cosine")
    options = parser.parse_args(arguments)
    for split in get_args(Split):
        asyncio.run(measure(split, options.thresholds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
