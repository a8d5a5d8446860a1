"""Extraction profiles: what they give to an item, to what it is cut, and which of them holds."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from astrocyte.api.requests import GetMemory, Recall, Retain, UpdateMemory
from astrocyte.app import App
from astrocyte.config import Settings, load_settings
from astrocyte.config.extraction import builtin_profiles
from astrocyte.errors import ConfigError, PiiRejected, ValidationError
from astrocyte.model import Caller, Memory, MemoryUpdate, RecallQuery, RetainItem
from astrocyte.pipelines.extraction import json_paths as mapping
from astrocyte.policy.gate import Gate
from astrocyte.policy.operations.media_intake import Intake
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.privacy.barriers import Barriers

ME = Caller()
TICKET = {
    "content_type": "document",
    "metadata_mapping": {"project": "$.issue.project", "first_label": "$.issue.labels[0].name", "origin": "tracker"},
    "tag_rules": [{"contains": "Invoice", "tags": ["billing", "money"]}, {"match": "crash", "tags": ["bug"]}],
    "fact_type": "ticket",
    "authority_tier": "canonical",
}
ISSUE = json.dumps({"issue": {"project": "apollo", "labels": [{"name": "urgent"}], "text": "The invoice is wrong"}})


@asynccontextmanager
async def opened(settings: Mapping[str, Any]) -> AsyncIterator[Gate]:
    app = App(Settings.from_mapping({"vector_store": "in_memory", **settings}))
    try:
        yield app.gate
    finally:
        await app.close()


async def stored(gate: Gate, item: RetainItem, bank: str = "b") -> Memory:
    result = await gate.call(ME, Retain(bank, item))
    assert result.memory_id is not None, result
    return await gate.call(ME, GetMemory(bank, result.memory_id))


async def test_a_profile_gives_metadata_tags_and_kind() -> None:
    async with opened({"extraction_profiles": {"ticket": TICKET}}) as gate:
        item = RetainItem(ISSUE, extraction_profile="ticket", tags=("own", "money"))
        memory = await stored(gate, item)
        assert memory.metadata == {
            "project": "apollo", "first_label": "urgent", "origin": "tracker", "authority_tier": "canonical",
        }  # fmt: skip
        assert memory.tags == ("own", "money", "billing")
        assert memory.fact_type == "ticket"
        found = await gate.call(
            ME, Recall(RecallQuery("invoice", "b", tags=("billing",), metadata={"project": "apollo"}))
        )
        assert [hit.memory_id for hit in found.hits] == [memory.memory_id]


async def test_what_the_item_says_itself_wins() -> None:
    async with opened({"extraction_profiles": {"ticket": TICKET}}) as gate:
        own = {"project": "zeus", "authority_tier": "draft"}
        memory = await stored(gate, RetainItem(ISSUE, extraction_profile="ticket", metadata=own, fact_type="note"))
        assert (memory.metadata["project"], memory.metadata["authority_tier"]) == ("zeus", "draft")
        assert memory.fact_type == "note"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("The invoice is no JSON", "no JSON"),
        (json.dumps({"issue": {"project": ["a", "list"]}}), "'project'"),
        (json.dumps({"issue": {"project": "x" * 2_000}}), "'project'"),
        ('{"issue": {"project": NaN}}', "'project'"),
        (json.dumps({"issue": {"project": 2**70}}), "'project'"),
        ("[" * 50_000, "no JSON"),
    ],
)
async def test_what_a_path_cannot_give_is_told_of(content: str, told: str) -> None:
    async with opened({"extraction_profiles": {"ticket": TICKET}}) as gate:
        result = await gate.call(ME, Retain("b", RetainItem(content, extraction_profile="ticket")))
        assert result.stored
        assert [warning for warning in result.warnings if told in warning] != []
        memory = await gate.call(ME, GetMemory("b", result.memory_id or ""))
        assert "project" not in memory.metadata


async def test_what_is_mapped_is_held_to_the_limits() -> None:
    mapping = {f"key{number}": "x" * 128 for number in range(40)}
    async with opened({"extraction_profiles": {"wide": {"metadata_mapping": mapping}}}) as gate:
        with pytest.raises(ValidationError) as caught:
            await gate.call(ME, Retain("b", RetainItem("tea", extraction_profile="wide")))
        assert caught.value.metadata["field"] == "metadata"


async def test_tags_by_rule_are_held_to_the_limits() -> None:
    rules = [{"contains": "tea", "tags": [f"tag{number}" for number in range(65)]}]
    async with opened({"extraction_profiles": {"many": {"tag_rules": rules}}}) as gate:
        with pytest.raises(ValidationError) as caught:
            await gate.call(ME, Retain("b", RetainItem("tea", extraction_profile="many")))
        assert caught.value.metadata["field"] == "tags"


async def test_what_is_mapped_passes_the_barriers() -> None:
    settings = {
        "extraction_profiles": {"mail": {"metadata_mapping": {"contact": "$.contact"}}},
        "barriers": {"pii": {"mode": "regex", "action": "reject", "scan": ["metadata"]}},
    }
    async with opened(settings) as gate:
        with pytest.raises(PiiRejected):
            await gate.call(ME, Retain("b", RetainItem('{"contact": "ana@example.org"}', extraction_profile="mail")))


async def test_a_bank_has_a_profile_of_its_own() -> None:
    settings = {
        "extraction_profiles": {"ticket": TICKET},
        "banks": {"tickets": {"extraction": {"profile": "ticket"}}},
    }
    async with opened(settings) as gate:
        memory = await stored(gate, RetainItem("It will crash"), "tickets")
        assert (memory.fact_type, memory.tags) == ("ticket", ("bug",))
        assert (await stored(gate, RetainItem("It will crash"), "b")).fact_type == "world"
        other = await stored(gate, RetainItem("They crash", extraction_profile="builtin_text"), "tickets")
        assert (other.fact_type, other.tags) == ("world", ())


TEXT = "\n\n".join(
    " ".join(f"Sentence {number} of paragraph {place} goes on a while." for number in range(6)) for place in range(12)
)


@pytest.mark.parametrize("strategy", ["sentence", "paragraph", "dialogue", "fixed"])
async def test_every_chunker_holds_its_size_in_characters(strategy: str) -> None:
    profile = {"chunking_strategy": strategy, "chunk_size": 400, "content_type": "document"}
    async with opened({"extraction_profiles": {"cut": profile}}) as gate:
        content = TEXT.replace("\n\n", "\nAnn: ") if strategy == "dialogue" else TEXT
        result = await gate.call(ME, Retain("b", RetainItem(content, extraction_profile="cut")))
        assert result.chunk_count >= len(content) // 400
        texts = [hit.text for hit in (await gate.call(ME, Recall(RecallQuery("sentence 3 of paragraph 7", "b")))).hits]
        assert all(0 < len(text) <= 400 for text in texts)


@pytest.mark.parametrize(
    ("content_type", "content", "joint"),
    [
        ("text", TEXT, "Sentence"),
        ("conversation", TEXT.replace("\n\n", "\nAnn: "), "Ann: "),
        ("transcript", TEXT.replace("\n\n", "\nBob: "), "Bob: "),
        ("document", TEXT, "Sentence 0"),
        ("email", f"From: a@example.org\nSubject: Sentence\n\n{TEXT}\n-- \nsignature", "Sentence"),
        ("event", TEXT, "Sentence"),
    ],
)
async def test_every_content_type_is_cut_at_its_joints(content_type: str, content: str, joint: str) -> None:
    async with opened({}) as gate:
        result = await gate.call(ME, Retain("b", RetainItem(content, content_type=content_type)))
        assert result.chunk_count > 3
        hits = (await gate.call(ME, Recall(RecallQuery("paragraph 7", "b")))).hits
        assert hits[0].text.startswith(joint)
        assert "signature" not in (await gate.call(ME, GetMemory("b", result.memory_id or ""))).content


# As the specification of the pipeline prints them.
CHUNKING = """
pipeline:
  chunking:
    strategy: fixed
    max_chunk_size: 512
  entity_extraction:
    mode: llm
  embedding:
    model: null
