"""Latency of MCP tool calls in process, through the client of the SDK.

python -m benches.mcp_tools --memories 300
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any

from mcp.client import Client

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.mcp.server import Session, mcp_server
from astrocyte.model import Caller
from benches.machine import describe

ROUNDS = 500
WORDS = ("sesame", "kettle", "garden", "invoice", "train", "harbour", "violin", "ledger", "orchard", "lantern")


async def measure(memories: int) -> None:
    """Print the latencies of a recall and a retain."""
    app = App(Settings.from_mapping({"vector_store": "in_memory", "mcp": {"default_bank_id": "bench"}}))
    session = Session(app.backend, Caller())
    try:
        async with Client(mcp_server(app.settings, lambda _: session)) as client:
            for number in range(memories):
                await client.call_tool("memory_retain", {"content": _sentence(number)})
            questions = [{"query": f"What about the {WORDS[number % 10]}?"} for number in range(ROUNDS)]
            sentences = [{"content": _sentence(memories + number)} for number in range(ROUNDS)]
            calls = {"memory_recall": questions, "memory_reflect": questions, "memory_retain": sentences}
            for name, arguments in calls.items():
                _report(name, [await _timed(client, name, given) for given in arguments])
    finally:
        await app.close()


def _sentence(number: int) -> str:
    return f"Note {number}: the {WORDS[number % 10]} is beside the {WORDS[number // 10 % 10]} since week {number}."


async def _timed(client: Client, name: str, arguments: dict[str, Any]) -> float:
    begun = time.perf_counter()
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    return (time.perf_counter() - begun) * 1e3


def _report(name: str, times: list[float]) -> None:
    times.sort()
    print(f"{name:16} p50 {times[len(times) // 2]:6.2f} ms   p99 {times[len(times) * 99 // 100]:6.2f} ms")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=300)
    given = parser.parse_args()
    print(describe("mcp", memories=given.memories, rounds=ROUNDS))
    asyncio.run(measure(given.memories))


if __name__ == "__main__":
    main()
