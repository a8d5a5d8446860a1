"""Two or more versions of the server in one run: latency and processor time of a Recall, each by the first one's.

    python -m benches.versions ../before .

A version is a directory with a tree of this repository and its extension built. Each has a server of its own over the
same memories, and one client asks them by turns, so that what else the machine does falls on all alike. It begins when
no server works on its new memories any more.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from astrocyte.v1 import memory_pb2 as pb
from benches import server
from benches.corpus import english_texts
from benches.machine import describe, processor_seconds

# Forms of questions: as a text is, with a date, and of what the asker said.
FORMS = {"plain": "{}", "dated": "{} last week", "first person": "what did I say of {}"}
# Processor time of a server without background work, as a share of a second; and seconds until it must have none.
IDLE_SHARE = 0.05
PATIENCE = 900


@contextmanager
def running(tree: Path, data: str) -> Iterator[server.Process]:
    """The server of a tree."""
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve() / "python")}
    command = [sys.executable, "-m", "astrocyte", "--data-dir", data, "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=data) as child:
        try:
            assert child.stdout is not None
            yield server.Process(child.pid, child.stdout.readline().split()[-1])
        finally:
            child.terminate()


def wait_until_idle(process: server.Process) -> None:
    """Return when a server works no more in the background."""
    for _ in range(PATIENCE):
        before = processor_seconds(process.pid)
        time.sleep(1)
        if processor_seconds(process.pid) - before < IDLE_SHARE:
            return
    raise RuntimeError(f"the server still works {PATIENCE} s after it was filled")


def measure(trees: list[Path], rows: int, calls: int, form: str) -> tuple[dict[str, tuple[float, float, float]], int]:
    """Median and p95 milliseconds and processor milliseconds of the echo and of each version; and a reply's bytes."""
    texts = english_texts(rows, words=server.WORDS, seed=server.SEED)
    queries = english_texts(calls + server.BLOCK, words=server.QUERY_WORDS, seed=server.SEED + 1, numbered=False)
    requests = [
        pb.RecallRequest(bank_id=server.BANK, query=FORMS[form].format(query)).SerializeToString() for query in queries
    ]
    with ExitStack() as stack:
        servers = {}
        for tree in trees:
            data = stack.enter_context(tempfile.TemporaryDirectory())
            process = stack.enter_context(running(tree, data))
            asyncio.run(server.fill(process.address, texts))
            wait_until_idle(process)
            servers[str(tree)] = process
        path = f"{server.SERVICE}/Recall"
        size = round(statistics.mean(server.reply_sizes(servers[str(trees[0])].address, requests[: server.BLOCK])))
        echo = stack.enter_context(server.running("-c", server.ECHO_SERVER, str(size)))
        asked = {"echo": (echo, server.ECHO, lambda index: requests[index])}
        asked |= {name: (process, path, lambda index: requests[index]) for name, process in servers.items()}
        return server.unary(asked, calls), size


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--rows", type=int, default=server.ROWS)
    parser.add_argument("--calls", type=int, default=server.CALLS)
    parser.add_argument("--form", choices=FORMS, default="plain")
    options = parser.parse_args()
    print(describe("grpcio", "protobuf", "apsw", rows=options.rows, calls=options.calls, form=options.form))
    measured, size = measure(options.trees, options.rows, options.calls, options.form)
    server.print_table(measured, size)
    first = measured[str(options.trees[0])]
    for tree in options.trees[1:]:
        median, _, burnt = measured[str(tree)]
        print(f"{tree} by {options.trees[0]}: p50 {median / first[0]:.3f} x, processor time {burnt / first[2]:.3f} x")


if __name__ == "__main__":
    main()
