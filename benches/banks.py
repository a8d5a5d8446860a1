"""Many banks under a budget of memory: resident memory, and what a bank costs that is not loaded.

    python -m benches.banks --banks 2000 --memories 1000 --budget-mib 1024

The banks are written straight to the store (a copy of one bank's vectors and texts, other ids), then asked round robin
through the gate, so that with more banks than the budget holds every question meets a cold one. The first round is not
counted: it fills the budget.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from pathlib import Path

from rich.console import Console

from astrocyte.api.requests import GetServerInfo, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import content_hash
from astrocyte.model import Caller, Embedding, RecallQuery
from astrocyte.stores.records import Insert, NewMemory
from astrocyte.stores.sqlite import open_store
from benches.corpus import Corpus, Queries, make_corpus, make_queries
from benches.machine import describe, resident_bytes

SEED = 20_250_112
WORDS = 16
QUERY_WORDS = 6
DIMENSIONS = 384
MODEL = "bench"
TENANT = "default"
# Turns per conversation.
SESSION = 20
MIB = 1 << 20


def _memory(corpus: Corpus, row: int, bank: int) -> NewMemory:
    text = f"{corpus.texts[row]} {bank}-{row}"
    return NewMemory(
        memory_id=f"mem_{uuid.UUID(int=(bank << 64) | row).hex}",
        content=text,
        content_hash=content_hash(text),
        content_type="text",
        fact_type="world",
        memory_layer="semantic",
        token_count=WORDS,
        vector=corpus.vectors[row].tobytes(),
        tags=("all", f"tag{row % 10}"),
        session_id=f"session{row // SESSION}",
        speaker="Ann",
        occurred_at=1_700_000_000_000 + row * 60_000,
    )


async def write(folder: Path, corpus: Corpus, banks: int) -> None:
    """So many banks, ``b0`` and on, each with all of the corpus under ids of its own."""
    store = open_store(folder)
    for number in range(banks):
        bank = await store.create_bank(
            TENANT, f"b{number}", display_name="", description="", embedding_model=MODEL, dimensions=DIMENSIONS
        )
        await store.commit(bank, [Insert(_memory(corpus, row, number)) for row in range(len(corpus.texts))])
    store.close()


async def _ask(folder: Path, queries: Queries, banks: int, rounds: int, budget: int) -> tuple[list[float], int, App]:
    settings = Settings.from_mapping({"data_dir": str(folder), "index": {"memory_bytes": budget}})
    app = App(settings)
    caller = Caller(TENANT, "bench")
    times: list[float] = []
    most = 0
    for turn in range(rounds + 1):
        for number in range(banks):
            which = (turn * banks + number) % len(queries.texts)
            query = RecallQuery(
                query=queries.texts[which],
                bank_id=f"b{number}",
                embedding=Embedding(MODEL, DIMENSIONS, queries.vectors[which].tobytes()),
            )
            start = time.perf_counter()
            result = await app.gate.call(caller, Recall(query))
            if turn:
                times.append(time.perf_counter() - start)
            if not result.hits:
                raise RuntimeError(f"bank b{number} has no answer")
            most = max(most, resident_bytes())
    return times, most, app


def main() -> None:
    """Write the banks, ask them, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banks", type=int, default=2_000)
    parser.add_argument("--memories", type=int, default=1_000, help="memories per bank")
    parser.add_argument("--budget-mib", type=int, default=1_024)
    parser.add_argument("--rounds", type=int, default=1, help="counted rounds over all banks")
    options = parser.parse_args()
    console = Console(highlight=False)
    console.print(
        describe(
            "apsw",
            banks=options.banks,
            memories=options.memories,
            budget_mib=options.budget_mib,
            dimensions=DIMENSIONS,
            seed=SEED,
        )
    )
    corpus = make_corpus(options.memories, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
    queries = make_queries(corpus, 256, words=QUERY_WORDS)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(write(Path(folder), corpus, options.banks))
        with asyncio.Runner() as runner:
            before = resident_bytes()
            times, most, app = runner.run(
                _ask(Path(folder), queries, options.banks, options.rounds, options.budget_mib * MIB)
            )
            memory = runner.run(app.gate.call(Caller(TENANT, "bench"), GetServerInfo())).index_memory
            runner.run(app.gate.close())
    times.sort()
    cuts = statistics.quantiles(times, n=100)
    console.print(
        f"recall of a bank in turn: p50 {cuts[49] * 1e3:.1f} ms, p95 {cuts[94] * 1e3:.1f} ms, "
        f"p99 {cuts[98] * 1e3:.1f} ms"
    )
    console.print(
        f"resident memory at most {most / MIB:,.0f} MiB ({before / MIB:,.0f} before the first bank); indexes "
        f"{memory.bytes / MIB:,.0f} of {memory.budget_bytes / MIB:,.0f} MiB in {memory.loaded_banks:,} banks"
    )
    console.print(f"loads {memory.loads:,}, evictions {memory.evictions:,}")


if __name__ == "__main__":
    main()
