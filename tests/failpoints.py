"""Kill a server at each named point in turn, under load, and see whether it keeps its word.

As `ledger.py`, but the server kills itself: at a step of a commit, of the index that takes it, of a checkpoint that is
written or read. The bank is small and every fourth change makes a checkpoint, so that all points are met soon.

    python tests/failpoints.py --cycles 2000 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

from astrocyte.client import RemoteBackend
from astrocyte.errors import Unavailable
from ledger import PATIENCE, Client, Run, Server

# All points of the sources, which docs/restarts.md explains.
POINTS = (
    "commit.before",
    "commit.after",
    "apply.before",
    "apply.after",
    "checkpoint.begin",
    "checkpoint.file",
    "checkpoint.files",
    "checkpoint.manifest",
    "checkpoint.verified",
    "checkpoint.publish",
    "checkpoint.renamed",
    "checkpoint.pruned",
    "checkpoint.load",
    "checkpoint.replay",
    "checkpoint.segment",
)
# Those of a bank that moves to another model, in their order; tests/integration/test_reindexing.py kills at each.
REINDEX_POINTS = ("reindex.embedded", "reindex.indexing", "reindex.move", "reindex.moved", "reindex.dropped")
# Those of a consolidation; tests/integration/crashes/test_consolidation_kill.py kills at each.
CONSOLIDATION_POINTS = ("consolidation.planned", "consolidation.stepped")
# Those of a compilation; tests/integration/crashes/test_wiki_kill.py kills at each.
WIKI_POINTS = ("wiki.composed", "wiki.written")
# Those of a lifecycle; tests/integration/crashes/test_lifecycle_kill.py kills at each.
LIFECYCLE_POINTS = ("lifecycle.step", "lifecycle.stepped")
# Those of a move to the disk tier; tests/integration/crashes/test_tier_kill.py kills at each.
TIER_POINTS = ("tier.file", "tier.moved", "tier.dropped")
# Passes, at random, before a commit or its application is the one that kills: some are made before the first call.
MOST_PASSES = 40
# Seconds of load after which a server that did not meet its point is killed from outside.
LATEST = 3.0
# The segments of a small bank too are written and restored.
SETTINGS = {
    "ASTROCYTE_INDEX__CHECKPOINT_ROWS": "1",
    "ASTROCYTE_INDEX__DENSE": "usearch",
    "ASTROCYTE_INDEX__LEXICAL": "tantivy",
    "ASTROCYTE_INDEX__GRAPH_ROWS": "32",
}


class FailpointRun(Run):
    """Cycles that each kill at the next point. ``hit`` counts the kills at each."""

    def __init__(self, folder: Path, *, seed: int, clients: int = 8) -> None:
        super().__init__(folder, seed=seed, clients=clients, latest=LATEST)
        self.hit: Counter[str] = Counter()
        self._armed = ""

    def start(self) -> Server:
        """A server that will die at the next point; after that one that lives, if the first died at once."""
        name = POINTS[(self.report.cycles + self.report.void) % len(POINTS)]
        passes = 1 if name.startswith("checkpoint") else self._chosen.randint(1, MOST_PASSES)
        self._armed = name
        try:
            return Server(self.folder, {**SETTINGS, "ASTROCYTE_FAILPOINT": f"{name}:{passes}"})
        except RuntimeError:
            # Nobody used it yet, but a server commits and loads on its own as well.
            self.hit[name] += 1
            return self._unarmed()

    def _unarmed(self) -> Server:
        self._armed = ""
        return Server(self.folder, SETTINGS)

    async def verify(self, server: Server, *, closing: bool) -> Server:
        """Check what is there. Where the server meets its point meanwhile, the next one, which lives, is asked."""
        while True:
            with contextlib.suppress(Unavailable):
                return await super().verify(server, closing=closing)
            await self._died(server)
            server = await asyncio.to_thread(self._unarmed)

    async def load_and_kill(self, server: Server) -> tuple[float, int]:
        """Load until the server is gone by itself, or for some seconds."""
        backend = RemoteBackend(server.address)
        before = self._book.acknowledged
        seeds = [random.Random(self._chosen.getrandbits(64)) for _ in range(self._clients)]
        clients = [Client(backend, self._book, one, self.report) for one in seeds]
        tasks = [asyncio.create_task(client.run()) for client in clients]
        # A server without a point is a cycle that was spent on the check.
        seconds = LATEST if self._armed else 0.0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*tasks)
        if self._armed and not await self._died(server):
            self.report.void += 1
        server.kill()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*tasks, return_exceptions=True)
        await backend.close()
        self.report.unknown += len(self._book.unknown)
        # How much traffic there was is not what counts here.
        return 0.0, self._book.acknowledged - before

    async def _died(self, server: Server) -> bool:
        """True if the server met its point; counts it."""
        if not self._armed or not await asyncio.to_thread(server.died, 1.0):
            return False
        self.hit[self._armed] += 1
        self._armed = ""
        return True


def main() -> int:
    """Run from the command line; the exit code is 1 when the server broke its word."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=140, help="kills (default 140)")
    parser.add_argument("--seed", type=int, default=None, help="repeat a run's choices; times still differ")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="astrocyte-failpoints-") as folder:
        run = FailpointRun(Path(folder), seed=seed)
        report = asyncio.run(run.run(options.cycles, progress=lambda line: print(line, flush=True)))  # noqa: T201
    print(dict(run.hit))  # noqa: T201
    for violation in report.violations[:50]:
        print(violation)  # noqa: T201
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
