"""Cost of policy in a recall: the same by the pipeline alone, through the gate, and through a gate with more to do.

    python -m benches.gate --memories 300

Each round asks each way once, in another order, so that what else the machine does meets all alike. Told is the
processor time of the thread that asks, for one recall, and how much of it is more than the pipeline's own. The gate of
the second line has what is on by default: limits, checks, personal data in question and answer, degraded modes, the
order of all of them. That of the third also has access control and rates. The last line asks the pipeline
once more: what differs there is noise.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
from rich.console import Console

from astrocyte.api.requests import BatchRetain, GetBank, Recall
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, RecallQuery, RecallResult, RetainItem
from benches.corpus import english_texts
from benches.machine import describe
from benches.turns import WARM_ROUNDS, by_turns, table

CALLER = Caller("default", "bench")
BANK = "bench"
WORDS = 16
QUERY_WORDS = 6
SEED = 20_261_122
MUCH = 10**9
MORE: Mapping[str, Any] = {
    "access_control": {"enabled": True, "default_policy": "deny"},
    "access_grants": [{"bank_id": BANK, "principal": "bench", "permissions": ["*"]}],
    "homeostasis": {"rate_limits": {"recall_per_minute": MUCH, "global_per_minute": MUCH}},
}


async def _application(memories: int, settings: Mapping[str, Any]) -> App:
    app = App(Settings.from_mapping({"vector_store": "in_memory", **settings}))
    texts = english_texts(memories, words=WORDS, seed=SEED)
    for start in range(0, memories, 100):
        await app.gate.call(CALLER, BatchRetain(BANK, [RetainItem(text) for text in texts[start : start + 100]]))
    return app


async def _measure(memories: int, rounds: int) -> dict[str, list[float]]:
    plain, more = await _application(memories, {}), await _application(memories, MORE)
    bank = await plain.gate.call(CALLER, GetBank(BANK))
    most_tokens = Settings.from_mapping({}).homeostasis.recall_max_tokens

    async def pipeline(query: RecallQuery) -> RecallResult:
        return await plain.gate._pipelines.recall.run(bank, query, most_tokens)

    ways = {
        "pipeline": pipeline,
        "gate": lambda query: plain.gate.call(CALLER, Recall(query)),
        "gate, access, rates": lambda query: more.gate.call(CALLER, Recall(query)),
        "pipeline, again": pipeline,
    }
    questions = english_texts(rounds + WARM_ROUNDS, words=QUERY_WORDS, seed=SEED + 1, numbered=False)
    queries = [RecallQuery(question, BANK, include_trace=True) for question in questions]
    spent = await by_turns(ways, queries, seed=SEED)
    for app in (plain, more):
        await app.close()
    return spent


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3_000)
    options = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    console = Console()
    console.print(describe(memories=options.memories, rounds=options.rounds, seed=SEED))
    console.print(table(asyncio.run(_measure(options.memories, options.rounds))))


if __name__ == "__main__":
    main()
