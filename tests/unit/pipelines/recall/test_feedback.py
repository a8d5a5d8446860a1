"""Words that the first hits add to a query."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from astrocyte.api.requests import BatchRetain, Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, RecallQuery, RecallResult, RetainItem, TagMatch
from astrocyte.policy.gate import Gate

ME = Caller()
LESSON = "Mara takes cello lessons with Ilse"
RECITAL = "The cello recital was on a rainy evening"
OTHERS = [f"Groceries bought on trip number {number}" for number in range(6)]


@pytest.fixture(params=[0.25])
async def gate(request: pytest.FixtureRequest) -> AsyncIterator[Gate]:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "recall": {"feedback": request.param}}))
    items = [RetainItem(LESSON, tags=("music",)), RetainItem(RECITAL), *map(RetainItem, OTHERS)]
    await app.gate.call(ME, BatchRetain("b", items))
    yield app.gate
    await app.close()


async def recall(gate: Gate, query: str, **options: Any) -> RecallResult:
    return await gate.call(ME, Recall(RecallQuery(query, "b", weights={"semantic": 0.0}, **options)))


def found(result: RecallResult) -> list[str]:
    return [hit.text for hit in result.hits]


async def test_a_memory_is_found_by_a_word_of_the_first_hit(gate: Gate) -> None:
    assert found(await recall(gate, "lessons of Mara")) == [LESSON, RECITAL]


@pytest.mark.parametrize("gate", [0.0], indirect=True)
async def test_without_feedback_it_is_not(gate: Gate) -> None:
    assert found(await recall(gate, "lessons of Mara")) == [LESSON]


async def test_what_the_filter_hides_gives_no_words(gate: Gate) -> None:
    assert found(await recall(gate, "lessons of Mara", tags=("music",), tag_match=TagMatch.NONE)) == []


async def test_the_first_hits_stay_first(gate: Gate) -> None:
    # Three cellos in one memory would outrank the lesson by the added word alone.
    await gate.call(ME, Retain("b", RetainItem("cello cello cello")))
    result = await recall(gate, "lessons of Mara")
    assert found(result)[0] == LESSON
    scores = [hit.score for hit in result.hits]
    assert scores == sorted(scores, reverse=True)


async def test_the_trace_has_its_time(gate: Gate) -> None:
    trace = (await recall(gate, "lessons of Mara")).trace
    assert trace is not None
    assert (trace.stage_timings_ms or {})["feedback"] > 0.0
