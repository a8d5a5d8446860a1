"""The regression gate of recall quality: the default configuration reaches every floor on the gate's set."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from astrocyte.pipelines.reflect.spoken_dates import with_dates
from benches.quality.data import QuestionSet
from benches.quality.gate.__main__ import main, report, run
from benches.quality.gate.floors import FLOORS, below, lines
from benches.quality.gate.measure import Measured, figures, gate_set, misses
from benches.quality.reflecting import share_of_words


@pytest.fixture(scope="module")
def questions() -> QuestionSet:
    return gate_set()


@pytest.fixture(scope="module")
def found() -> Measured:
    return asyncio.run(run())


def test_the_default_configuration_reaches_every_floor(found: Measured) -> None:
    failed = below(figures(found))
    assert not failed, "\n".join([*failed.values(), "CONTRIBUTING.md says what to do.", *report(found), *misses(found)])


def test_ids_and_texts_are_unique_and_evidence_is_there(questions: QuestionSet) -> None:
    for bank in questions.banks:
        ids = {turn.id for turn in bank.turns}
        assert len(ids) == len(bank.turns) == len({turn.text for turn in bank.turns})
        assert all(ids.issuperset(question.evidence) for question in bank.questions)
        asked = Counter(question.id for question in (*bank.questions, *bank.traps))
        assert max(asked.values()) == 1
        assert not any(trap.evidence for trap in bank.traps)


def test_expected_answers_are_words_of_the_evidence_or_its_dates(questions: QuestionSet) -> None:
    for bank in questions.banks:
        texts = {
            turn.id: f"{turn.speaker}, {turn.occurred_at:%-d %B %Y}: {with_dates(turn.text, turn.occurred_at)}"
            for turn in bank.turns
        }
        for question in bank.questions:
            shown = " ".join(texts[one] for one in question.evidence)
            assert share_of_words(question.answer or "", shown) == 1.0, question


def test_the_set_has_what_its_floors_are_of(questions: QuestionSet) -> None:
    kinds = Counter(question.category for bank in questions.banks for question in bank.questions)
    assert {f"MRR, {kind}" for kind in kinds} == {name for name in FLOORS if name.startswith("MRR, ")}
    assert min(kinds.values()) >= 9, "the margins are of at least nine questions"
    assert {trap.category for bank in questions.banks for trap in bank.traps} == {"wrong person", "absent subject"}


def test_a_figure_without_a_floor_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected the figures"):
        below({"R@1": 1.0})


def test_the_table_marks_what_is_below_and_what_has_gained() -> None:
    values = {name: floor.measured for name, floor in FLOORS.items()} | {"R@1": 0.0, "R@10": 1.0}
    assert set(below(values)) == {"R@1"}
    marked = {line.split(" | ")[0].removeprefix("| "): line for line in lines(values)}
    assert marked["R@1"].endswith(f"| {FLOORS['R@1'].value:.3f} | below |")
    assert marked["R@10"].endswith("| raise the floor |")
    assert marked["MRR"].endswith("|  |")


def test_the_command_prints_kinds_versions_and_misses(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    printed = capsys.readouterr().out
    for part in (
        "astrocyte-grpc ",
        "217, questions 90, traps 16",
        "paraphrase",
        "trap answered at",
        "reach their floors",
    ):
        assert part in printed
