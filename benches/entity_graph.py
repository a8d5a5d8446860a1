"""Cost of the entity graph: retains with and without it, derivation, graph calls over gRPC, and the arm of recalls.

    python -m benches.entity_graph --memories 100000 --entities 20000

The people are pairs of made-up names with a skewed frequency; one of them is in every tenth memory. Processor time is
of the process: of the server, and of the client of a call over gRPC. The arm `graph` is asked in process, beside
recalls of the same questions without it.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from astrocyte.api.requests import BatchRetain, FindPath, GetEntity, Neighbors, Recall, Retain, SearchEntities
from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.model import Caller, RecallQuery, RetainItem
from astrocyte.providers.stages import ArmQuery
from astrocyte.providers.storage import CURRENT
from astrocyte.server import server_of

ME, BANK = Caller(), "people"
BATCH = 256
HUB = "Zelda Hubbard"
# Memories that the arm proposes to a recall.
DEPTH = 100
SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "wu", "za")


def names(count: int, choose: random.Random) -> list[str]:
    """Distinct names of two words."""
    found: dict[str, None] = {}
    while len(found) < count:
        parts = ("".join(choose.choice(SYLLABLES) for _ in range(3)).capitalize() for _ in range(2))
        found[" ".join(parts)] = None
    return list(found)


def contents(count: int, entities: int, choose: random.Random, verb: str = "sat beside") -> list[str]:
    """Sentences that name two people each, with what the first did to the second."""
    people = names(entities, choose)
    weights = [1 / (rank + 10) ** 0.7 for rank in range(entities)]
    chosen = choose.choices(people, weights, k=2 * count)
    texts = []
    for place in range(count):
        one, other = chosen[2 * place : 2 * place + 2]
        if place % 10 == 0:
            other = HUB
        texts.append(f"{one} {verb} {other} on day {place}, and they spoke of the harbour and the new boat.")
    return texts


async def timed(call: Callable[[int], Awaitable[Any]], number: int) -> list[tuple[float, float]]:
    """Milliseconds of each of some calls: of time, and of the processor."""
    times = []
    for index in range(number):
        start, used = time.perf_counter(), time.process_time()
        await call(index)
        times.append(((time.perf_counter() - start) * 1_000, (time.process_time() - used) * 1_000))
    return times


def told(name: str, times: list[tuple[float, float]]) -> None:
    """Print the median and the 95th percentile, and the median of the processor time."""
    taken = sorted(one for one, _ in times)
    used = statistics.median(one for _, one in times)
    late = taken[int(len(taken) * 0.95)]
    print(f"{name:<34} p50 {statistics.median(taken):8.2f} ms   p95 {late:8.2f} ms   processor p50 {used:8.2f} ms")


async def retains(texts: list[str], number: int) -> None:
    """Single retains with the graph and without it, in turns."""
    times: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for turn in range(6):
        for enabled in (turn % 2 == 0, turn % 2 == 1):
            with tempfile.TemporaryDirectory() as folder:
                app = App(Settings.from_mapping({"data_dir": folder, "entity_graph": {"enabled": enabled}}))
                await app.gate.call(ME, Retain(BANK, RetainItem("first")))

                async def one(index: int, app: App = app) -> None:
                    await app.gate.call(ME, Retain(BANK, RetainItem(texts[index])))

                times[enabled] += await timed(one, number)
                await app.close()
    for enabled, found in times.items():
        told(f"retain, graph {'on' if enabled else 'off'}", found)


async def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument("--entities", type=int, default=20_000)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--data-dir", type=Path, help="Keep the bank here, and use it again.")
    parser.add_argument("--stated", action="store_true", help="Each memory states a link, too.")
    parser.add_argument("--retains", action=argparse.BooleanOptionalAction, default=True, help="Measure retains, too.")
    given = parser.parse_args()
    choose = random.Random(7)
    verb = "reports to" if given.stated else "sat beside"
    texts = contents(given.memories, given.entities, choose, verb)
    if given.retains:
        await retains(texts, given.calls)
    with tempfile.TemporaryDirectory() as folder:
        data_dir = given.data_dir or Path(folder)
        app = App(Settings.from_mapping({"data_dir": str(data_dir), "server": {"port": 0}}))
        app.start_purging()
        if app.storage.store.get_bank(ME.tenant, BANK) is None:
            start = time.perf_counter()
            for place in range(0, len(texts), BATCH):
                items = [RetainItem(text) for text in texts[place : place + BATCH]]
                await app.gate.call(ME, BatchRetain(BANK, items))
            print(f"{len(texts):,} memories retained in {time.perf_counter() - start:.0f} s")
        start = time.perf_counter()
        await app.pipelines.graph.follower.caught_up(3_600.0)
        print(f"graph complete {time.perf_counter() - start:.0f} s later")
        server = server_of(app)
        remote = RemoteBackend(await server.start())
        people = [text.split(f" {verb} ")[0] for text in choose.sample(texts, given.calls)]
        ids = [(await remote.call(ME, SearchEntities(BANK, name, 1)))[0].id for name in people]
        hub = (await remote.call(ME, SearchEntities(BANK, HUB)))[0]
        print(f"hub {hub.id}: {hub.mention_count:,} mentions")
        calls: dict[str, Callable[[int], Any]] = {
            "GetEntity": lambda index: GetEntity(BANK, ids[index]),
            "SearchEntities": lambda index: SearchEntities(BANK, people[index]),
            "Neighbors, depth 1": lambda index: Neighbors(BANK, [ids[index]], 1),
            "Neighbors, depth 2": lambda index: Neighbors(BANK, [ids[index]], 2),
            "Neighbors of the hub, depth 2": lambda _: Neighbors(BANK, [hub.id], 2),
            "FindPath": lambda index: FindPath(BANK, ids[index], ids[index - 1]),
        }
        for name, make in calls.items():

            async def ask(index: int, make: Callable[[int], Any] = make) -> None:
                await remote.call(ME, make(index))

            told(name, await timed(ask, given.calls // 3))
        questions = [f"Where does {name} keep the boat?" for name in people]

        async def recalled(index: int) -> None:
            await app.gate.call(ME, Recall(RecallQuery(questions[index], BANK)))

        async def armed(index: int) -> None:
            query = ArmQuery(ME.tenant, BANK, questions[index], None, CURRENT, DEPTH)
            await app.stages._graph_arm.search(query, deadline=math.inf)

        told("Recall without the arm", await timed(recalled, given.calls // 3))
        told("arm graph", await timed(armed, given.calls // 3))
        await remote.close()
        await server.stop(0)
        await app.close()


if __name__ == "__main__":
    asyncio.run(main())
