"""SIGKILL under load: a short run of the ledger, and proof that the ledger would notice."""

import random
import re
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from astrocyte.stores.sqlite.engine.data_directory import DATABASE
from harness.serving import serving
from ledger import CYCLES_PER_BANK, Client, Report, Run, Server, Tamper
from ledger_book import Book, check

pytestmark = pytest.mark.process

# As many as until the books of a bank are closed. The long run is `python tests/ledger.py --cycles 200`.
CYCLES = CYCLES_PER_BANK
# Kills come early, when a server has just recovered; the long run waits longer.
LATEST = 0.6


@pytest.mark.timeout(240)
async def test_nothing_acknowledged_is_lost_and_nothing_forgotten_returns(tmp_path: Path) -> None:
    report = await Run(tmp_path, seed=20, latest=LATEST).run(CYCLES)
    assert report.violations == [], report
    assert report.cycles == CYCLES
    assert report.void <= CYCLES // 4, report
    # The kills hit work in flight, and repeated calls were among what was checked.
    assert report.unknown > CYCLES, report
    assert report.repeated > CYCLES // 2, report
    assert min(report.acknowledged[kind] for kind in ("retain", "update", "forget", "recall")) > CYCLES, report


def lose(connection: apsw.Connection) -> None:
    connection.execute(
        "DELETE FROM memories WHERE row_key ="
        " (SELECT min(row_key) FROM memories WHERE forgotten_at IS NULL AND known_until IS NULL)"
    )


def resurrect(connection: apsw.Connection) -> None:
    connection.execute("UPDATE memories SET forgotten_at = NULL")


def alter(connection: apsw.Connection) -> None:
    connection.execute("UPDATE contents SET content = replace(content, 'Clerk', 'Clark')")


def double(connection: apsw.Connection) -> None:
    """As if a request had been carried out twice."""
    for table in ("memories", "contents"):
        names = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({table})")]
        copied = ["row_key + 1000000" if name == "row_key" else name for name in names]
        copied = ["'mem_' || hex(randomblob(16))" if name == "memory_id" else name for name in copied]
        connection.execute(f"INSERT INTO {table} SELECT {', '.join(copied)} FROM {table}")  # noqa: S608


def lose_mentions(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM entity_mentions")
    connection.execute("DELETE FROM graph_entities")


def keep_mentions(connection: apsw.Connection) -> None:
    """As if the entities of forgotten memories were still counted."""
    connection.execute("UPDATE graph_entities SET mention_count = 1")


def count_twice(connection: apsw.Connection) -> None:
    connection.execute("UPDATE graph_entities SET mention_count = 2 * mention_count")


@pytest.mark.parametrize(
    ("tamper", "expected"),
    [
        (lose_mentions, "graph: [0-9]+ entities of [0-9]+ memories are missing"),
        (keep_mentions, "graph: [0-9]+ entities are of no memory"),
        (count_twice, "graph: [0-9]+ entities are not counted once"),
    ],
)
async def test_the_ledger_notices_a_graph_that_is_not_that_of_the_memories(
    tmp_path: Path, tamper: Tamper, expected: str
) -> None:
    book, chosen = Book("ledger-0"), random.Random(5)
    # Nothing is killed: the server can be one of this process, which starts sooner.
    settings = {"vector_store": "sqlite", "data_dir": str(tmp_path)}
    async with serving(**settings) as served:
        client = Client(served.backend, book, chosen, Report(5))
        for _ in range(5):
            await client.do(client._retain())
        await client.do(client._change("forget", book.alive[0]))
        await check(served.backend, book)
        assert book.violations == []
    with closing(apsw.Connection(str(tmp_path / DATABASE))) as connection:
        tamper(connection)
    async with serving(**settings) as served:
        await check(served.backend, book)
    assert any(re.match(expected, violation) for violation in book.violations), book.violations


@pytest.mark.parametrize(
    ("tamper", "expected"), [(lose, "lost"), (resurrect, "resurrected"), (alter, "lost"), (double, "doubled")]
)
async def test_the_ledger_notices_a_server_that_breaks_its_word(tmp_path: Path, tamper: Tamper, expected: str) -> None:
    run = Run(tmp_path, seed=3, latest=LATEST)
    server = await run.cycle(Server(tmp_path), tamper)
    server.kill()
    assert any(violation.startswith(expected) for violation in run.report.violations), run.report
