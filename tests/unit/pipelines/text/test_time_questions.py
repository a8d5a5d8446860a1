"""Questions that name nothing but a time, and what a matched date says for an answer."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte import Astrocyte
from astrocyte.pipelines.text.time_questions import (
    DateEvidence,
    asks_for_time_only,
    evidence_of,
    with_date,
)

REFERENCE = datetime(2025, 6, 13, 12, tzinfo=UTC)
DIARY = {
    9: "The boiler broke.",
    10: "Ines won the relay.",
    11: "A heron stood on the roof.",
    12: "The lodger moved out.",
    13: "We painted the fence.",
}


@pytest.mark.parametrize(
    ("text", "alone"),
    [
        ("what happened yesterday?", True),
        ("What did we do on 8 May 2025?", True),
        ("anything new since Monday?", True),
        ("tell me everything from last week", True),
        ("before June 2025, what happened?", True),
        ("What changed since August?", True),
        ("Which updates did I miss last week?", True),
        ("What did we discuss yesterday?", True),
        ("What did we learn about boilers yesterday?", False),
        ("what did we paint yesterday?", False),
        ("what happened?", False),
        ("what happened to the boiler in May?", False),
    ],
)
def test_which_questions_name_only_a_time(text: str, alone: bool) -> None:
    assert asks_for_time_only(text) is alone


def test_evidence_goes_by_the_window_and_its_length() -> None:
    day, year = 86_400_000, 365 * 86_400_000
    assert evidence_of([5], [(0, day)], only_time=False) is DateEvidence.MATCHED_CLOSELY
    assert evidence_of([5], [(0, year)], only_time=False) is DateEvidence.MATCHED
    assert evidence_of([5], [(0, year)], only_time=True) is DateEvidence.ANSWERS
    # Without other words any of the memories may be the answer, else the best one has to be.
    assert evidence_of([-1, None, 5], [(0, day)], only_time=True) is DateEvidence.ANSWERS
    assert evidence_of([-1, None, 5], [(0, day)], only_time=False) is DateEvidence.NONE
    assert evidence_of([], [(0, day)], only_time=True) is DateEvidence.NONE


def test_evidence_raises_a_confidence_and_keeps_it_a_probability() -> None:
    assert with_date(0.3, DateEvidence.NONE) == 0.3
    assert with_date(0.0, DateEvidence.ANSWERS) == 0.0
    found = [
        with_date(0.1, kind) for kind in (DateEvidence.MATCHED, DateEvidence.MATCHED_CLOSELY, DateEvidence.ANSWERS)
    ]
    assert 0.1 < found[0] < found[1] < found[2] < 1.0


@pytest.fixture
async def brain() -> AsyncIterator[Astrocyte]:
    async with Astrocyte.from_config_dict({"vector_store": "in_memory"}) as brain:
        for day, text in DIARY.items():
            await brain.retain(text, "diary", occurred_at=datetime(2025, 6, day, 9, tzinfo=UTC))
        yield brain


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("What happened on June 10, 2025?", "Ines"),
        ("what did we do yesterday?", "lodger"),
        ("what happened on Wednesday?", "heron"),
        ("what happened today?", "fence"),
        ("anything from four days ago?", "boiler"),
        ("what happened on 2025-06-11?", "heron"),
        ("what was going on before 10 June 2025?", "boiler"),
    ],
)
async def test_a_question_of_a_time_alone_is_answered_by_what_happened_then(
    brain: Astrocyte, text: str, answer: str
) -> None:
    recalled = await brain.recall(text, "diary", query_reference_date=REFERENCE)
    assert not recalled.abstain
    result = await brain.reflect(text, "diary", query_reference_date=REFERENCE)
    assert not result.abstained
    assert answer in result.answer
    # And by nothing else.
    assert [hit.text for hit in result.sources or ()] == [next(text for text in DIARY.values() if answer in text)]


@pytest.mark.parametrize(
    "text", ["what happened on 20 June 2025?", "what did we do last year?", "anything from 3 May 2025?"]
)
async def test_a_time_of_which_memory_knows_nothing_has_no_answer(brain: Astrocyte, text: str) -> None:
    assert (await brain.recall(text, "diary", query_reference_date=REFERENCE)).abstain
    assert (await brain.reflect(text, "diary", query_reference_date=REFERENCE)).abstained


async def test_a_matched_date_is_evidence_beside_words(brain: Astrocyte) -> None:
    async def sure(day: int, **options: Any) -> tuple[float, float]:
        text = f"who won the relay on {day} June 2025?"
        recalled = await brain.recall(text, "diary", query_reference_date=REFERENCE, **options)
        result = await brain.reflect(text, "diary", query_reference_date=REFERENCE, **options)
        return recalled.confidence or 0.0, result.confidence or 0.0

    right, wrong = await sure(10), await sure(28)
    assert right[0] > wrong[0]
    assert right[1] > wrong[1]
    # The caller's own range is a filter, and no evidence.
    range_ = (REFERENCE - timedelta(days=30), REFERENCE + timedelta(days=30))
    assert await sure(28, time_range=range_) == pytest.approx(wrong, abs=0.05)


async def test_several_banks_know_of_the_date_too(brain: Astrocyte) -> None:
    await brain.retain("The cellar was dry.", "other", occurred_at=datetime(2024, 1, 1, tzinfo=UTC))
    result = await brain.recall("what happened yesterday?", banks=["diary", "other"], query_reference_date=REFERENCE)
    assert not result.abstain
    assert (result.confidence or 0.0) > 0.5
