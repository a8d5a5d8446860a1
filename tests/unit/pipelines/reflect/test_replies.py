"""Short replies, and the questions before them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from astrocyte.api.requests import BatchRetain, Forget
from astrocyte.app import App
from astrocyte.model import Citation, ForgetSelector, MemoryHit, ReflectResult, RetainItem
from astrocyte.pipelines.reflect.replies import MOST_ASKED_WORDS, asked_before, is_reply, question_in
from doubles.reflecting import ME, ask, memory

QUESTION = "What was Noor tested for?"
WHEN = datetime(2024, 3, 2, tzinfo=UTC)


def turn(text: str, speaker: str | None, **values: object) -> MemoryHit:
    given = {"memory_id": f"mem_{abs(hash(text)) % 10**6}", "session_id": "s", "speaker": speaker} | values
    return MemoryHit(text, 1.0, **given)  # type: ignore[arg-type]


REPLY = turn("Only sesame.", "Mara")


@pytest.mark.parametrize(
    ("hit", "short"),
    [
        (REPLY, True),
        (turn("Only sesame. [image: a photo of a bowl of sesame seeds on a wooden table]", "Mara"), True),
        (turn("Only sesame.", "Mara", session_id=None), False),
        (turn("Only sesame.", "Mara", memory_id=None), False),
        (turn("Only sesame.", "Mara", chunk_count=2), False),
        (turn("Only what?", "Mara"), False),
        (turn("She was tested for sesame, and for nothing else that day.", "Mara"), False),
    ],
)
def test_a_reply_is_a_short_turn(hit: MemoryHit, *, short: bool) -> None:
    assert is_reply(hit) is short


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (f"So sorry to hear that! {QUESTION}", QUESTION),
        (f"Poor thing!\n{QUESTION}", QUESTION),
        ("What for? I see.", ""),
        ("I see.", ""),
        ("", ""),
        (f"Do you {'really ' * MOST_ASKED_WORDS}know?", ""),
    ],
)
def test_the_question_ends_the_turn(text: str, question: str) -> None:
    assert question_in(text) == question


@pytest.mark.parametrize(
    "before",
    [
        turn(QUESTION, "Mara"),
        turn(QUESTION, "Ben", session_id="other"),
        turn(QUESTION, "Ben", bank_id="other"),
        turn(QUESTION, "Ben", chunk_count=2),
        turn("I see.", "Ben"),
    ],
)
def test_other_turns_ask_nothing(before: MemoryHit) -> None:
    assert asked_before(REPLY, before) is None
    asked = asked_before(REPLY, turn(f"{QUESTION} [image: a photo]", "Ben"))
    assert asked is not None
    assert asked.text == QUESTION


def talk(*turns: tuple[str, str | None], session: str = "talk") -> list[RetainItem]:
    return [RetainItem(text, speaker=speaker, session_id=session, occurred_at=WHEN) for text, speaker in turns]


async def told(app: App, items: Sequence[RetainItem]) -> None:
    await app.gate.call(ME, BatchRetain("b", tuple(items)))


def texts(result: ReflectResult) -> Mapping[str, str]:
    return {source.memory_id or "": source.text for source in result.sources or ()}


CLINIC = talk(
    ("How was the clinic?", "Ben"), ("Long.", "Mara"), (f"Poor thing. {QUESTION}", "Ben"), ("Only sesame.", "Mara")
)


async def test_a_short_reply_is_told_with_its_question() -> None:
    async with memory() as app:
        await told(app, CLINIC)
        result = await ask(app, QUESTION)
    line = 'Mara, asked by Ben "What was Noor tested for?": Only sesame.'
    assert result.answer.startswith(line)
    reply, question = result.citations[:2]
    assert reply == Citation(0, len(line), reply.memory_id)
    assert question == Citation(0, len(line), question.memory_id)
    assert texts(result)[reply.memory_id] == "Only sesame."
    assert texts(result)[question.memory_id].endswith(QUESTION)
    # The question is told once.
    assert result.answer.count(QUESTION) == 1


async def test_a_question_that_the_first_recall_did_not_find_is_looked_up() -> None:
    async with memory(pipeline={"reflect": {"recall_max_results": 1}}) as app:
        await told(app, talk(("Which one do you want, then?", None), ("The lacquered oak canoe.", None)))
        result = await ask(app, "lacquered oak canoe")
    assert result.answer == 'Asked "Which one do you want, then?": The lacquered oak canoe.'
    assert len(result.sources or ()) == 2


async def test_a_forgotten_question_is_not_told() -> None:
    async with memory(pipeline={"reflect": {"recall_max_results": 1}}) as app:
        await told(app, talk(("Which one do you want, then?", "Ben"), ("The lacquered oak canoe.", "Mara")))
        asked = (await ask(app, "lacquered oak canoe")).sources or ()
        assert len(asked) == 2
        selector = ForgetSelector(memory_ids=(asked[1].memory_id or "",))
        await app.gate.call(ME, Forget("b", selector))
        assert (await ask(app, "lacquered oak canoe")).answer == "Mara: The lacquered oak canoe."


async def test_a_question_behind_the_filters_is_not_told() -> None:
    async with memory() as app:
        question, reply = talk(("Which one do you want, then?", "Ben"), ("The lacquered oak canoe.", "Mara"))
        await told(app, [question, replace(reply, tags=("wishes",))])
        assert (await ask(app, "lacquered oak canoe", tags=("wishes",))).answer == "Mara: The lacquered oak canoe."


async def test_a_question_without_room_is_left_out() -> None:
    async with memory() as app:
        await told(app, CLINIC)
        assert (await ask(app, QUESTION, max_tokens=12)).answer.split("\n")[0] == "Mara: Only sesame."
