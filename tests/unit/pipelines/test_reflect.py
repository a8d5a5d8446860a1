"""Reflect from the gate down, with a language model that follows a script, or fails as one does."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.core import count_tokens
from astrocyte.errors import (
    CapabilityNotSupported,
    ConfigError,
    DeadlineExceeded,
    LimitReached,
    ProviderUnavailable,
    ValidationError,
)
from astrocyte.model import (
    Caller,
    Dispositions,
    ForgetSelector,
    MemoryUpdate,
    ReflectMode,
    ReflectQuery,
    ReflectResult,
    RetainItem,
    TimeRange,
)
from astrocyte.pipelines.synthesis.draft import ABSTENTION
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.messages import Completion, FinishReason, Prompt, Role, TokenUsage, ToolCall

ME = Caller()
TEA = "Mara drinks green tea every morning."
MEMORIES = (
    RetainItem(TEA, tags=("drinks",), source="diary"),
    RetainItem("Ben plays the cello in an orchestra.", tags=("music",)),
    RetainItem("The orchestra meets on Thursdays.", tags=("music",)),
)
ASKED = "What does Mara drink in the morning?"


class Model:
    """Answers what it is told to, in order, the last answer again and again; an exception is raised, None hangs."""

    model_id = "scripted"

    def __init__(self, *answers: str | Completion | Exception | None) -> None:
        self.answers = list(answers)
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        self.prompts.append(prompt)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            await asyncio.sleep(60)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Completion) else Completion(answer or "", usage=TokenUsage(10, 5))

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        completion = await self.complete(prompt, deadline=deadline)
        for start in range(0, len(completion.text), 4):
            yield completion.text[start : start + 4]
        yield completion

    async def close(self) -> None:
        pass


DOWN = ProviderUnavailable("down")


@asynccontextmanager
async def memory(model: Model | None = None, **settings: Any) -> AsyncIterator[App]:
    """A bank with the memories, and this language model."""
    values = {"vector_store": "in_memory", "llm_provider": "none" if model is None else "mock"} | settings
    with pytest.MonkeyPatch.context() as patch:
        if model is not None:
            patch.setattr("astrocyte.app.create_language_model", lambda name, options: BoundedModel(model))
        app = App(Settings.from_mapping(values))
    await app.gate.retain_batch(ME, "b", MEMORIES)
    yield app
    await app.close()


async def ask(app: App, query: str = ASKED, **options: Any) -> ReflectResult:
    return await app.gate.reflect(ME, ReflectQuery(query, "b", **options))


async def pieces(app: App, **options: Any) -> tuple[list[str], ReflectResult]:
    texts: list[str] = []
    async for piece in app.gate.reflect_stream(ME, ReflectQuery(ASKED, "b", **options)):
        if isinstance(piece, ReflectResult):
            return texts, piece
        texts.append(piece)
    raise AssertionError("no result")


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
        await app.gate.update_memory(
            ME, "b", MemoryUpdate(kept[0].memory_id or "", frozenset({"content"}), "Mara drinks cocoa every morning.")
        )
        assert "cocoa" in (await ask(app)).answer
        await app.gate.forget(ME, "b", ForgetSelector(memory_ids=(kept[0].memory_id or "",)))
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


def call(name: str, identity: str = "c", **arguments: Any) -> Completion:
    return Completion("", FinishReason.TOOL_CALLS, (ToolCall(identity, name, arguments),), TokenUsage(100, 10))


async def agent(*answers: Any, **bounds: Any) -> tuple[ReflectResult, Model]:
    model = Model(*answers)
    async with memory(model, agentic_reflect={"enabled": True, **bounds}) as app:
        return await ask(app, tags=("drinks",)), model


async def test_an_agent_searches_and_answers() -> None:
    result, model = await agent(
        call("recall", query="tea"), call("history", query="tea", as_of="2999-01-01"), "Tea [1]"
    )
    assert result.mode is ReflectMode.AGENTIC
    assert result.answer == "Tea"
    assert result.tokens_used == 235
    assert {tool.name for tool in model.prompts[0].tools} == {"recall", "history"}
    found = model.prompts[-1].messages[-1]
    assert found.role is Role.TOOL
    assert TEA in found.content


async def test_an_agent_tells_the_past_version_of_a_memory_from_the_present_one() -> None:
    model = Model()
    async with memory(model, agentic_reflect={"enabled": True}) as app:
        stored = await app.gate.retain(ME, "b", RetainItem("Ida lives in Oslo.", tags=("home",)))
        before = datetime.now(UTC)
        while datetime.now(UTC) - before < timedelta(milliseconds=2):  # noqa: ASYNC110 - the store counts milliseconds
            await asyncio.sleep(0)
        await app.gate.update_memory(
            ME, "b", MemoryUpdate(stored.memory_id or "", frozenset({"content"}), content="Ida lives in Rome.")
        )
        model.answers = [call("history", query="Where does Ida live?", as_of=before.isoformat()), "In Oslo, once [2]."]
        result = await ask(app, "Where does Ida live?", tags=("home",))
    assert "[2] Ida lives in Oslo." in model.prompts[1].messages[-1].content
    assert [source.text for source in result.sources or ()] == ["Ida lives in Oslo."]


async def test_an_agent_sees_no_more_than_the_caller() -> None:
    result, model = await agent(call("recall", query="Who plays in the orchestra?"), "[none]")
    assert result.abstained
    assert not any("orchestra meets" in message.content for message in model.prompts[-1].messages)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (call("erase", query="x"), "no such tool"),
        (call("recall", query=""), "query must be"),
        (call("recall", query="x" * 2000), "query must be"),
        (call("recall", text="x"), "query must be"),
        (call("history", query="x", as_of="yesterday"), "ISO 8601"),
        (call("history", query="x", as_of=3), "ISO 8601"),
        (call("history", query="tea", as_of="2001-01-01"), "Nothing was found"),
    ],
)
async def test_a_wrong_call_is_answered_in_words(asked: Completion, told: str) -> None:
    _, model = await agent(asked, "Tea [1]")
    assert told in model.prompts[1].messages[-1].content


async def test_an_agent_that_never_ends_has_to_answer() -> None:
    searching = call("recall", query="tea")
    result, model = await agent(searching, searching, "Tea [1]", max_iterations=2)
    assert result.answer == "Tea"
    assert len(model.prompts) == 3
    assert model.prompts[-1].tools == ()
    # The same bound for tokens: the first call used 110 of them.
    _, model = await agent(searching, "Tea [1]", max_total_tokens=100)
    assert len(model.prompts) == 2
    assert model.prompts[-1].tools == ()


async def test_an_agent_gathers_no_more_than_its_pool() -> None:
    model = Model(call("recall", query="cello"), "Cello [2]")
    async with memory(model, agentic_reflect={"enabled": True, "max_evidence_pool_size": 1}) as app:
        result = await ask(app)
    assert result.citations == ()


async def test_too_many_calls_at_once_are_refused() -> None:
    calls = tuple(ToolCall(str(number), "recall", {"query": "tea"}) for number in range(6))
    _, model = await agent(Completion("", FinishReason.TOOL_CALLS, calls), "Tea [1]")
    answers = [message.content for message in model.prompts[1].messages if message.role is Role.TOOL]
    assert len(answers) == 6
    assert [answer == "Too many calls at once." for answer in answers] == [False] * 4 + [True] * 2


def as_json(**values: Any) -> str:
    return json.dumps(values)


PREMISES = as_json(premises=["Mara drinks coffee."])


@pytest.mark.parametrize(
    ("verdict", "stops"),
    [
        (as_json(supported=False, confidence=0.9), True),
        (as_json(supported=False, confidence=0.5), False),
        (as_json(supported=True, confidence=1), False),
        ("no json", False),
        (as_json(supported="no", confidence=1), False),
        (as_json(supported=False, confidence=True), False),
    ],
)
async def test_a_premise_that_does_not_hold_ends_it(verdict: str, *, stops: bool) -> None:
    model = Model(PREMISES, verdict, "Green tea [1]")
    async with memory(model, adversarial_defense={"premise_verification_enabled": True}) as app:
        result = await ask(app)
    assert result.abstained is stops
    if stops:
        assert result.answer == ABSTENTION
        assert (result.observations or ())[0].endswith("Mara drinks coffee.")
        assert result.tokens_used == 30
        assert len(model.prompts) == 2
    else:
        assert result.answer == "Green tea"


async def test_no_premises_are_no_check() -> None:
    model = Model(as_json(premises=[]), "Green tea [1]")
    async with memory(model, adversarial_defense={"premise_verification_enabled": True}) as app:
        assert (await ask(app)).answer == "Green tea"
        assert len(model.prompts) == 2
        model.answers = ["nothing", "Green tea [1]"]
        assert (await ask(app)).answer == "Green tea"
        # Sentences are not checked: there is no model in them.
        assert TEA in (await ask(app, mode=ReflectMode.EXTRACTIVE)).answer


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"query": " "}, "query"),
        ({"query": "x" * 9_000}, "query"),
        ({"bank_id": "no bank"}, "bank_id"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"tags": ("",)}, "tags"),
        ({"mode": "wise"}, "mode"),
        ({"dispositions": Dispositions(skepticism=6)}, "dispositions.skepticism"),
        ({"dispositions": Dispositions(empathy=0)}, "dispositions.empathy"),
        ({"as_of": datetime(2024, 1, 1)}, "as_of"),  # noqa: DTZ001 - a time without a zone is what is tested
    ],
)
async def test_a_wrong_request_is_refused(options: dict[str, Any], field: str) -> None:
    async with memory() as app:
        query = ReflectQuery(**{"query": ASKED, "bank_id": "b", **options})
        with pytest.raises(ValidationError) as caught:
            await app.gate.reflect(ME, query)
        assert caught.value.field.startswith(field)


async def test_rates_and_quotas_hold() -> None:
    limited = {"rate_limits": {"reflect_per_minute": 1, "recall_per_minute": 1}}
    async with memory(homeostasis=limited) as app:
        await ask(app)
        with pytest.raises(LimitReached) as caught:
            await ask(app)
        assert caught.value.metadata["operation"] == "reflect"
    async with memory(homeostasis={"quotas": {"reflect_per_day": 1}}) as app:
        await ask(app)
        with pytest.raises(LimitReached, match="1 a day"):
            await pieces(app)


ALWAYS = {"adversarial_defense": {"abstention_enabled": False}}
PHONE = "Mara's phone number is 415-555-0123."


async def private(model: Model | None, action: str, **dlp: Any) -> tuple[ReflectResult, Model | None]:
    settings = {"dlp": {"output_pii_action": action, **dlp}, "barriers": {"pii": {"action": "warn"}}, **ALWAYS}
    async with memory(model, **settings) as app:
        await app.gate.retain(ME, "b", RetainItem(PHONE))
        return await ask(app, "What is Mara's phone number?"), model


@pytest.mark.parametrize("scripted", [True, False])
async def test_personal_data_is_kept_out_of_what_answers_are_made_of(*, scripted: bool) -> None:
    result, _ = await private(Model("It is given [1].") if scripted else None, "redact", scan_reflect_output=True)
    assert "0123" not in f"{result.answer} {result.sources}"
    assert any("pii" in remark for remark in result.observations or ())
    result, model = await private(Model("It is given [1].") if scripted else None, "reject", scan_reflect_output=True)
    assert "0123" not in f"{result.answer} {result.sources}"
    assert model is None or "0123" not in model.prompts[0].messages[1].content


async def test_without_that_setting_they_are_as_they_were_stored() -> None:
    result, _ = await private(None, "redact", scan_recall_output=True)
    assert "0123" in result.answer


async def test_an_agent_finds_no_personal_data_either() -> None:
    model = Model(call("recall", query="phone number"), "Given [1]")
    settings = {
        "dlp": {"output_pii_action": "redact", "scan_reflect_output": True},
        "barriers": {"pii": {"action": "warn"}},
        # So that only the agent's own search finds it.
        "pipeline": {"reflect": {"recall_max_results": 1}},
    }
    async with memory(model, agentic_reflect={"enabled": True}, **settings) as app:
        await app.gate.retain(ME, "b", RetainItem(PHONE))
        result = await ask(app)
    assert any("redacted phone" in remark for remark in result.observations or ())
    assert not any("0123" in message.content for prompt in model.prompts for message in prompt.messages)


async def test_personal_data_in_a_question_is_dealt_with_once() -> None:
    model = Model("Mara [1]")
    async with memory(model, barriers={"pii": {"action": "redact", "scan": ["content", "query"]}}, **ALWAYS) as app:
        result = await ask(app, "Whose phone number is 415-555-0123, Mara's?")
        assert "0123" not in model.prompts[0].messages[1].content
        assert any("pii" in remark for remark in result.observations or ())


async def test_while_a_model_is_left_alone_memory_is_unavailable() -> None:
    model = Model(DOWN)
    breaker = {"failure_threshold": 1, "recovery_timeout_seconds": 60}
    async with memory(model, escalation={"circuit_breaker": breaker}) as app:
        with pytest.raises(ProviderUnavailable, match="down"):
            await ask(app)
        for result in (await ask(app), (await pieces(app))[1]):
            assert result.answer == "Memory is unavailable at the moment."
            assert result.abstained
        assert len(model.prompts) == 1
        assert TEA in (await ask(app, mode=ReflectMode.EXTRACTIVE)).answer
    async with memory(model, escalation={"circuit_breaker": breaker, "degraded_mode": "error"}) as app:
        for _ in range(2):
            with pytest.raises(ProviderUnavailable):
                await ask(app)
    async with memory(Model(DOWN), escalation={"circuit_breaker": breaker}, fallback_strategy="extractive") as app:
        for _ in range(2):
            assert TEA in (await ask(app)).answer
