"""Bounds of a reflect: premises, requests, rates, and personal data in its evidence."""

import json
from datetime import datetime
from typing import Any

import pytest

from astrocyte.api.requests import Reflect, Retain
from astrocyte.errors import (
    LimitReached,
    ProviderUnavailable,
    ValidationError,
)
from astrocyte.model import (
    Dispositions,
    ReflectMode,
    ReflectQuery,
    ReflectResult,
    RetainItem,
)
from astrocyte.pipelines.reflect.draft import ABSTENTION
from doubles.reflecting import ASKED, DOWN, ME, TEA, Model, ask, call, memory, pieces


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
            await app.gate.call(ME, Reflect(query))
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
        await app.gate.call(ME, Retain("b", RetainItem(PHONE)))
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
        await app.gate.call(ME, Retain("b", RetainItem(PHONE)))
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
