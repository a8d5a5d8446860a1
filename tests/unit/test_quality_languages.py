"""Sets and figures of benches/quality/languages."""

import json
from collections.abc import Mapping

import pytest

from benches.quality.data import Bank, Question, QuestionSet, Turn
from benches.quality.languages.measure import (
    ACROSS,
    DEFAULT,
    ENGLISH,
    FOLDER,
    KEYWORD,
    LANGUAGE,
    LANGUAGES,
    PARAPHRASE,
    SEMANTIC,
    Figures,
    figures,
    in_english,
    read,
    table,
    variants,
)
from benches.quality.report import OVERALL

MEMORIES, QUESTIONS = 100, 50


def test_there_are_eight_languages_beside_english_and_a_file_of_each() -> None:
    assert len(LANGUAGES) == len(set(LANGUAGES)) == 9
    assert ENGLISH in LANGUAGES
    assert {path.stem for path in FOLDER.glob("*.json")} == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_set_has_unique_memories_and_questions_with_answers(language: str) -> None:
    (bank,) = read(language).banks
    assert (
        len(bank.turns) == len({turn.id for turn in bank.turns}) == len({turn.text for turn in bank.turns}) == MEMORIES
    )
    ids = {turn.id for turn in bank.turns}
    # The reader drops evidence that is no memory, so what the file says is compared too.
    (raw,) = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))["banks"]
    assert all(ids.issuperset(query["evidence"]) and query["evidence"] for query in raw["queries"])
    texts = {question.text for question in bank.questions}
    assert len(bank.questions) == len({question.id for question in bank.questions}) == len(texts) == QUESTIONS
    assert not texts & {turn.text for turn in bank.turns}


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_languages_ask_for_the_same_memories(language: str) -> None:
    (bank,), (english,) = read(language).banks, read(ENGLISH).banks
    assert [turn.id for turn in bank.turns] == [turn.id for turn in english.turns]
    wanted = [(one.id, one.category, one.evidence) for one in english.questions]
    assert [(one.id, one.category, one.evidence) for one in bank.questions] == wanted


def test_about_half_of_the_questions_are_paraphrases_and_some_have_two_answers() -> None:
    (bank,) = read(ENGLISH).banks
    assert 20 <= sum(one.category == PARAPHRASE for one in bank.questions) <= 30
    assert max(len(one.evidence) for one in bank.questions) == 2


def test_only_stemmed_languages_have_a_pass_with_their_language() -> None:
    assert list(variants(ENGLISH)) == [DEFAULT, KEYWORD, SEMANTIC]
    assert list(variants("german")) == [DEFAULT, LANGUAGE, KEYWORD, SEMANTIC, ACROSS]
    assert list(variants("russian")) == list(variants("japanese")) == [DEFAULT, KEYWORD, SEMANTIC, ACROSS]
    assert variants("german")[KEYWORD].settings["extraction"] == {"language": "german"}
    assert "extraction" not in variants("japanese")[KEYWORD].settings


def test_english_questions_replace_the_texts_alone() -> None:
    german = read("german")
    (asked,), (bank,), (english,) = in_english(german).banks, german.banks, read(ENGLISH).banks
    assert [one.text for one in asked.questions] == [one.text for one in english.questions]
    assert [one.evidence for one in asked.questions] == [one.evidence for one in bank.questions]
    assert asked.turns == bank.turns


def toy() -> dict[str, dict[str, float]]:
    """Found first, found second, one of two found, not asked."""
    questions = (
        Question("q1", "?", "same words", ("m1",)),
        Question("q2", "?", PARAPHRASE, ("m2",)),
        Question("q3", "?", PARAPHRASE, ("m1", "m3")),
        Question("q4", "?", PARAPHRASE, ("m3",)),
    )
    bank = Bank("toy", tuple(Turn(f"m{number}", f"memory {number}") for number in range(1, 4)), questions)
    ranked = {("toy", "q1"): ["m1", "m2"], ("toy", "q2"): ["m1", "m2"], ("toy", "q3"): ["m1"]}
    return figures(QuestionSet("toy", (bank,)), ranked, {})


def test_figures_are_means_of_all_questions_and_of_each_kind() -> None:
    found = toy()
    # R@1: q1 and q3. R@10: 1, 1, 1/2, 0. MRR: 1, 1/2, 1, 0.
    assert found[OVERALL] == pytest.approx({"R@1": 0.5, "R@10": 0.625, "MRR": 0.625})
    assert found[PARAPHRASE] == pytest.approx({"R@1": 1 / 3, "R@10": 0.5, "MRR": 0.5})


def test_the_tables_have_a_row_for_each_pass_and_for_each_language() -> None:
    passes: Figures = {DEFAULT: toy(), ACROSS: toy()}
    found: Mapping[str, Figures] = {"german": passes}
    lines = list(table(found))
    assert "| german | default | .500 | .625 | .625 | .333 | .500 | .500 |" in lines
    assert lines[-1] == "| german | .625 |  |  |  | .625 |"
