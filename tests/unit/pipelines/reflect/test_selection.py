"""Choice of sentences, the form of lists, and who says a sentence."""

import pytest

from astrocyte.api.requests import BatchRetain
from astrocyte.model import MemoryHit, RetainItem
from astrocyte.pipelines.reflect.selection import MOST_FOR_TIME, MOST_ITEMS, most_sentences
from astrocyte.pipelines.reflect.transcripts import SpokenTurn, spoken_turns
from doubles.reflecting import ME, ask, composed, memory, read

DISHES = ("lentil stew", "plum cake", "rye bread", "leek soup", "bean salad", "fig tart", "corn pie", "rice pudding")


@pytest.mark.parametrize(
    ("question", "most"),
    [
        ("When did Ola move?", MOST_FOR_TIME),
        ("How long was the film?", MOST_FOR_TIME),
        ("How often does Ola swim?", MOST_FOR_TIME),
        ("How many boats are there?", 5),
        ("Where does Ola live?", 5),
    ],
)
def test_an_answer_about_time_is_short(question: str, most: int) -> None:
    assert most_sentences(question, 5) == most
    assert most_sentences(question, 2) == 2


async def test_a_list_has_an_item_for_each_fact() -> None:
    items = [RetainItem(f"I cooked the dish {dish} for the guests.", speaker="Ola") for dish in DISHES]
    again = RetainItem("I cooked the dish lentil stew for guests again.", speaker="Ola")
    other = RetainItem("Which dishes do you cook?", speaker="Ben")
    async with memory() as app:
        await app.gate.call(ME, BatchRetain("b", (*items, again, other)))
        result = await ask(app, "Which dishes has Ola cooked for the guests?", max_tokens=400)
        one = await ask(app, "What has Ola cooked for the guests?", max_tokens=400)
    lines = result.answer.split("\n")
    assert len(lines) == MOST_ITEMS
    assert len(result.citations) == len(set(result.citations)) == MOST_ITEMS
    assert sum("lentil stew" in line for line in lines) <= 1
    for line, citation in zip(lines, result.citations, strict=True):
        assert line.startswith("- Ola: I cooked the dish ")
        assert line == f"- {result.answer[citation.start : citation.end]}"
    assert "- " not in one.answer


async def test_a_list_keeps_to_its_budget() -> None:
    items = [RetainItem(f"I cooked the dish {dish} for the guests.", speaker="Ola") for dish in DISHES]
    async with memory() as app:
        await app.gate.call(ME, BatchRetain("b", tuple(items)))
        result = await ask(app, "Which dishes has Ola cooked?", max_tokens=30)
    assert 1 <= len(result.answer.split("\n")) < MOST_ITEMS


async def test_an_answer_about_time_has_more_sentences_on_wish() -> None:
    items = [RetainItem(f"On day {number} we moved the {name} boat.", speaker="Ola") for number, name in NAMES]
    async with memory() as app:
        await app.gate.call(ME, BatchRetain("b", tuple(items)))
        short, long = await ask(app, WHEN), await ask(app, WHEN, max_tokens=400)
    assert len(short.citations) == MOST_FOR_TIME < len(long.citations)


WHEN = "When did we move the boat?"
NAMES = list(enumerate(("red", "blue", "green", "white", "black", "yellow"), start=1))


def test_a_sentence_of_nobody_stands_on_a_line_of_its_own() -> None:
    said = MemoryHit("The harbour has a new crane.", 1.0, memory_id="mem_1", speaker="Ola")
    noted = MemoryHit("The crane of the harbour is blue.", 0.9, memory_id="mem_2")
    draft = composed(read("What colour is the new crane of the harbour?", [said, noted]))
    assert sorted(draft.text.split("\n")) == ["Ola: The harbour has a new crane.", "The crane of the harbour is blue."]


TALK = "Ben: Which choir did you join?\nOla: The harbour choir. I sing alto there.\nBen: Nice!"


def test_the_turns_of_a_transcript_have_their_speakers() -> None:
    assert spoken_turns(TALK) == [
        SpokenTurn("Which choir did you join?", "Ben"),
        SpokenTurn("The harbour choir. I sing alto there.", "Ola"),
        SpokenTurn("Nice!", "Ben"),
    ]
    assert spoken_turns(f"A talk.\n{TALK}")[0] == SpokenTurn("A talk.")
    for text in ("", "One line.", "Two\nlines.", "Note: one label alone\nand a line."):
        assert spoken_turns(text) == [SpokenTurn(text)]


def test_a_sentence_of_a_transcript_is_told_with_its_speaker() -> None:
    draft = composed(read("What do you sing in the choir?", [MemoryHit(TALK, 1.0, memory_id="mem_1")]))
    assert "Ola: I sing alto there." in draft.text.split("\n")[0]
    assert {citation.memory_id for citation in draft.citations} == {"mem_1"}
    assert len(draft.sources) == 1