"""


async def test_the_steps_of_the_pipeline_load_as_printed_and_hold(tmp_path: Path) -> None:
    path = tmp_path / "astrocyte.yaml"
    path.write_text(CHUNKING, encoding="utf-8")
    overrides = {"vector_store": "in_memory", "llm_provider": "mock"}
    app = App(load_settings(path, environ={}, overrides=overrides))
    result = await app.gate.call(ME, Retain("b", RetainItem(TEXT)))
    assert result.chunk_count >= len(TEXT) // 512
    await app.close()
    with pytest.raises(ConfigError, match=r"line 7: pipeline\.entity_extraction\.mode: needs a language model"):
        App(load_settings(path, environ={}, overrides={"vector_store": "in_memory"}))


def test_the_model_of_the_embedding_step_is_the_providers() -> None:
    settings = {"pipeline": {"embedding": {"model": "other"}}, "vector_store": "in_memory"}
    with pytest.raises(ConfigError, match="model"):
        # The bundled table has no models to choose from, and says so.
        App(Settings.from_mapping(settings))
    with pytest.raises(ConfigError, match="set only one of them"):
        Settings.from_mapping({**settings, "embedding": {"options": {"model": "one"}}})


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"extraction": {"profile": "none_such"}}, "extraction.profile"),
        ({"banks": {"b": {"extraction": {"profile": "none_such"}}}}, "banks.b.extraction.profile"),
        ({"extraction_profiles": {"p": {"chunk_sise": 100}}}, "extraction_profiles.p.chunk_sise"),
        ({"extraction_profiles": {"p": {"chunk_size": 1}}}, "extraction_profiles.p.chunk_size"),
        ({"extraction_profiles": {"p": {"tag_rules": [{"tags": ["a"]}]}}}, "extraction_profiles.p.tag_rules.0"),
        ({"extraction_profiles": {"p": {"metadata_mapping": {"a": "$.b["}}}}, "extraction_profiles.p.metadata_mapping"),
        ({"extraction_profiles": {"p": {"metadata_mapping": {"_a": "b"}}}}, "extraction_profiles.p.metadata_mapping"),
        ({"extraction_profiles": {"p": {"entity_extraction": "custom"}}}, "extraction_profiles.p.entity_extraction"),
        ({"pipeline": {"entity_extraction": {"mode": "custom"}}}, "pipeline.entity_extraction"),
        (
            {"pipeline": {"entity_extraction": {"custom_extractor": "a:B"}}},
            "pipeline.entity_extraction.custom_extractor",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.from_mapping(settings)
    assert caught.value.metadata["key"] == key


async def test_a_profile_that_is_not_there_is_named_with_those_that_are() -> None:
    async with opened({"extraction_profiles": {"ticket": TICKET}}) as gate:
        with pytest.raises(ValidationError, match=r"builtin_conversation.*ticket") as caught:
            await gate.call(ME, Retain("b", RetainItem("tea", extraction_profile="tickets")))
        assert caught.value.metadata["field"] == "extraction_profile"


def test_the_built_in_profiles_are_those_of_the_specification() -> None:
    assert set(builtin_profiles()) == {"builtin_text", "builtin_conversation", "locomo_conversation", "locomo_persona"}
    assert builtin_profiles()["locomo_persona"].fact_type == "wiki"


async def test_a_profile_of_the_settings_takes_the_place_of_a_built_in_one() -> None:
    async with opened({"extraction_profiles": {"builtin_text": {"fact_type": "own"}}}) as gate:
        assert (await stored(gate, RetainItem("tea", extraction_profile="builtin_text"))).fact_type == "own"


async def test_an_update_is_cut_as_the_bank_says() -> None:
    settings = {
        "extraction_profiles": {"cut": {"chunk_size": 200}},
        "banks": {"b": {"extraction": {"profile": "cut"}}},
    }
    async with opened(settings) as gate:
        memory = await stored(gate, RetainItem("tea"))
        update = MemoryUpdate(memory.memory_id, frozenset({"content"}), content=TEXT)
        assert (await gate.call(ME, UpdateMemory("b", update))).chunk_count >= len(TEXT) // 200


class Unchecked:
    def item(self, *_: object) -> None:
        pass


def without_a_second_look(patch: pytest.MonkeyPatch) -> None:
    made = Intake.__init__

    def unchecked(self: Intake, parts: OperationParts) -> None:
        made(self, replace(parts, check=Unchecked()))  # type: ignore[arg-type]  # it checks nothing

    patch.setattr(Intake, "__init__", unchecked)


def without_barriers(patch: pytest.MonkeyPatch) -> None:
    async def item(_self: Barriers, _bank: str, _operation: str, given: RetainItem, *_: Any, **__: Any) -> Any:
        return given, ()

    patch.setattr(Barriers, "item", item)


def without_plain_values(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mapping, "_plain", lambda *_: True)


LONG = json.dumps({"issue": {"project": "x" * 2_000}})


@pytest.mark.parametrize(
    ("switch_off", "held"),
    [
        (without_a_second_look, test_tags_by_rule_are_held_to_the_limits),
        (without_barriers, test_what_is_mapped_passes_the_barriers),
        (without_plain_values, partial(test_what_a_path_cannot_give_is_told_of, LONG, "'project'")),
    ],
)
async def test_without_the_guard_the_test_fails(
    monkeypatch: pytest.MonkeyPatch, switch_off: Callable[[pytest.MonkeyPatch], None], held: Callable[[], Any]
) -> None:
    """The control: each of the tests above, with what it is about taken away."""
    await held()
    switch_off(monkeypatch)
    with pytest.raises((AssertionError, ValidationError, pytest.fail.Exception)):
        await held()
