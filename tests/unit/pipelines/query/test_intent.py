"""The seven kinds of question, and what they may change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrocyte.api.requests import Recall, Retain
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.model import Caller, Intent, RecallQuery, RetainItem
from astrocyte.pipelines.query.intent import THRESHOLD, classify

ME = Caller()


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("What is the name of Mara's dentist?", Intent.FACTUAL),
        ("where does Ilse live", Intent.FACTUAL),
        ("In which city was the recital?", Intent.FACTUAL),
        ("When did Mara start cello lessons?", Intent.TEMPORAL),
        ("How many weeks passed between the two trips?", Intent.TEMPORAL),
        ("What did we decide last week?", Intent.TEMPORAL),
        ("How is Ann related to Bob?", Intent.RELATIONAL),
        ("what is the connection between the outage and the deploy", Intent.RELATIONAL),
        ("tea vs coffee", Intent.COMPARATIVE),
        ("What is the difference between plan A and plan B?", Intent.COMPARATIVE),
        ("How do I restart the router?", Intent.PROCEDURAL),
        ("steps to deploy the service", Intent.PROCEDURAL),
        ("Tell me about the garden", Intent.EXPLORATORY),
        ("give me an overview of the project", Intent.EXPLORATORY),
        ("blue bicycle", Intent.UNKNOWN),
        ("", Intent.UNKNOWN),
        ("\U0001f6b2 ???", Intent.UNKNOWN),
    ],
)
def test_the_shape_of_a_question_names_its_intent(query: str, intent: Intent) -> None:
    assert classify(query).intent is intent


@given(st.text(max_size=200))
def test_any_text_has_an_intent_and_a_confidence(query: str) -> None:
    found = classify(query)
    assert 0.0 <= found.confidence <= 1.0
    assert (found.intent is Intent.UNKNOWN) == (found.confidence < THRESHOLD)
    assert classify(query) == found


async def _strategies(factors: dict[str, dict[str, float]], query: str, **options: object) -> tuple[str, ...]:
    settings = {"vector_store": "in_memory", "recall": {"intent": {"factors": factors}}}
    app = App(Settings.from_mapping(settings))
    try:
        await app.gate.call(ME, Retain("b", RetainItem("Mara plays the cello")))
        trace = (await app.gate.call(ME, Recall(RecallQuery(query, "b", **options)))).trace  # type: ignore[arg-type]
        assert trace is not None
        return trace.strategies_used or ()
    finally:
        await app.close()


async def test_factors_weigh_the_arms_of_their_intent_alone() -> None:
    silent = {"factual": {"semantic": 0.0}}
    assert await _strategies(silent, "what does Mara play?") == ("keyword",)
    assert await _strategies(silent, "Mara cello") == ("semantic", "keyword")
    # The caller's own weights are left alone.
    own = {"semantic": 1.0}
    assert await _strategies(silent, "what does Mara play?", weights=own) == ("semantic", "keyword")


async def test_the_trace_names_the_intent() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    await app.gate.call(ME, Retain("b", RetainItem("Mara plays the cello")))
    trace = (await app.gate.call(ME, Recall(RecallQuery("How do I tune a cello?", "b")))).trace
    await app.close()
    assert trace is not None
    assert trace.intent is Intent.PROCEDURAL
    assert trace.intent_confidence >= THRESHOLD
