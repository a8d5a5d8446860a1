"""Recalls of an agent's memory beside plain recalls, and an indexing of shared documents after one change.

    python -m benches.agent_memory --memories 1000 --files 2000

The agent and the bank have the same texts, on disk. Each round asks each way once, in another order, so that other load
meets all alike; the last line asks the bank once more: what differs there is noise. The blended recall also searches a
shared bank with the same texts. Then a folder is indexed, and indexed again after one of its files changed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import structlog
from rich.console import Console
from rich.table import Table

from astrocyte import Astrocyte
from astrocyte.api.requests import BatchRetain, Recall, RecallAgentMemory, Remember
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, RecallQuery, RetainItem
from benches.corpus import english_texts
from benches.machine import describe

CALLER = Caller("default", "agent:bench")
BANK = "bench"
WORDS, QUERY_WORDS, FILE_WORDS = 16, 6, 500
TOPICS = 50
SEED = 20_261_128
WARM_ROUNDS = 50
RESULTS = 10
BETWEEN_SECONDS = 0.005
Way = Callable[[str], Awaitable[object]]
# By way: milliseconds on the clock, and of the processor.
Spent = dict[str, list[tuple[float, float]]]


async def _application(folder: Path, texts: Sequence[str], shared_banks: Sequence[str]) -> App:
    settings = {"data_dir": str(folder), "agent_memory": {"shared_banks": list(shared_banks)}}
    app = App(Settings.from_mapping(settings))
    for start in range(0, len(texts), 100):
        items = [RetainItem(text) for text in texts[start : start + 100]]
        await app.gate.call(CALLER, BatchRetain(BANK, items))
    for number, text in enumerate(texts):
        await app.gate.call(CALLER, Remember(f"topic {number % TOPICS}", text))
    return app


async def _by_turns(ways: Mapping[str, Way], questions: Sequence[str]) -> Spent:
    """Milliseconds of each question asked each way, without those of the first rounds."""
    order, rng = list(ways), random.Random(SEED)
    spent: Spent = {name: [] for name in ways}
    for number, question in enumerate(questions):
        rng.shuffle(order)
        for name in order:
            # What an earlier call left to do in the background is none of the next one.
            await asyncio.sleep(BETWEEN_SECONDS)
            started, processor = time.perf_counter(), time.thread_time()
            await ways[name](question)
            times = time.perf_counter() - started, time.thread_time() - processor
            if number >= WARM_ROUNDS:
                spent[name].append((times[0] * 1_000, times[1] * 1_000))
    return spent


async def measure_recalls(memories: int, rounds: int) -> Spent:
    """Milliseconds of plain recalls, of recalls of private memory alone, and of blended ones."""
    texts = english_texts(memories, words=WORDS, seed=SEED)
    questions = english_texts(rounds + WARM_ROUNDS, words=QUERY_WORDS, seed=SEED + 1, numbered=False)
    with tempfile.TemporaryDirectory() as folder:
        alone = await _application(Path(folder) / "alone", texts, ())
        blended = await _application(Path(folder) / "blended", texts, (BANK,))

        def plain(question: str) -> Awaitable[object]:
            return alone.gate.call(CALLER, Recall(RecallQuery(question, BANK, max_results=RESULTS)))

        ways: dict[str, Way] = {
            "plain recall": plain,
            "agent memory": lambda question: alone.gate.call(CALLER, RecallAgentMemory(question, RESULTS)),
            "agent memory, blended": lambda question: blended.gate.call(CALLER, RecallAgentMemory(question, RESULTS)),
            "plain recall, again": plain,
        }
        try:
            return await _by_turns(ways, questions)
        finally:
            await alone.close()
            await blended.close()


async def measure_indexing(files: int, rounds: int) -> tuple[float, list[float]]:
    """Seconds of the first indexing of a folder, and of those after one changed file."""
    texts = english_texts(files + rounds, words=FILE_WORDS, seed=SEED)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "docs"
        folder.mkdir()
        for number in range(files):
            (folder / f"{number:05}.md").write_text(f"# Document {number}\n\n{texts[number]}\n", encoding="utf-8")
        brain = Astrocyte.from_config_dict({"data_dir": str(Path(place) / "data")})
        started = time.perf_counter()
        report = await brain.shared_kb_index_folder(folder, BANK)
        first = time.perf_counter() - started
        assert (report.created, report.failures) == (files, {}), report
        spent: list[float] = []
        for number in range(rounds):
            changed = folder / f"{number * files // rounds:05}.md"
            changed.write_text(f"# Document {number}\n\n{texts[files + number]}\n", encoding="utf-8")
            started = time.perf_counter()
            report = await brain.shared_kb_index_folder(folder, BANK)
            spent.append(time.perf_counter() - started)
            assert (report.updated, report.unchanged) == (1, files - 1), report
        await brain.close()
    return first, spent


def table(spent: Spent) -> Table:
    """The times of each way, and their ratios to the first one's."""
    shown = Table("way", "p50, ms", "x", "processor p50, ms", "x", "p95, ms")
    plain = _medians(next(iter(spent.values())))
    for name, times in spent.items():
        clock, processor = _medians(times)
        late = statistics.quantiles([one for one, _ in times], n=20)[-1]
        ratios = f"{clock / plain[0]:.2f}", f"{processor / plain[1]:.2f}"
        shown.add_row(name, f"{clock:.2f}", ratios[0], f"{processor:.2f}", ratios[1], f"{late:.2f}")
    return shown


def _medians(times: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return statistics.median([one for one, _ in times]), statistics.median([other for _, other in times])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=1_000, help="of the agent, and of the bank")
    parser.add_argument("--rounds", type=int, default=1_000, help="questions, asked each way")
    parser.add_argument("--files", type=int, default=2_000, help="of the folder")
    parser.add_argument("--changes", type=int, default=10, help="indexings after one changed file")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    console = Console()
    console.print(describe(memories=given.memories, rounds=given.rounds, files=given.files, seed=SEED))
    console.print(table(asyncio.run(measure_recalls(given.memories, given.rounds))))
    first, spent = asyncio.run(measure_indexing(given.files, given.changes))
    console.print(
        f"{given.files:,} files: {first:.2f} s to index, {statistics.median(spent):.2f} s after one change,"
        f" {max(spent):.2f} s at most of {len(spent)}"
    )


if __name__ == "__main__":
    main()
