"""Types of answers, and their signs in sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.pipelines.reflect.answer_types import AnswerType, answer_type, signs_of


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did the shop open?", AnswerType.DATE),
        ("On which days is the fair?", AnswerType.DATE),
        ("What time does the ferry leave?", AnswerType.DATE),
        ("Where does Ines live now?", AnswerType.PLACE),
        ("In which large city does he work?", AnswerType.PLACE),
        ("Who almost drowned?", AnswerType.PERSON),
        ("Whose dog is it?", AnswerType.PERSON),
        ("Which friend lent the tent?", AnswerType.PERSON),
        ("How long was the film?", AnswerType.DURATION),
        ("How many weeks did it take?", AnswerType.DURATION),
        ("How often does she swim?", AnswerType.FREQUENCY),
        ("How many rules were removed?", AnswerType.NUMBER),
        ("What is the rent of the shop?", AnswerType.NUMBER),
        ("Why is the sail orange?", AnswerType.REASON),
        ("What made John leave?", AnswerType.REASON),
        ("What was the main reason for it?", AnswerType.REASON),
        ("What's the name of the dog?", AnswerType.NAME),
        ("From 2006 to 2009, which Canadian institution employed her?", AnswerType.NAME),
        ("What did Tova say when the boat was sold?", AnswerType.OTHER),
        ("How did the flood end?", AnswerType.OTHER),
        ("Tell me about the boat", AnswerType.OTHER),
        ("", AnswerType.OTHER),
    ],
)
def test_the_first_question_word_says_the_type(question: str, kind: AnswerType) -> None:
    assert answer_type(question) is kind


@pytest.mark.parametrize(
    ("question", "better", "worse"),
    [
        ("When did Ines move?", "She moved in March.", "She moved with three cats."),
        ("When does it leave?", "It leaves at 10:40.", "It leaves late."),
        ("Where does Ines work?", "She works in Merrowdale.", "She works at the shop."),
        ("Where does Ines work?", "She works at the shop.", "She works hard."),
        ("Who lent Ines the tent?", "It was lent by Oskar.", "It was lent by my sister."),
        ("Who lent Ines the tent?", "It was lent by my sister.", "It was lent to Ines."),
        ("How long was the film?", "It took two hours.", "It took ages."),
        ("How often does she swim?", "She swims twice a week.", "She swims well."),
        ("How many rules were removed?", "Thirty of them.", "Most of them."),
        ("How much was the oven?", "It was 640.", "It was cheap."),
        ("Why is the sail orange?", "It is orange because of the tent.", "It is orange."),
        ("What is the name of the dog?", "He is called Biscuit.", "He is small."),
        ("Which book did she read?", 'I liked "the salt orchard".', "I liked it."),
    ],
)
def test_a_sentence_with_an_answer_of_the_type_has_more_signs(question: str, better: str, worse: str) -> None:
    signs = signs_of(answer_type(question), question)
    assert signs(better) > signs(worse)


def test_names_of_the_question_and_first_words_are_no_answer() -> None:
    signs = signs_of(AnswerType.PERSON, "Who helped Ines?")
    assert signs("Yesterday Ines's shelf fell. Then rain came.") == 0.0
    assert signs("So I did it.") == 0.0


@given(st.text(max_size=60), st.text(max_size=80))
def test_any_text_has_a_value_from_0_to_1(question: str, sentence: str) -> None:
    assert all(0.0 <= signs_of(kind, question)(sentence) <= 1.0 for kind in AnswerType)
    assert signs_of(AnswerType.OTHER, question)(sentence) == 0.0
