"""Sentences that contradict each other: the newer one leads."""

from datetime import UTC, datetime

import pytest

from astrocyte.api.requests import BatchRetain
from astrocyte.app import App
from astrocyte.model import ReflectResult, RetainItem
from doubles.reflecting import ME, ask, memory

MARCH, JUNE = datetime(2024, 3, 2, tzinfo=UTC), datetime(2024, 6, 5, tzinfo=UTC)
PARIS = RetainItem("I live in Paris.", speaker="Ola", occurred_at=MARCH)
ROME = RetainItem("I live in Rome now.", speaker="Ola", occurred_at=JUNE)
WHERE = "Where does Ola live?"


async def told(app: App, *items: RetainItem) -> None:
    await app.gate.call(ME, BatchRetain("b", items))


def lines(result: ReflectResult) -> list[str]:
    return result.answer.split("\n")


@pytest.mark.parametrize("items", [(PARIS, ROME), (ROME, PARIS)])
async def test_the_newer_value_leads_and_the_older_one_is_told_as_such(items: tuple[RetainItem, ...]) -> None:
    async with memory() as app:
        await told(app, *items)
        result = await ask(app, WHERE)
    assert lines(result)[:2] == ["Ola: I live in Rome now.", "Before (2024-03-02): I live in Paris."]
    newer, older = result.citations[:2]
    assert [source.text for source in (result.sources or ())[:2]] == [ROME.content, PARIS.content]
    assert result.answer[newer.start : newer.end] == lines(result)[0]
    assert result.answer[older.start : older.end] == lines(result)[1]


async def test_a_move_is_newer_than_the_home_before_it() -> None:
    async with memory() as app:
        await told(app, PARIS, RetainItem("I moved to Rome last weekend.", speaker="Ola", occurred_at=JUNE))
        result = await ask(app, WHERE)
    assert lines(result)[0].startswith("Ola: I moved to Rome last weekend")
    assert lines(result)[1] == "Before (2024-03-02): I live in Paris."


async def test_another_speaker_is_named() -> None:
    async with memory() as app:
        await told(app, ROME, RetainItem("Ola lives in Paris.", speaker="Ben", occurred_at=MARCH))
        assert "Before (2024-03-02), Ben: Ola lives in Paris." in lines(await ask(app, WHERE))


@pytest.mark.parametrize(
    "question", ["Where did Ola live before?", "Where did Ola live in March 2024?", "What was Ola's previous home?"]
)
async def test_a_question_for_the_past_is_answered_as_it_is_asked(question: str) -> None:
    async with memory() as app:
        await told(app, PARIS, ROME)
        result = await ask(app, question)
    assert "Paris" in result.answer
    assert "Before" not in result.answer


@pytest.mark.parametrize(
    "other",
    [
        RetainItem("I live in Rome with two cats.", speaker="Ola", occurred_at=MARCH),
        RetainItem("I live in Paris.", speaker="Ben", occurred_at=MARCH),
        RetainItem("I live in Paris.", speaker="Ola", occurred_at=JUNE),
        RetainItem("I like to live in big cities.", speaker="Ola", occurred_at=MARCH),
    ],
)
async def test_what_holds_beside_it_is_no_contradiction(other: RetainItem) -> None:
    async with memory() as app:
        await told(app, ROME, other)
        assert "Before" not in (await ask(app, WHERE)).answer


async def test_the_number_of_sentences_holds() -> None:
    async with memory(pipeline={"reflect": {"extractive_max_sentences": 2}}) as app:
        await told(app, PARIS, ROME, RetainItem("Ola lives near the river.", occurred_at=JUNE))
        assert lines(await ask(app, WHERE)) == ["Ola: I live in Rome now.", "Before (2024-03-02): I live in Paris."]
