"""Reflect from the gate down, with a language model that follows a script, or fails as one does."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.api.requests import Forget, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import count_tokens
from astrocyte.errors import (
    CapabilityNotSupported,
    ConfigError,
    DeadlineExceeded,
    ProviderUnavailable,
)
from astrocyte.model import (
    Dispositions,
    ForgetSelector,
    MemoryUpdate,
    ReflectMode,
    TimeRange,
)
from astrocyte.pipelines.reflect.draft import ABSTENTION
from astrocyte.providers.messages import Completion, FinishReason, Role, ToolCall
from doubles.reflecting import ASKED, DOWN, ME, TEA, Model, ask, memory, pieces


async def test_without_a_model_sentences_answer() -> None:
    async with memory() as app:
        result = await ask(app)
        assert TEA in result.answer
        assert result.mode is ReflectMode.EXTRACTIVE
        assert result.sources is not None
        assert result.sources[0].source == "diary"
        assert 0 < (result.confidence or 0) < 1
        assert result.citations[0].memory_id == result.sources[0].memory_id
        assert result.tokens_used == 0
        assert not result.fallback_used
        assert (await ask(app)).answer == result.answer
        assert (await ask(app, include_sources=False)).sources is None


async def test_what_memory_does_not_hold_is_not_answered() -> None:
    async with memory() as app:
        result = await ask(app, "Who won the football match in Lisbon?")
        assert result.abstained
        assert result.answer == ABSTENTION
        assert (result.sources, result.citations) == ((), ())
        assert "Lisbon" in (result.observations or ())[0]
    async with memory(adversarial_defense={"abstention_enabled": False}) as app:
        assert not (await ask(app, "Who won the football match in Lisbon?")).abstained
    async with memory(adversarial_defense={"abstention_floor_intent_only": True}) as app:
        assert not (await ask(app, "Who won the football match in Lisbon?")).abstained
        assert (await ask(app, "Tell me about the football match in Lisbon")).abstained


async def test_scepticism_moves_the_floor() -> None:
    async with memory(adversarial_defense={"abstention_floor": 0.5}) as app:
        assert (await ask(app, "What is green?", dispositions=Dispositions(skepticism=5))).abstained
        assert not (await ask(app, "What is green?", dispositions=Dispositions(skepticism=1))).abstained


async def test_literalism_says_how_close_a_quoted_sentence_must_be() -> None:
    async with memory() as app:
        answers = {n: await ask(app, dispositions=Dispositions(literalism=n)) for n in range(1, 6)}
        lengths = [len(answers[n].sources or ()) for n in range(1, 6)]
        assert lengths == sorted(lengths, reverse=True)
        assert lengths[0] > lengths[-1] == 1
        assert TEA in answers[5].answer
        assert answers[3].answer == (await ask(app)).answer


@pytest.mark.parametrize("empathy", [1, 2, 4, 5])
async def test_empathy_needs_a_model(empathy: int) -> None:
    leaning = Dispositions(empathy=empathy)
    async with memory() as app:
        with pytest.raises(CapabilityNotSupported, match=r"dispositions\.empathy needs a language model"):
            await ask(app, dispositions=leaning)
        with pytest.raises(CapabilityNotSupported):
            await pieces(app, dispositions=leaning)
    async with memory(Model(f"{TEA} [1]", None)) as app:
        assert (await ask(app, dispositions=leaning)).mode is ReflectMode.LLM
        with pytest.raises(CapabilityNotSupported):
            await ask(app, dispositions=leaning, mode=ReflectMode.EXTRACTIVE)
    # A model that fails leaves what can be said without one.
    async with memory(Model(DOWN), fallback_strategy="extractive") as app:
        assert (await ask(app, dispositions=leaning)).fallback_used


async def test_an_empty_bank_holds_no_answer() -> None:
    async with memory(Model("unused")) as app:
        result = await ask(app, tags=("nowhere",))
        assert result.abstained
        assert result.confidence == 0.0


async def test_filters_hold() -> None:
    async with memory() as app:
        before = datetime.now(UTC)
        assert "tea" not in (await ask(app, tags=("music",))).answer
        assert (await ask(app, as_of=before - timedelta(days=1))).abstained
        assert (await ask(app, time_range=TimeRange(None, before - timedelta(days=1)))).abstained
        assert (await ask(app, session_id="elsewhere")).abstained
        kept = (await ask(app)).sources or ()
        await app.gate.call(
            ME,
            UpdateMemory(
                "b", MemoryUpdate(kept[0].memory_id or "", frozenset({"content"}), "Mara drinks cocoa every morning.")
            ),
        )
        assert "cocoa" in (await ask(app)).answer
        await app.gate.call(ME, Forget("b", ForgetSelector(memory_ids=(kept[0].memory_id or "",))))
        assert "cocoa" not in (await ask(app)).answer


async def test_a_model_answers_and_cites() -> None:
    model = Model("Green tea [1]. I made this up [77].")
    async with memory(model) as app:
        result = await ask(app)
    assert result.answer == "Green tea. I made this up."
    assert result.mode is ReflectMode.LLM
    assert [source.text for source in result.sources or ()] == [TEA]
    assert [tuple(citation)[:2] for citation in result.citations] == [(0, 9)]
    assert result.tokens_used == 15
    system, user = model.prompts[0].messages
    assert system.role is Role.SYSTEM
    assert TEA not in system.content
    assert f"[1] {TEA}" in user.content
    assert user.content.endswith(f"Question: {ASKED}")
    assert model.prompts[0].temperature == 0.1


async def test_an_answer_without_citations_is_trusted_less() -> None:
    async with memory(Model("Green tea.")) as bare, memory(Model("Green tea. [1]")) as cited:
        less, more = await ask(bare), await ask(cited)
    assert less.sources == ()
    assert "named no memory" in (less.observations or ())[0]
    assert (less.confidence or 0) < (more.confidence or 0) <= 1


@pytest.mark.parametrize("text", ["[none]", " [NONE] ", "I think it is tea, but [none]"])
async def test_a_model_may_abstain(text: str) -> None:
    async with memory(Model(text)) as app:
        result = await ask(app)
    assert result.abstained
    assert result.answer == ABSTENTION
    assert result.sources == ()


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("When does Mara drink tea?", "about time"),
        ("Tell me about Mara and her tea", "more than one fact"),
        ("What would Mara drink in the morning?", "Conclude only"),
        ("What does Ben wear in Lisbon?", "evidence looks weak"),
    ],
)
async def test_the_kind_of_question_chooses_the_prompt(query: str, told: str) -> None:
    model = Model("Tea [1]")
    async with memory(model, adversarial_defense={"abstention_enabled": False}) as app:
        await ask(app, query)
    assert told in model.prompts[0].messages[0].content


async def test_the_budget_holds_for_every_way_to_answer() -> None:
    long = "Green tea is what Mara drinks. " * 12
    async with memory(Model(long), homeostasis={"reflect_max_tokens": 12}, fallback_strategy="degrade") as app:
        for mode in ReflectMode:
            for wish in (None, 5, 400):
                result = await ask(app, mode=mode, max_tokens=wish)
                assert count_tokens(result.answer) <= min(12, wish or 12)
                assert all(citation.end <= len(result.answer) for citation in result.citations)
        assert (await ask(app)).truncated
        texts, result = await pieces(app)
        assert "".join(texts) == result.answer
    async with memory(Model(DOWN), homeostasis={"reflect_max_tokens": 12}, fallback_strategy="degrade") as app:
        assert count_tokens((await ask(app)).answer) <= 12


async def test_an_answer_is_streamed_without_its_markers() -> None:
    async with memory(Model("Green tea [1], as I [said] before [9].")) as app:
        texts, result = await pieces(app)
    assert len(texts) > 3
    assert "".join(texts) == result.answer == "Green tea, as I [said] before."
    assert len(result.sources or ()) == 1


@pytest.mark.parametrize("mode", [ReflectMode.EXTRACTIVE, ReflectMode.AGENTIC])
async def test_other_answers_come_in_one_piece(mode: ReflectMode) -> None:
    async with memory(Model("Green tea [1]")) as app:
        texts, result = await pieces(app, mode=mode)
    assert texts == [result.answer]
    assert result.mode is mode


async def test_a_stream_of_nothing_is_the_abstention() -> None:
    async with memory(Model("[none]")) as app:
        texts, result = await pieces(app)
    assert texts in ([], [ABSTENTION])
    assert result.answer == ABSTENTION


FAILURES = [DOWN, None, Completion("", FinishReason.REFUSED), "", RuntimeError("unheard of")]


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failing_model_fails_the_call(failure: Any) -> None:
    async with memory(Model(failure), pipeline={"reflect": {"deadline_seconds": 0.1}}) as app:
        with pytest.raises((ProviderUnavailable, DeadlineExceeded)):
            await ask(app)
        with pytest.raises((ProviderUnavailable, DeadlineExceeded)):
            await pieces(app)
        # Sentences need no model.
        assert TEA in (await ask(app, mode=ReflectMode.EXTRACTIVE)).answer


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(("strategy", "mode"), [("extractive", ReflectMode.EXTRACTIVE), ("degrade", None)])
async def test_what_it_falls_back_on(failure: Any, strategy: str, mode: ReflectMode | None) -> None:
    settings = {"fallback_strategy": strategy, "pipeline": {"reflect": {"deadline_seconds": 0.1}}}
    async with memory(Model(failure), **settings) as app:
        for result in (await ask(app), (await pieces(app))[1], await ask(app, mode=ReflectMode.AGENTIC)):
            assert result.fallback_used
            assert result.mode is mode
            assert TEA in result.answer
            assert (result.sources or ())[0].text == TEA
            assert "could not answer" in (result.observations or ())[-1]


async def test_an_agent_falls_back_on_one_call() -> None:
    endless = Completion("", FinishReason.TOOL_CALLS, (ToolCall("c", "recall", {"query": "tea"}),))
    model = Model(endless, DOWN, "Green tea [1]")
    async with memory(model, fallback_strategy="local_llm", agentic_reflect={"enabled": True}) as app:
        result = await ask(app)
    assert result.fallback_used
    assert result.mode is ReflectMode.LLM
    assert result.answer == "Green tea"


async def test_a_mode_that_needs_a_model_where_there_is_none() -> None:
    async with memory() as app:
        for mode in (ReflectMode.LLM, ReflectMode.AGENTIC):
            with pytest.raises(CapabilityNotSupported, match="needs a language model"):
                await ask(app, mode=mode)
    async with memory(fallback_strategy="extractive") as app:
        result = await ask(app, mode=ReflectMode.LLM)
        assert result.fallback_used
        assert TEA in result.answer


@pytest.mark.parametrize(
    "settings",
    [
        {"fallback_strategy": "local_llm"},
        {"pipeline": {"reflect": {"mode": "llm"}}},
        {"agentic_reflect": {"enabled": True}},
        {"adversarial_defense": {"premise_verification_enabled": True}},
    ],
)
def test_settings_that_need_a_model_are_refused_without_one(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="set llm_provider"):
        App(Settings.from_mapping({"vector_store": "in_memory", **settings}))
