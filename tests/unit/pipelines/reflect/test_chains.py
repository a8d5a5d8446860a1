"""Questions about a relative, whose name a first recall finds."""

import pytest

from astrocyte.api.requests import BatchRetain
from astrocyte.model import MemoryHit, RetainItem
from astrocyte.pipelines.reflect.chains import asked_of, chain_of, link_of
from doubles.reflecting import ME, ask, memory

SISTER = "What does Ola's sister do?"


@pytest.mark.parametrize(
    ("question", "owner"),
    [
        (SISTER, "Ola"),
        ("Where does Ola\u2019s younger brother work?", "Ola"),
        ("Who married Ola's best friend?", "Ola"),
        ("What does Ola do?", None),
        ("Who is Ola's sister?", None),
        ("What is Ola's sister's name?", None),
        ("Did Ola's sister meet Ben's brother?", None),
        ("What does my sister do?", None),
        ("What is in Ola's garden?", None),
        ("", None),
    ],
)
def test_a_relative_of_somebody_makes_a_chain(question: str, owner: str | None) -> None:
    chain = chain_of(question)
    assert (chain.owner if chain else None) == owner


@pytest.mark.parametrize(
    ("text", "speaker", "name"),
    [
        ("My sister Ines visits on Sundays.", "Ola", "Ines"),
        ("My little sister, Ines, visits on Sundays.", "Ola", "Ines"),
        ("My sister is called Ines.", "Ola", "Ines"),
        ("My sister's name is Ines.", "Ola", "Ines"),
        ("Ines is my sister.", "Ola", "Ines"),
        ("We had rain. I saw Ola's sister Ines there.", "Ben", "Ines"),
        ("I saw Ola's sister Ines there.", None, "Ines"),
        ("My sister Ines visits on Sundays.", "Ben", None),
        ("My sister Ines visits on Sundays.", None, None),
        ("My sister visits Ines on Sundays.", "Ola", None),
        ("My sister, I think, is away.", "Ola", None),
        ("My brother Anders is away.", "Ola", None),
    ],
)
def test_the_name_is_that_of_a_relative_of_the_owner(text: str, speaker: str | None, name: str | None) -> None:
    chain = chain_of(SISTER)
    assert chain is not None
    link = link_of(chain, SISTER, [MemoryHit("Rain.", 1.0), MemoryHit(text, 0.9, speaker=speaker)])
    assert (link.name if link else None) == name
    if link is not None:
        assert link.hit == 1
        assert link.text in text
        assert asked_of(chain, SISTER, link.name) == "What does Ines do?"


FAMILY = (
    RetainItem("My sister Ines visits on Sundays.", speaker="Ola"),
    RetainItem("Ines works as a nurse in the ward for children.", speaker="Ben"),
    RetainItem("My sister Tilda is a painter.", speaker="Ben"),
)
# As many memories about a sister as the first recall reads.
OTHERS = tuple(RetainItem(f"A sister of guest {number} does the work of a clerk.") for number in range(12))


async def test_the_answer_comes_from_a_second_recall_with_the_sentence_that_names_the_relative() -> None:
    async with memory() as app:
        await app.gate.call(ME, BatchRetain("b", (*FAMILY, *OTHERS)))
        result = await ask(app, "What does Ola's sister do for work?")
    first, second, *_ = result.answer.split("\n")
    assert first == "Ben: Ines works as a nurse in the ward for children."
    assert second == "Ola: My sister Ines visits on Sundays."
    assert [source.text for source in (result.sources or ())[:2]] == [FAMILY[1].content, FAMILY[0].content]


async def test_a_second_recall_keeps_the_filters() -> None:
    async with memory() as app:
        await app.gate.call(
            ME, BatchRetain("b", (RetainItem(FAMILY[0].content, speaker="Ola", tags=("a",)), FAMILY[1]))
        )
        result = await ask(app, "In which ward does Ola's sister work as a nurse?", tags=("a",))
    assert result.answer == "Ola: My sister Ines visits on Sundays."
