"""Personal data that no pattern finds: a language model, a local one, and what happens when they fail."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from astrocyte.api.requests import BatchRecall, GetBank, ListMemories, Recall, Retain, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings, load_settings
from astrocyte.errors import BankNotFound, ConfigError, PiiRejected, ProviderUnavailable
from astrocyte.model import Caller, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.policy.gate import Gate
from astrocyte.providers.messages import Prompt

ME = Caller()


def answer(*findings: tuple[int, str, str]) -> str:
    return json.dumps({"findings": [{"text": text, "quote": quote, "type": kind} for text, quote, kind in findings]})


@asynccontextmanager
async def asking(*replies: str, mode: str = "llm", **pii: Any) -> AsyncIterator[tuple[Gate, list[Prompt]]]:
    settings = Settings.from_mapping(
        {
            "vector_store": "in_memory",
            "llm_provider": "mock",
            "llm_provider_config": {"replies": list(replies)},
            "barriers": {"pii": {"mode": mode, **pii}},
        }
    )
    app = App(settings)
    model = cast("Any", app.providers.language_model)
    while not hasattr(model, "prompts"):
        model = model._model
    yield app.gate, model.prompts
    await app.close()


async def stored(gate: Gate) -> list[str]:
    return [memory.content for memory in (await gate.call(ME, ListMemories("b"))).memories]


async def test_what_the_model_quotes_is_replaced_wherever_it_stands() -> None:
    reply = answer((0, "Ana Lopez", "person"), (1, "Rua Direita 7", "address"))
    async with asking(reply) as (gate, prompts):
        item = RetainItem("Ana Lopez came; Ana Lopez left", metadata={"home": "Rua Direita 7"})
        result = await gate.call(ME, Retain("b", item))
        assert await stored(gate) == ["[PERSON_REDACTED] came; [PERSON_REDACTED] left"]
        (memory,) = (await gate.call(ME, ListMemories("b"))).memories
        assert memory.metadata == {"home": "[ADDRESS_REDACTED]"}
        assert result.warnings == ("pii: redacted address (1), person (2)",)
        assert json.loads(prompts[0].messages[-1].content) == ["Ana Lopez came; Ana Lopez left", "home: Rua Direita 7"]
        assert "Ana" not in prompts[0].messages[0].content


async def test_patterns_come_first_where_that_is_wanted_and_the_model_does_not_see_what_they_found() -> None:
    async with asking(answer((0, "Ana", "person")), mode="rules_then_llm") as (gate, prompts):
        await gate.call(ME, Retain("b", RetainItem("Ana: ana@example.org")))
        assert await stored(gate) == ["[PERSON_REDACTED]: [EMAIL_REDACTED]"]
        assert "example.org" not in prompts[0].messages[-1].content


async def test_own_patterns_hold_beside_a_model() -> None:
    patterns = [{"name": "custom_id", "pattern": r"CUST-\d{8}"}]
    async with asking(answer(), patterns=patterns) as (gate, _):
        await gate.call(ME, Retain("b", RetainItem("CUST-12345678 of ana@example.org")))
        assert await stored(gate) == ["[CUSTOM_ID_REDACTED] of ana@example.org"]


@pytest.mark.parametrize(
    "reply",
    [
        "no findings",
        "[]",
        '{"findings": 3}',
        '{"findings": [{"text": 0}]}',
        answer((7, "tea", "person")),
        answer((0, "coffee", "person")),
        answer((0, "", "person")),
        "word " * 3_000,
    ],
)
async def test_an_answer_that_cannot_be_used_lets_nothing_pass(reply: str) -> None:
    async with asking(reply) as (gate, _):
        with pytest.raises(ProviderUnavailable) as caught:
            await gate.call(ME, Retain("b", RetainItem("Ana likes tea")))
        assert "tea" not in str(caught.value)
        with pytest.raises(BankNotFound):
            await gate.call(ME, GetBank("b"))


async def test_queries_and_updates_are_read_by_the_model_too() -> None:
    replies = [answer(), answer((0, "Ana", "person")), answer((0, "Ana", "person"))]
    async with asking(*replies) as (gate, _):
        made = await gate.call(ME, Retain("b", RetainItem("tea")))
        await gate.call(
            ME, UpdateMemory("b", MemoryUpdate(str(made.memory_id), frozenset({"content"}), "Ana likes tea"))
        )
        assert await stored(gate) == ["[PERSON_REDACTED] likes tea"]
        result = await gate.call(ME, Recall(RecallQuery("what does Ana like", "b")))
        assert result.warnings == ("pii: redacted person (1)",)


async def test_a_model_reads_the_queries_of_a_batch_one_by_one() -> None:
    replies = [answer(), answer((0, "Ana", "person")), answer()]
    async with asking(*replies) as (gate, prompts):
        await gate.call(ME, Retain("b", RetainItem("tea")))
        queries = [RecallQuery("what does Ana like", "b"), RecallQuery("tea", "b")]
        results = await gate.call(ME, BatchRecall(queries))
        assert [result.warnings for result in results] == [("pii: redacted person (1)",), ()]
        assert [json.loads(one.messages[-1].content) for one in prompts[1:]] == [["what does Ana like"], ["tea"]]


async def test_a_models_types_have_actions_of_their_own() -> None:
    reply = answer((0, "Ana", "person"), (0, "asthma", "health"), (0, "odd", "strange"))
    overrides = {"person": {"action": "ignore"}, "other_pii": {"replacement": "?"}}
    async with asking(reply, type_overrides=overrides) as (gate, _):
        await gate.call(ME, Retain("b", RetainItem("Ana has asthma, odd")))
        assert await stored(gate) == ["Ana has [HEALTH_REDACTED], ?"]
    async with asking(reply, action="reject") as (gate, _):
        with pytest.raises(PiiRejected):
            await gate.call(ME, Retain("b", RetainItem("Ana has asthma, odd")))


@pytest.mark.parametrize("mode", ["llm", "rules_then_llm"])
def test_a_mode_without_its_model_is_refused_with_its_line(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "astrocyte.yaml"
    path.write_text(f"vector_store: in_memory\nbanks:\n  b:\n    barriers:\n      pii:\n        mode: {mode}\n")
    with pytest.raises(ConfigError, match="llm_provider") as caught:
        App(load_settings(path, environ={}))
    assert caught.value.metadata["line"] == "6"


class Entity:
    def __init__(self, text: str, word: str, label: str) -> None:
        self.start_char = text.index(word)
        self.end_char = self.start_char + len(word)
        self.label_ = label


class Doc:
    def __init__(self, text: str) -> None:
        known = {"Ana": "PERSON", "Porto": "GPE", "Tuesday": "DATE"}
        self.ents = [Entity(text, word, label) for word, label in known.items() if word in text]


async def test_people_and_places_are_found_by_a_local_model(monkeypatch: pytest.MonkeyPatch) -> None:
    spacy = types.ModuleType("spacy")
    spacy.load = lambda name: {"mine": Doc}[name]  # type: ignore[attr-defined] # a module of our own
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    pii = {"mode": "ner", "ner_model": "mine", "type_overrides": {"location": {"action": "ignore"}}}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "barriers": {"pii": pii}}))
    await app.gate.call(ME, Retain("b", RetainItem("Ana flew to Porto on Tuesday; ana@example.org")))
    assert await stored(app.gate) == ["[PERSON_REDACTED] flew to Porto on Tuesday; [EMAIL_REDACTED]"]
    await app.close()


def test_a_local_model_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.from_mapping({"vector_store": "in_memory", "barriers": {"pii": {"mode": "ner"}}})
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ConfigError, match="pip install"):
        App(settings)

    def load(name: str) -> None:
        raise OSError(name)

    spacy = types.ModuleType("spacy")
    spacy.load = load  # type: ignore[attr-defined] # a module of our own
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    with pytest.raises(ConfigError, match="en_core_web_sm"):
        App(settings)
