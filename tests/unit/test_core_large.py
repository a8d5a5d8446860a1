"""The large tier through the border: options reach the core, graphs are built and used, and the settings set them."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import CreateBank, GetBankStats, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import Bank, Core, RecallRequest, Row, content_hash, vector_bytes
from astrocyte.errors import ConfigError, ValidationError
from astrocyte.model import Caller, Embedding, RecallQuery, RetainItem

DIMENSIONS = 16
ROWS = 400
MODEL = "given"


def vector(number: int) -> bytes:
    chance = random.Random(number)
    return vector_bytes([chance.gauss(0, 1) for _ in range(DIMENSIONS)])


def fill(core: Core) -> Bank:
    bank = core.bank(DIMENSIONS)
    rows = [
        Row(
            number,
            number.to_bytes(16, "big"),
            content_hash(f"word{number}"),
            f"word{number}",
            vector(number),
            tokens=1,
            known_from=0,
            tags=("rare",) if number % 100 == 0 else (),
        )
        for number in range(1, ROWS + 1)
    ]
    bank.apply(1, rows)
    bank.fold()
    return bank


def plan(bank: Bank, *tags: str) -> str:
    response = bank.recall(RecallRequest(vector=vector(7), k=3, tags=tags))
    assert tags or response.hits[0].key == 7
    return response.trace.plan


def test_beyond_graph_rows_a_graph_answers() -> None:
    bank = fill(Core(graph_rows=100, scan_rows=1))
    stats = bank.stats()
    assert (stats["segments"], stats["graph_rows"]) == (1, ROWS)
    # Room for 32 links of four bytes each.
    assert stats["bytes_graphs"] > ROWS * 128
    assert plan(bank) == (f"graph: {ROWS} of {ROWS} rows, 160 candidates from each of 1 segments, 0 rows scanned")


def test_below_it_and_without_graphs_the_rows_are_scanned() -> None:
    for core in (Core(graph_rows=ROWS + 1), Core(graph_rows=0)):
        bank = fill(core)
        assert bank.stats()["segments"] == 0
        assert plan(bank) == f"scan: {ROWS} of {ROWS} rows"


def test_the_methods_reach_the_core_and_the_plan_names_them() -> None:
    bank = fill(Core(graph_rows=100, dense="usearch", lexical="tantivy"))
    assert plan(bank).startswith(f"graph of usearch: {ROWS} of {ROWS} rows, 160 candidates from each of 1 segments")
    assert plan(bank).endswith(f"; postings of tantivy: {ROWS} of {ROWS} rows, 1 segments")
    assert plan(fill(Core(graph_rows=100, dense="graph"))).startswith("graph: ")
    assert plan(fill(Core(graph_rows=100, dense="scan"))) == f"scan: {ROWS} of {ROWS} rows"
    words = RecallRequest(text="word7", k=3)
    hits = [
        fill(Core(graph_rows=100, dense="scan", lexical=name)).recall(words).hits for name in ("postings", "tantivy")
    ]
    assert [(hit.key, hit.score) for hit in hits[0]] == [(hit.key, hit.score) for hit in hits[1]]
    assert [hit.key for hit in hits[0]] == [7]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"dense": "hnsw"}, "dense"),
        ({"lexical": "lucene"}, "lexical"),
        ({"dense": "usearch", "graph_rows": 0}, "graph_rows"),
        ({"lexical": "tantivy", "graph_rows": 0}, "graph_rows"),
    ],
)
def test_a_method_that_does_not_exist_or_builds_nothing_is_refused(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Core(**{"graph_rows": 100, **options})
    assert caught.value.field == field
    index = {"graph_rows": 100, **options}
    with pytest.raises(ConfigError, match=rf"index\.{field}"):
        Settings.from_mapping({"index": index})


def test_scan_rows_decide_where_they_are_set() -> None:
    bank = fill(Core(graph_rows=100, scan_rows=10))
    assert plan(bank).startswith("graph")
    assert plan(bank, "rare") == f"gather: 4 of {ROWS} rows"


def test_candidates_are_those_that_are_set() -> None:
    assert "300 candidates" in plan(fill(Core(graph_rows=100, scan_rows=1, graph_candidates=300)))


def test_walks_are_compared_with_scans() -> None:
    bank = fill(Core(graph_rows=100, scan_rows=1, sampling=1.0, recall_floor=0.0))
    stats = bank.stats()
    for _ in range(2_000):
        if stats["sampled"]:
            break
        bank.recall(RecallRequest(vector=vector(3)))
        stats = bank.stats()
    assert stats["sampled"]
    assert stats["sampled_wanted"] == 10 * stats["sampled"]
    assert stats["sampled_found"] <= stats["sampled_wanted"]
    unsampled = fill(Core(graph_rows=100, scan_rows=1, sampling=0.0))
    unsampled.recall(RecallRequest(vector=vector(3)))
    assert unsampled.stats()["sampled"] == 0


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("build_share", 0.0),
        ("build_share", 257.0),
        ("build_share", float("nan")),
        ("sampling", -0.1),
        ("recall_floor", 2.0),
    ],
)
def test_an_option_out_of_its_range_is_refused(option: str, value: float) -> None:
    shares: dict[str, Any] = {option: value}
    with pytest.raises(ValidationError) as caught:
        Core(**shares)
    assert caught.value.field == option


@pytest.mark.parametrize(
    ("methods", "start"), [({}, "graph: "), ({"dense": "usearch", "lexical": "tantivy"}, "graph of usearch: ")]
)
async def test_the_settings_reach_the_core(tmp_path: Path, methods: dict[str, str], start: str) -> None:
    index: dict[str, Any] = {
        "graph_rows": 50,
        "scan_rows": 1,
        "graph_candidates": 77,
        "sampling": 1.0,
        "recall_floor": 0.0,
    }
    settings = Settings.from_mapping({"data_dir": str(tmp_path), "index": {**index, **methods, "build_share": 1.0}})
    app = App(settings)
    caller = Caller()
    try:
        await app.gate.call(caller, CreateBank("b", embedding_model=MODEL, dimensions=DIMENSIONS))
        for number in range(60):
            embedding = Embedding(MODEL, DIMENSIONS, vector(number))
            await app.gate.call(caller, Retain("b", RetainItem(f"word{number}", embedding=embedding)))
        query = RecallQuery(
            query="word7", bank_id="b", include_trace=True, embedding=Embedding(MODEL, DIMENSIONS, vector(7))
        )
        held = None
        for _ in range(3_000):
            await app.gate.call(caller, Recall(query))
            held = (await app.gate.call(caller, GetBankStats("b"))).index
            if held is not None and held.sampled_walks:
                break
            # The build has the processor too.
            await asyncio.sleep(0.01)
        assert held is not None
        assert held.segments == 1
        assert held.sampled_recall is not None
        assert 0.9 <= held.sampled_recall <= 1.0
        result = await app.gate.call(caller, Recall(query))
        assert result.trace is not None
        assert result.trace.plan is not None
        assert result.trace.plan.startswith(start)
        assert "77 candidates" in result.trace.plan
        assert result.hits[0].text == "word7"
    finally:
        await app.gate.close()


# Prints how many threads the core has.
COUNTING = """
import sys
from pathlib import Path
from astrocyte.app import App
from astrocyte.config import Settings
for threads in sys.argv[1:]:
    App(Settings.from_mapping({"vector_store": "in_memory", "index": {"threads": int(threads)}}))
names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
print(sum(name.startswith("astro-core") for name in names))
"""


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted as Linux tells them")
@pytest.mark.parametrize("threads", [("3",), ("1",), ("3", "1")])
def test_the_first_application_of_a_process_makes_the_threads_that_it_asks_for(threads: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", COUNTING, *threads]
    counted = subprocess.run(command, capture_output=True, text=True, check=True)
    assert counted.stdout.split()[-1] == threads[0]
