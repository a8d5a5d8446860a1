"""One recall over many banks beside one over a single bank of the same size, in turn, in one process.

    python -m benches.many_banks --banks 8 --memories 10000
    python -m benches.many_banks --banks 100 --memories 1000
    python -m benches.many_banks --denied

The banks are written straight to the store and asked when all are loaded. Each round asks one bank, then all of them
by `parallel`, so that what else the machine does meets both alike: first by gRPC, as a caller sees it, then the gate in
this process. There wall time is what the call took on as many threads as the core has; beside it stands what the
process spent on all of them, which depends less on what else runs, and how long the banks were searched and their
answers joined, as the trace tells. ``--denied`` compares refusals in the process instead: of a call that names a
forbidden bank among full ones, and among empty ones.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from rich.console import Console

from astrocyte.api.requests import CreateBank, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import AccessDenied
from astrocyte.model import Caller, Embedding, RecallQuery
from astrocyte.services.convert import codec_of
from astrocyte.v1 import memory_pb2
from benches.banks import DIMENSIONS, MODEL, QUERY_WORDS, SEED, TENANT, WORDS, write
from benches.corpus import Corpus, Queries, make_corpus, make_queries
from benches.machine import describe
from benches.server import SERVICE, running

CALLER = Caller(TENANT, "bench")
ADMIN = Caller(TENANT, "admin")
WARM_ROUNDS = 5


class Spent(NamedTuple):
    """A call: seconds that it took, seconds of processor time, and the seconds of its stages."""

    wall: float
    used: float
    stages: dict[str, float]


def _query(queries: Queries, number: int, banks: tuple[str, ...]) -> RecallQuery:
    which = number % len(queries.texts)
    embedding = Embedding(MODEL, DIMENSIONS, queries.vectors[which].tobytes())
    if len(banks) == 1:
        return RecallQuery(query=queries.texts[which], bank_id=banks[0], embedding=embedding)
    return RecallQuery(query=queries.texts[which], banks=banks, embedding=embedding)


async def _time(app: App, query: RecallQuery) -> Spent:
    start, used = time.perf_counter(), time.process_time()
    result = await app.gate.call(CALLER, Recall(query))
    wall, used = time.perf_counter() - start, time.process_time() - used
    if not result.hits or result.trace is None:
        raise RuntimeError("an answer is empty")
    told = result.trace.stage_timings_ms or {}
    return Spent(wall, used, {name: spent / 1e3 for name, spent in told.items()})


async def _together(folder: Path, queries: Queries, names: tuple[str, ...], rounds: int) -> dict[str, list[Spent]]:
    app = App(Settings.from_mapping({"data_dir": str(folder), "multi_bank": {"most_banks": len(names)}}))
    times: dict[str, list[Spent]] = {"one bank": [], "all banks": []}
    for number in range(rounds + WARM_ROUNDS):
        one = await _time(app, _query(queries, number, (names[number % len(names)],)))
        several = await _time(app, _query(queries, number, names))
        if number >= WARM_ROUNDS:
            times["one bank"].append(one)
            times["all banks"].append(several)
    await app.gate.close()
    return times


def _called(folder: Path, queries: Queries, names: tuple[str, ...], rounds: int) -> dict[str, list[float]]:
    """Seconds of calls by gRPC, as the caller sees them."""
    times: dict[str, list[float]] = {"one bank": [], "all banks": []}
    settings = folder / "astrocyte.yaml"
    # JSON is YAML.
    settings.write_text(json.dumps({"data_dir": str(folder), "multi_bank": {"most_banks": len(names)}}))
    with (
        running("-m", "astrocyte", "--config", str(settings), "serve", "--port", "0") as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        recall: Any = channel.unary_unary(f"{SERVICE}/Recall")
        codec = codec_of(RecallQuery, memory_pb2.RecallRequest)
        for number in range(rounds + WARM_ROUNDS):
            asked = {"one bank": (names[number % len(names)],), "all banks": names}
            for name, banks in asked.items():
                request = codec.encode(_query(queries, number, banks)).SerializeToString()
                start = time.perf_counter()
                recall(request)
                if number >= WARM_ROUNDS:
                    times[name].append(time.perf_counter() - start)
    return times


async def _refused(app: App, query: RecallQuery) -> Spent:
    start, used = time.perf_counter(), time.process_time()
    try:
        await app.gate.call(CALLER, Recall(query))
    except AccessDenied:
        return Spent(time.perf_counter() - start, time.process_time() - used, {})
    raise RuntimeError("a forbidden bank was let pass")


async def _denied(folder: Path, queries: Queries, full: tuple[str, ...], rounds: int) -> dict[str, list[Spent]]:
    """Refusals by what is in the other banks: a forbidden one stands in the middle of them."""
    empty = tuple(f"empty-{number}" for number in range(len(full)))
    settings = {
        "data_dir": str(folder),
        "access_control": {"enabled": True, "default_policy": "deny"},
        "access_grants": [
            *({"bank_id": name, "principal": "bench", "permissions": ["read"]} for name in (*full, *empty)),
            {"bank_id": "*", "principal": "admin", "permissions": ["*"]},
        ],
    }
    app = App(Settings.from_mapping(settings))
    for name in (*empty, "forbidden"):
        await app.gate.call(ADMIN, CreateBank(name, embedding_model=MODEL, dimensions=DIMENSIONS))
    for name in full:
        await _time(app, _query(queries, 0, (name,)))
    middle = len(full) // 2
    banks = {
        "refused, others full": (*full[:middle], "forbidden", *full[middle:]),
        "refused, others empty": (*empty[:middle], "forbidden", *empty[middle:]),
        "refused, there is none": (*full[:middle], "missing", *full[middle:]),
    }
    times: dict[str, list[Spent]] = {name: [] for name in banks}
    for number in range(rounds + WARM_ROUNDS):
        for name, asked in banks.items():
            spent = await _refused(app, _query(queries, number, asked))
            if number >= WARM_ROUNDS:
                times[name].append(spent)
    await app.gate.close()
    return times


def _report_calls(console: Console, times: dict[str, list[float]]) -> None:
    first = statistics.median(next(iter(times.values())))
    for name, values in times.items():
        cuts = statistics.quantiles(values, n=100)
        console.print(
            f"{name:24} by gRPC  p50 {cuts[49] * 1e3:8.3f} ms ({cuts[49] / first:.2f} x)  p95 {cuts[94] * 1e3:8.3f} ms"
        )


def _report(console: Console, times: dict[str, list[Spent]]) -> None:
    rows = []
    for name, values in times.items():
        cuts = statistics.quantiles([spent.wall for spent in values], n=100)
        rows.append((name, cuts[49] * 1e3, cuts[94] * 1e3, statistics.median(spent.used for spent in values) * 1e3))
    _, first, _, first_used = rows[0]
    for name, median, late, used in rows:
        console.print(
            f"{name:24} wall p50 {median:8.3f} ms ({median / first:.2f} x)  p95 {late:8.3f} ms  "
            f"processor p50 {used:8.3f} ms ({used / first_used:.2f} x)"
        )
    for name, values in times.items():
        for title, stages in (("searched", ("core", "feedback")), ("read back and joined", ("hydrate",))):
            spent = [sum(one.stages.get(stage, 0.0) for stage in stages) * 1e3 for one in values]
            if any(spent):
                console.print(f"{name:24} {title} in {statistics.median(spent):8.3f} ms")


def main() -> None:
    """Write the banks, ask them, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--banks", type=int, default=8)
    parser.add_argument("--memories", type=int, default=10_000, help="memories per bank")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--denied", action="store_true", help="compare refusals")
    options = parser.parse_args()
    console = Console(highlight=False)
    sizes = {"banks": options.banks, "memories": options.memories, "dimensions": DIMENSIONS, "seed": SEED}
    console.print(describe("apsw", **sizes))
    corpus: Corpus = make_corpus(options.memories, dimensions=DIMENSIONS, words=WORDS, seed=SEED)
    queries = make_queries(corpus, 256, words=QUERY_WORDS)
    names = tuple(f"b{number}" for number in range(options.banks))
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(write(Path(folder), corpus, options.banks))
        if not options.denied:
            _report_calls(console, _called(Path(folder), queries, names, options.rounds))
        work = _denied if options.denied else _together
        _report(console, asyncio.run(work(Path(folder), queries, names, options.rounds)))


if __name__ == "__main__":
    main()
