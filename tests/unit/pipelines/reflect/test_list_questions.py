"""Questions that ask for several things."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.pipelines.reflect.list_questions import asks_for_list


@pytest.mark.parametrize(
    "question",
    [
        "Which dishes does Mara cook?",
        "What hobbies has Ben had?",
        "What kinds of boats did they build?",
        "In what ways is Ola helping the choir?",
        "Which of Mara's friends have moved?",
        "What events for children has the library planned?",
        "What places or clubs have they joined?",
        "Which dishes went cold?",
        "What are the names of Ben's cats?",
        "What were Ola's plans?",
        "What people did Ines meet?",
        "Tell me all the places where Mara worked",
        "List Ben's instruments",
        "Please name three lakes that Ola swam in",
    ],
)
def test_a_plural_asks_for_a_list(question: str) -> None:
    assert asks_for_list(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which dish does Mara cook?",
        "What does Mara cook on Sundays?",
        "What is Mara's favourite dish?",
        "What makes Ben happy?",
        "What motivates Ines to take care of her boats?",
        "What sports activity did Ben start?",
        "What are you doing with the boats?",
        "Which friend has James visited?",
        "In which state is the shelter from which James adopted a dog?",
        "What series has Ola watched?",
        "On which days is the fair?",
        "How many boats does Ben have?",
        "When did the guests arrive?",
        "Who ate all the cakes?",
        "Where has Ola sung?",
        "What did Mara do all the time?",
        "Tell me about the boats",
        "",
    ],
)
def test_other_questions_do_not(question: str) -> None:
    assert not asks_for_list(question)


@given(st.text(max_size=300))
def test_any_text_can_be_read(question: str) -> None:
    assert asks_for_list(question) in {True, False}
