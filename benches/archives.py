"""Export and import of a bank: memories per second, and growth of resident memory.

    python -m benches.archives --memories 100000

The bank is on disk, its vectors in the archive, and its index not loaded: what grows is the export or the import. Each
runs in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from astrocyte.api.requests import BatchRetain, ExportBank
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.facade.archives import export_file, import_file
from astrocyte.model import Caller, RetainItem
from benches.corpus import english_texts
from benches.machine import describe, resident_bytes

ME = Caller()
WORDS = 16
SEED = 20_261_125
BATCH = 256
LOOK_SECONDS = 0.02


async def fill(folder: Path, memories: int) -> None:
    """Make the bank."""
    app = App(Settings.from_mapping({"data_dir": str(folder / "source")}))
    texts = english_texts(memories, words=WORDS, seed=SEED)
    for start in range(0, memories, BATCH):
        items = [
            RetainItem(f"{text} {_name(start + index)}") for index, text in enumerate(texts[start : start + BATCH])
        ]
        await app.gate.call(ME, BatchRetain("bench", items))
    await app.close()


def _name(number: int) -> str:
    """A word for a number: digits could be a telephone number."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


async def export(folder: Path, memories: int) -> None:
    """Export it."""
    app = App(Settings.from_mapping({"data_dir": str(folder / "source")}))
    request = ExportBank("bench", include_embeddings=True)
    path = folder / "bench.jsonl"
    done, rates, grown = await _measured(export_file(app.gate, ME, request, path), memories)
    assert done.memories == memories, done
    print(f"export   {rates}   {done.bytes / 1e6:5,.0f} MB   resident +{grown / (1 << 20):5.1f} MiB")
    await app.close()


async def load(folder: Path, memories: int) -> None:
    """Import it elsewhere."""
    app = App(Settings.from_mapping({"data_dir": str(folder / "target")}))
    work = import_file(app.gate, ME, "bench", folder / "bench.jsonl")
    result, rates, grown = await _measured(work, memories)
    assert result.imported == memories, result
    print(f"import   {rates}   {'':8}   resident +{grown / (1 << 20):5.1f} MiB")
    await app.close()


async def _measured(work: Coroutine[Any, Any, Any], memories: int) -> tuple[Any, str, int]:
    """The result, memories per second and per second of processor time, and the most that resident memory grew."""
    begun, spent, before = time.perf_counter(), time.process_time(), resident_bytes()
    most = before
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait((task,), timeout=LOOK_SECONDS)
        most = max(most, resident_bytes())
    seconds, processor = time.perf_counter() - begun, time.process_time() - spent
    rates = f"{memories / seconds:8,.0f} memories/s ({memories / processor:8,.0f} per processor second)"
    return task.result(), rates, most - before


def _apart(step: Callable[[Path, int], Coroutine[Any, Any, None]], folder: Path, memories: int) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_step, args=(step, folder, memories))
    process.start()
    process.join()
    assert process.exitcode == 0


def _step(step: Callable[[Path, int], Coroutine[Any, Any, None]], folder: Path, memories: int) -> None:
    asyncio.run(step(folder, memories))


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    given = parser.parse_args()
    print(describe(memories=given.memories, seed=SEED))
    with tempfile.TemporaryDirectory() as folder:
        for step in (fill, export, load):
            _apart(step, Path(folder), given.memories)


if __name__ == "__main__":
    main()
