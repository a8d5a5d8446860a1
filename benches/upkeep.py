"""Seconds of the upkeep of a bank: the search for near duplicates, their merging, and the compilation of wiki pages.

    python -m benches.upkeep --memories 100000 --pages 10000

Duplicates are searched for in a bank where one memory in twenty repeats an earlier one with another filler word. Pages
are compiled of memories about people, each of whom 40 to 60 memories name; then again without a change, and after ten
more memories.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from astrocyte import Astrocyte
from astrocyte.app import App
from astrocyte.config import Settings
from benches.corpus import english_texts
from benches.machine import describe

SEED = 20_261_128
WORDS = 16
BATCH = 256
REPEATED = 20
# Memories about one person, and new memories before the last compilation.
MEMORIES_OF_A_TOPIC = 50
CHANGES = 10
PATIENCE = 300.0
GIVEN = ("Ada", "Bruno", "Chiara", "Dmitri", "Emeka", "Farah", "Goran", "Hana", "Ines", "Jun", "Katya", "Liam")
FAMILY = ("Abara", "Brandt", "Costa", "Duarte", "Eklund", "Fischer", "Gupta", "Haddad", "Ivanov", "Jansen", "Kimura")


async def store(brain: Astrocyte, texts: list[str]) -> None:
    """Retain texts as they are."""
    for start in range(0, len(texts), BATCH):
        await brain.retain_many([{"content": text} for text in texts[start : start + BATCH]], "bench")


async def run_lifecycle(brain: Astrocyte, *, dry_run: bool) -> None:
    """Search for near duplicates, and merge them."""
    begun = time.perf_counter()
    operation = await brain.run_lifecycle("bench", dry_run=dry_run, merge_duplicates=True)
    done = await brain.wait_operation("bench", operation.operation_id, timeout_seconds=PATIENCE)
    if done.lifecycle is None:
        raise RuntimeError(f"expected a run that is done, got {done.error}")
    took = f"{time.perf_counter() - begun:6.1f} s"
    print(f"duplicates, {'dry run' if dry_run else 'merged':<9} {took}   {done.lifecycle.merged:,} merged")


async def duplicates(folder: Path, memories: int) -> None:
    """Measure the search and the merging."""
    settings: dict[str, Any] = {"data_dir": str(folder), "signal_quality": {"dedup": {"enabled": False}}}
    async with Astrocyte.from_config_dict(settings) as brain:
        texts = english_texts(memories, words=WORDS, seed=SEED)
        for index in range(REPEATED, memories, REPEATED):
            texts[index] = f"well, {texts[index - REPEATED // 2]}"
        await store(brain, texts)
        await run_lifecycle(brain, dry_run=True)
        await run_lifecycle(brain, dry_run=False)


async def pages(folder: Path, memories: int) -> None:
    """Measure the compilations."""
    random = Random(SEED)
    people = [
        f"{random.choice(GIVEN)} {random.choice(FAMILY)}{chr(ord('a') + number % 26)}"
        for number in range(max(1, memories // MEMORIES_OF_A_TOPIC))
    ]
    texts = english_texts(memories + CHANGES, words=WORDS, seed=SEED)
    told = [f"{random.choice(people)} told us: {text}." for text in texts]
    app = App(Settings.from_mapping({"data_dir": str(folder)}))
    brain = Astrocyte(app.gate)
    for title, new in (("first", told[:memories]), ("unchanged", []), (f"after {CHANGES}", told[memories:])):
        await store(brain, new)
        # Names are read behind the retains.
        if not await app.pipelines.graph.follower.caught_up(PATIENCE):
            raise TimeoutError(f"the names were not read after {PATIENCE:g} s")
        begun = time.perf_counter()
        result = await brain.compile("bench")
        took, written = f"{time.perf_counter() - begun:6.2f} s", result.pages_created + result.pages_updated
        print(f"pages, {title:<14} {took}   {written:,} of {result.scopes_compiled:,} written")
    await app.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000, help="of the bank with duplicates; 0 leaves it out")
    parser.add_argument("--pages", type=int, default=10_000, help="memories of the bank with pages; 0 leaves it out")
    given = parser.parse_args()
    print(describe(memories=given.memories, pages=given.pages, seed=SEED))
    for measure, memories in ((duplicates, given.memories), (pages, given.pages)):
        if memories:
            with tempfile.TemporaryDirectory() as folder:
                asyncio.run(measure(Path(folder), memories))


if __name__ == "__main__":
    main()
