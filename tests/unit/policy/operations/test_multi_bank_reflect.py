"""Reflect over several banks, through the gate."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from astrocyte.api.requests import Reflect, Retain, StreamReflect
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    AccessDenied,
    BankNotFound,
    CircuitOpen,
    LimitReached,
    PiiRejected,
    ProviderUnavailable,
    ValidationError,
)
from astrocyte.model import Caller, MultiBankStrategy, ReflectQuery, ReflectResult, RetainItem
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.messages import Completion, Prompt, TokenUsage, ToolCall

ANN = Caller(principal="user:ann")
OATS = "Ann drinks oat milk in her coffee."
KITCHEN = "The coffee machine is in the kitchen on the second floor."
ROASTER = "The company buys its coffee from a roaster in Trieste."
BANKS = {"personal": OATS, "team": KITCHEN, "org": ROASTER}
ASKED = "What is known about coffee?"
ANYTHING: dict[str, Any] = {"adversarial_defense": {"abstention_enabled": False}}


class Model:
    """Searches once for the roaster, then says what it was told to; or is down."""

    model_id = "scripted"

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.prompts: list[Prompt] = []

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        del deadline
        self.prompts.append(prompt)
        if self.answer is None:
            raise ProviderUnavailable("down")
        if prompt.tools and len(self.prompts) == 1:
            search = ToolCall("one", "recall", {"query": "roaster in Trieste"})
            return Completion("", tool_calls=(search,), usage=TokenUsage(1, 1))
        return Completion(self.answer, usage=TokenUsage(1, 1))

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        yield await self.complete(prompt, deadline=deadline)

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def filled(model: Model | None = None, **settings: Any) -> AsyncIterator[App]:
    values = {"vector_store": "in_memory", "llm_provider": "none" if model is None else "mock"} | settings
    with pytest.MonkeyPatch.context() as patch:
        if model is not None:
            patch.setattr("astrocyte.wiring.providers.create_language_model", lambda name, options: BoundedModel(model))
        app = App(Settings.from_mapping(values))
    for bank_id, content in BANKS.items():
        await app.gate.call(Caller(operator=True), Retain(bank_id, RetainItem(content)))
    yield app
    await app.close()


def ask(question: str = ASKED, **values: Any) -> ReflectQuery:
    return ReflectQuery(question, **{"banks": tuple(BANKS), **values})


async def streamed(app: App, query: ReflectQuery, caller: Caller = ANN) -> ReflectResult:
    parts = [part async for part in app.gate.stream(caller, StreamReflect(query))]
    assert isinstance(parts[-1], ReflectResult)
    assert "".join(map(str, parts[:-1])) == parts[-1].answer
    return parts[-1]


def origins(result: ReflectResult) -> dict[str | None, str]:
    return {source.bank_id: source.text for source in result.sources or ()}


async def test_one_answer_rests_on_all_banks_and_says_on_which() -> None:
    async with filled(**ANYTHING) as app:
        result = await app.gate.call(ANN, Reflect(ask()))
        assert origins(result) == BANKS
        by_id = {source.memory_id: source for source in result.sources or ()}
        for start, end, memory_id in result.citations:
            assert result.answer[start:end] in by_id[memory_id].text
        assert result.trace is not None
        assert {bank.bank_id for bank in result.trace.banks} == set(BANKS)
        assert (await streamed(app, ask())).answer == result.answer


async def test_banks_are_asked_as_the_strategy_or_the_group_says() -> None:
    group = {"banks": ["{user_id}", "team", "org"], "strategy": "first_match", "cascade_order": ["team"]}
    async with filled(multi_bank={"bank_groups": {"mine": group}}, **ANYTHING) as app:
        await app.gate.call(ANN, Retain("ann", RetainItem(OATS)))
        first = await app.gate.call(ANN, Reflect(ask(strategy=MultiBankStrategy("first_match"))))
        assert origins(first) == {"personal": OATS}
        assert origins(await app.gate.call(ANN, Reflect(ask(banks=(), bank_group="mine")))) == {"team": KITCHEN}
        weighed = MultiBankStrategy("parallel", bank_weights={"team": 0})
        grouped = await streamed(app, ask(banks=(), bank_group="mine", strategy=weighed))
        assert origins(grouped) == {"ann": OATS, "org": ROASTER}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"bank_id": "team"}, "bank_id"),
        ({"bank_group": "mine"}, "bank_group"),
        ({"banks": ("team", "team")}, "banks[1]"),
        ({"banks": ("team",), "min_position": 3}, "min_position"),
        ({"banks": (), "bank_id": "team", "strategy": MultiBankStrategy("cascade")}, "strategy"),
        ({"strategy": MultiBankStrategy(bank_weights={"elsewhere": 2})}, "strategy.bank_weights"),
        ({"banks": ()}, "bank_id"),
    ],
)
async def test_what_cannot_be_meant_is_refused(values: dict[str, Any], field: str) -> None:
    async with filled() as app:
        for call in (app.gate.call(ANN, Reflect(ask(**values))), streamed(app, ask(**values))):
            with pytest.raises(ValidationError) as raised:
                await call
            assert raised.value.field == field


async def test_access_to_every_bank_is_decided_before_any_is_read_or_charged() -> None:
    grants = [{"bank_id": "org", "principal": "user:bob", "permissions": ["read"]}]
    rates = {"rate_limits": {"reflect_per_minute": 1}}
    access = {"enabled": True, "default_policy": "owner_only"}
    async with filled(access_control=access, access_grants=grants, homeostasis=rates, **ANYTHING) as app:
        bob = Caller(principal="user:bob")
        for other in ("team", "nowhere"):
            for call in (
                app.gate.call(bob, Reflect(ask(banks=("org", other)))),
                streamed(app, ask(banks=("org", other)), bob),
            ):
                with pytest.raises(AccessDenied) as refused:
                    await call
                assert refused.value.metadata["bank_id"] == other
        assert origins(await app.gate.call(bob, Reflect(ask(banks=("org",))))) == {"org": ROASTER}


async def test_a_bank_that_is_not_there_refuses_the_call() -> None:
    async with filled() as app:
        with pytest.raises(BankNotFound):
            await app.gate.call(ANN, Reflect(ask(banks=("team", "nowhere"))))


async def test_all_banks_admit_a_reflect_or_none_is_charged() -> None:
    own = {"org": {"homeostasis": {"rate_limits": {"reflect_per_minute": 1}}}}
    rates = {"rate_limits": {"reflect_per_minute": 2}}
    async with filled(homeostasis=rates, banks=own) as app:
        await app.gate.call(ANN, Reflect(ask()))
        for _ in range(3):
            with pytest.raises(LimitReached):
                await app.gate.call(ANN, Reflect(ask()))
        # One of two was taken from the others, in spite of the three that were refused.
        await app.gate.call(ANN, Reflect(ask(banks=("personal", "team"))))
        with pytest.raises(LimitReached):
            await app.gate.call(ANN, Reflect(ask(banks=("personal", "team"))))


async def test_a_question_is_held_to_the_barrier_of_every_bank() -> None:
    own = {"org": {"barriers": {"pii": {"action": "reject", "scan": ["query"]}}}}
    question = "Whose phone number is 415-555-0123?"
    async with filled(barriers={"pii": {"scan": ["content"]}}, banks=own) as app:
        with pytest.raises(PiiRejected):
            await app.gate.call(ANN, Reflect(ask(question)))
        await app.gate.call(ANN, Reflect(ask(question, banks=("personal", "team"))))


async def test_each_bank_says_whether_its_memories_may_be_shown() -> None:
    phones = {"personal": "Coffee for Ann: call 415-555-0123.", "team": "Coffee for the team: call 415-555-0199."}
    settings: dict[str, Any] = {
        "barriers": {"pii": {"action": "warn"}},
        "banks": {"team": {"dlp": {"scan_reflect_output": True, "output_pii_action": "redact"}}},
    }
    async with filled(**settings, **ANYTHING) as app:
        for bank_id, content in phones.items():
            await app.gate.call(ANN, Retain(bank_id, RetainItem(content)))
        result = await app.gate.call(ANN, Reflect(ask("Whom to call for coffee?", banks=tuple(phones))))
        assert "415-555-0123" in result.answer
        assert "0199" not in f"{result.answer} {result.sources}"
        assert any("pii" in remark for remark in result.observations or ())


async def test_the_lowest_ceiling_of_the_banks_holds() -> None:
    async with filled(banks={"org": {"homeostasis": {"reflect_max_tokens": 5}}}, **ANYTHING) as app:
        assert (await app.gate.call(ANN, Reflect(ask()))).truncated
        assert not (await app.gate.call(ANN, Reflect(ask(banks=("personal", "team"))))).truncated


async def test_an_agent_searches_in_all_banks() -> None:
    model = Model("From Trieste [2].")
    settings: dict[str, Any] = {"pipeline": {"reflect": {"recall_max_results": 1}}, **ANYTHING}
    async with filled(model, agentic_reflect={"enabled": True}, **settings) as app:
        result = await app.gate.call(ANN, Reflect(ask("Where is the kitchen with the coffee machine?")))
        assert origins(result) == {"org": ROASTER}
        assert KITCHEN in model.prompts[0].messages[1].content


@pytest.mark.parametrize("all_empty", [True, False])
async def test_memory_is_unavailable_where_all_banks_say_so(*, all_empty: bool) -> None:
    escalation = {"circuit_breaker": {"failure_threshold": 1, "recovery_timeout_seconds": 60}}
    own = {} if all_empty else {"org": {"escalation": {"degraded_mode": "error"}}}
    async with filled(Model(None), escalation=escalation, banks=own, **ANYTHING) as app:
        with pytest.raises(ProviderUnavailable, match="down"):
            await app.gate.call(ANN, Reflect(ask()))
        for call in (app.gate.call(ANN, Reflect(ask())), streamed(app, ask())):
            if all_empty:
                assert (await call).answer == "Memory is unavailable at the moment."
            else:
                with pytest.raises(CircuitOpen):
                    await call
