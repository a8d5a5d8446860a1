"""Cost of prefixes in a recall, of the words that a bank keeps for them, and of the first search, which reads texts.

    python -m benches.prefixes --rows 10000 200000

A recall of one frequent word by the keyword arm alone, without feedback, is compared with recalls of prefixes of four
and of three letters. Each round asks each way once, in another order, so that what else the machine does meets all
alike; told is the processor time of the process, the median. The first search is told in seconds and processor time.
While it reads, the event loop is asked to wake every millisecond; its longest delay is told beside that of a second
without work. No graphs are built.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import Coroutine, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import structlog

from astrocyte.api.requests import BatchRetain, GetBank, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Bank, Caller, RecallQuery, RetainItem
from benches.corpus import make_corpus
from benches.machine import describe

CALLER = Caller("default", "bench")
BANK = "bench"
WORDS = 16
SEED = 20_261_129
RETAINED_AT_ONCE = 250
WARM_ROUNDS = 5
TICK = 0.001
ALONE = {"semantic": 0.0, "keyword": 1.0, "temporal": 0.0}


async def _measure(rows: int, rounds: int, tier: str, folder: Path) -> None:
    settings = {
        "data_dir": str(folder),
        # No graph is built meanwhile: the keyword arm alone is asked.
        "index": {"tier": tier, "graph_rows": 0},
        "recall": {"feedback": 0.0, "cache_bytes": 0},
        "signal_quality": {"dedup": {"enabled": False}},
    }
    app = App(Settings.from_mapping(settings))
    texts = make_corpus(rows, dimensions=1, words=WORDS, seed=SEED).texts
    for start in range(0, rows, RETAINED_AT_ONCE):
        items = [RetainItem(text) for text in texts[start : start + RETAINED_AT_ONCE]]
        await app.gate.call(CALLER, BatchRetain(BANK, items))
    bank = await app.gate.call(CALLER, GetBank(BANK))
    counts: dict[str, int] = {}
    for text in texts:
        for word in text.split():
            counts[word] = counts.get(word, 0) + 1
    frequent = sorted(counts, key=lambda word: -counts[word])[:200]
    print(f"{rows:,} rows, {len(counts):,} words, tier {tier}")
    await _first(app, bank, frequent[0])
    chance = random.Random(SEED)
    await _rounds(app, chance, frequent, rounds)
    await app.close()


async def _first(app: App, bank: Bank, word: str) -> None:
    """Tell what the first search by prefixes takes."""
    quiet = await _delay(asyncio.sleep(1.0))
    before, spent, start = _resident(app, bank), process_time(), perf_counter()
    delay = await _delay(_ask(app, f"{word[:4]}*", prefixes=True))
    seconds, spent = perf_counter() - start, process_time() - spent
    again = process_time()
    await _ask(app, f"{word[:4]}*", prefixes=True)
    print(
        f"  first search {seconds:.2f} s, {spent:.2f} s of processor time; the second {process_time() - again:.4f} s; "
        f"words {(_resident(app, bank) - before) / 1e6:.1f} MB; longest delay of the event loop {delay * 1e3:.0f} ms, "
        f"without work {quiet * 1e3:.0f} ms"
    )


async def _rounds(app: App, chance: random.Random, frequent: list[str], rounds: int) -> None:
    """Tell the processor time of recalls of words and of prefixes, by turns."""
    spent: Mapping[str, list[float]] = {"word": [], "word, again": [], "prefix of 4": [], "prefix of 3": []}
    found: dict[str, list[int]] = {"prefix of 4": [], "prefix of 3": []}
    for number in range(rounds + WARM_ROUNDS):
        word = chance.choice(frequent)
        ways = list(spent)
        chance.shuffle(ways)
        for way in ways:
            query = f"{word[: int(way[-1])]}*" if way in found else word
            start = process_time()
            total = await _ask(app, query, prefixes=way in found)
            if number >= WARM_ROUNDS:
                spent[way].append(process_time() - start)
                if way in found:
                    found[way].append(total)
    plain = median(spent["word"])
    for way, times in spent.items():
        words = f", {median(found[way]):.0f} words" if way in found else ""
        print(f"  {way:12} {median(times) * 1e3:8.3f} ms  {median(times) / plain:5.2f}{words}")


async def _ask(app: App, query: str, *, prefixes: bool) -> int:
    """Recall; returns the number of words of the prefix."""
    asked = RecallQuery(query, BANK, weights=ALONE, expand_prefixes=prefixes, include_trace=prefixes)
    result = await app.gate.call(CALLER, Recall(asked))
    return result.trace.prefixes[0].total if prefixes and result.trace is not None else 0


async def _delay(work: Coroutine[Any, Any, object]) -> float:
    """The longest delay of the event loop while a coroutine runs."""
    longest, task = 0.0, asyncio.create_task(work)
    while not task.done():
        start = perf_counter()
        await asyncio.sleep(TICK)
        longest = max(longest, perf_counter() - start - TICK)
    await task
    return longest


def _resident(app: App, bank: Bank) -> int:
    index = app.storage.registry.peek(bank)
    return 0 if index is None else index.core.stats()["bytes"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000])
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--tier", choices=("memory", "disk"), default="memory")
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    print(describe(rounds=options.rounds, seed=SEED))
    for rows in options.rows:
        with TemporaryDirectory() as folder:
            asyncio.run(_measure(rows, options.rounds, options.tier, Path(folder)))


if __name__ == "__main__":
    main()
