"""Cost of the stages of a recall: processor time of the default configuration by that of the bare arms, in one run.

Both hold the same short memories, in conversations of twenty turns, and are asked the same questions by turns, so that
what else the machine does falls on both. Bare is meaning and words, fused; each line below adds what it names.

Example:
    python -m benches.stages --memories 10000
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from astrocyte import Astrocyte
from benches.corpus import english_texts

# As long as a turn of a chat.
WORDS = 12
# Letters of a word that a question asks about: shorter ones are mostly in every memory.
LETTERS = 5
TURNS = 20
BATCH = 256
START = datetime(2024, 1, 1, tzinfo=UTC)
BARE: Mapping[str, Any] = {"feedback": 0.0, "context_windows": False, "boosts": {"own": {"weight": 0.0}}}
# What is compared with the bare arms, by the settings of recall that make it.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "context windows": {**BARE, "context_windows": True},
    "feedback": {**BARE, "feedback": 0.25},
    "what the asker said": {**BARE, "boosts": {}},
    "all that is on by default": {},
}
# Questions without and with a date, and in the first person.
QUESTIONS = {
    "plain": "which {} did she take to the {}?",
    "dated": "what of the {} and the {} last week?",
    "first person": "which {} did I take to the {}?",
}


def asked_words(seed: int) -> list[str]:
    """Words of the memories that say something, each as often as it is said."""
    spoken = english_texts(1, words=2_000, seed=seed, numbered=False)[0].split()
    return [word for word in spoken if word.isalpha() and len(word) >= LETTERS]


async def opened(recall: Mapping[str, Any], memories: int, seed: int) -> Astrocyte:
    """A store in memory that holds them."""
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory", "recall": recall})
    items = [
        {
            "content": text,
            "session_id": f"s{number // TURNS}",
            "speaker": ("user", "assistant")[number % 2],
            "occurred_at": START + timedelta(minutes=number),
        }
        for number, text in enumerate(english_texts(memories, words=WORDS, seed=seed))
    ]
    for first in range(0, memories, BATCH):
        await brain.retain_many(items[first : first + BATCH], "bench")
    return brain


async def measure(memories: int, rounds: int, seed: int) -> list[str]:
    """A line for each kind of question and variant: milliseconds, and how many times the bare ones."""
    names = ["bare", *VARIANTS]
    async with contextlib.AsyncExitStack() as stack:
        brains = [
            await stack.enter_async_context(await opened(recall, memories, seed))
            for recall in (BARE, *VARIANTS.values())
        ]
        asked = asked_words(seed)
        lines = []
        for kind, form in QUESTIONS.items():
            spent: list[list[float]] = [[] for _ in brains]
            draw = random.Random(seed)
            for _ in range(rounds):
                question = form.format(*draw.sample(asked, 2))
                for place, brain in enumerate(brains):
                    began = time.process_time()
                    await brain.recall(question, "bench")
                    spent[place].append(time.process_time() - began)
            lines += _lines(kind, names, spent)
        return lines


def _lines(kind: str, names: Sequence[str], spent: Sequence[Sequence[float]]) -> list[str]:
    bare = statistics.median(spent[0])
    return [
        f"{kind:14} {name:28} {statistics.median(times) * 1e3:7.2f} ms  {statistics.median(times) / bare:5.2f} x"
        for name, times in zip(names, spent, strict=True)
    ]


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.stages", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=200, help="questions of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    for line in asyncio.run(measure(options.memories, options.rounds, options.seed)):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
