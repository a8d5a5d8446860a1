"""The first hits of a recall do not depend on how many are requested."""

import json
from datetime import datetime
from pathlib import Path

import pytest

from astrocyte import Astrocyte
from astrocyte.config import Settings

CONVERSATION = Path(__file__).parents[4] / "examples" / "conversation.jsonl"
QUERIES = (
    "What did Ines say about her sister?",
    "Where did Callum work in March?",
    "Which presents were there, and who gave them?",
    "the ferry to Orkney",
    "When does the bus leave?",
    "What is broken in the kitchen?",
    "Who plays an instrument?",
    "What happened last autumn?",
)
NAMES = ("content", "content_type", "speaker", "session_id")
# The documented number up to which the first hits are the same.
MOST = Settings().recall.depth


def time_of(turn: dict[str, str]) -> datetime:
    return datetime.fromisoformat(turn["occurred_at"])


async def first_hits(settings: dict[str, object]) -> dict[int, list[list[str | None]]]:
    """The first ten of each query, by the number of requested hits."""
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory", **settings})
    turns = [json.loads(line) for line in CONVERSATION.read_text(encoding="utf-8").splitlines()]
    items = [{**{name: turn[name] for name in NAMES}, "occurred_at": time_of(turn)} for turn in turns]
    # One call takes 256 items at the most.
    for begin in range(0, len(items), 256):
        stored = await brain.retain_many(items[begin : begin + 256], "friends")
        assert not any(isinstance(one, Exception) for one in stored)
    found: dict[int, list[list[str | None]]] = {}
    for count in (10, 11, 20, 40, MOST):
        results = [await brain.recall(query, "friends", max_results=count, detail_level="titles") for query in QUERIES]
        found[count] = [[hit.memory_id for hit in result.hits[:10]] for result in results]
    await brain.close()
    return found


async def test_they_are_the_same_for_all_numbers_up_to_the_depth() -> None:
    found = await first_hits({})
    assert all(len(hits) == 10 for hits in found[10])
    for count, hits in found.items():
        assert hits == found[10], count


async def test_they_change_where_the_candidates_grow_with_the_number() -> None:
    found = await first_hits({"recall": {"depth": 10, "overfetch": 3}})
    with pytest.raises(AssertionError):
        assert all(hits == found[10] for hits in found.values())
