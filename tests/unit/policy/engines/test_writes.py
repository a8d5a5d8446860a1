"""Where memories go, and how they are forgotten, where an engine stands beside the pipeline."""

from __future__ import annotations

from typing import Any

import pytest

from astrocyte import Astrocyte, HybridEngineProvider, connect
from astrocyte.api.requests import (
    BatchRetain,
    DeleteBank,
    Forget,
    ListMemories,
    PlaceHold,
    Recall,
    Retain,
    StreamRetain,
    UpdateMemory,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.errors import (
    CapabilityNotSupported,
    ConfigError,
    FailedPrecondition,
    LegalHoldActive,
    ProviderUnavailable,
    StoreError,
    ValidationError,
)
from astrocyte.model import Caller, ForgetSelector, RecallQuery, RetainItem, RetainResult
from astrocyte.pipeline.orchestrator import PipelineOrchestrator
from astrocyte.providers.engines import EngineCapabilities
from harness.engines import Shelf, hybrid_app

ANN = Caller(principal="user:ann")
COFFEE = RetainItem("The coffee is in the kitchen; ask ann@example.com.", tags=("a",))
REDACTED = "The coffee is in the kitchen; ask [EMAIL_REDACTED]."


async def memories(app: App) -> list[str]:
    return [memory.content for memory in (await app.gate.call(ANN, ListMemories("notes"))).memories]


async def test_a_retain_goes_where_the_settings_say_and_past_the_barriers() -> None:
    for target, here, there in (("pipeline", 1, 0), ("engine", 0, 1), ("both", 1, 1)):
        shelf = Shelf()
        app = hybrid_app(shelf, retain_target=target)
        try:
            result = await app.gate.call(ANN, Retain("notes", COFFEE))
            assert result.stored
            assert result.retention_action == "created"
            assert any("email" in warning for warning in result.warnings)
            assert (await memories(app), shelf.texts) == ([REDACTED] * here, [REDACTED] * there)
            found = await app.gate.call(ANN, Recall(RecallQuery("coffee", "notes")))
            assert [hit.text for hit in found.hits] == [REDACTED]
        finally:
            await app.close()


@pytest.mark.parametrize("target", ["engine", "both"])
async def test_batches_and_streams_go_there_too_and_repeats_are_stored_once(target: str) -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, retain_target=target)
    try:
        items = [RetainItem("one"), RetainItem("two")]
        for _ in range(2):
            await app.gate.call(ANN, BatchRetain("notes", items, request_id="batch"))
            await app.gate.call(ANN, StreamRetain("notes", [RetainItem("three")], request_ids=["three"]))
            await app.gate.call(ANN, Retain("notes", RetainItem("four"), request_id="four"))
        assert sorted(shelf.texts) == ["four", "one", "three", "two"]
    finally:
        await app.close()


async def test_a_copy_that_an_engine_missed_is_told_and_made_by_the_repeated_call() -> None:
    shelf = Shelf(failure=RuntimeError("secret"))
    app = hybrid_app(shelf, retain_target="both")
    strict = hybrid_app(shelf, retain_target="both", require_both=True)
    try:
        result = await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        assert (result.stored, result.warnings) == (True, ("engine: shelf does not hold it yet (RuntimeError)",))
        with pytest.raises(ProviderUnavailable):
            await strict.gate.call(ANN, Retain("notes", RetainItem("tea"), request_id="one"))
        (outcome,) = await strict.gate.call(ANN, StreamRetain("notes", [RetainItem("milk")], request_ids=["two"]))
        assert isinstance(outcome, ProviderUnavailable)
        shelf.failure = None
        await strict.gate.call(ANN, Retain("notes", RetainItem("tea"), request_id="one"))
        (outcome,) = await strict.gate.call(ANN, StreamRetain("notes", [RetainItem("milk")], request_ids=["two"]))
        assert isinstance(outcome, RetainResult)
        await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        assert sorted(shelf.texts) == ["milk", "tea", "tea"]
    finally:
        await app.close()
        await strict.close()


async def test_an_engine_alone_that_fails_fails_the_retain() -> None:
    shelf = Shelf(failure=StoreError("secret"))
    app = hybrid_app(shelf, retain_target="engine")
    try:
        with pytest.raises(ProviderUnavailable) as raised:
            await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        assert raised.value.metadata == {"engine": "shelf", "cause": "STORE_FAILED"}
        with pytest.raises(FailedPrecondition, match="passed 1 servers"):
            await app.gate.call(Caller(principal="user:ann", hops=1), Retain("notes", RetainItem("tea")))
        with pytest.raises(ValidationError):
            await app.gate.call(ANN, Retain("notes", RetainItem(" ")))
        assert (await app.gate.call(ANN, Retain("notes", RetainItem("tea"), validate_only=True))).stored is False
    finally:
        await app.close()


@pytest.mark.parametrize("compliance", [False, True])
async def test_forgetting_reaches_both_sides_and_says_what_each_did(*, compliance: bool) -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, retain_target="both")
    try:
        kept = await app.gate.call(ANN, Retain("notes", RetainItem("tea", tags=("a",))))
        shelf.put("only there", tags=("a",))
        selector = ForgetSelector(tags=("a",))
        preview = await app.gate.call(ANN, Forget("notes", selector, dry_run=True))
        assert [(one.engine, one.outcome, one.reason) for one in preview.engines] == [("shelf", "not_asked", "dry_run")]
        assert len(shelf.rows) == 2
        result = await app.gate.call(ANN, Forget("notes", selector, compliance=compliance))
        assert (result.deleted_count, result.memory_ids) == (1, (kept.memory_id,))
        assert [(one.engine, one.outcome, one.deleted_count) for one in result.engines] == [("shelf", "answered", 2)]
        assert (await memories(app), shelf.texts) == ([], [])
        again = await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        assert (await app.gate.call(ANN, Forget("notes", ForgetSelector(memory_ids=(again.memory_id or "",))))).engines[
            0
        ].deleted_count == 1
        assert shelf.texts == []
    finally:
        await app.close()


@pytest.mark.parametrize("compliance", [False, True])
async def test_nothing_is_acknowledged_as_forgotten_while_an_engine_may_hold_it(*, compliance: bool) -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, retain_target="both")
    try:
        kept = await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        selector = ForgetSelector(memory_ids=(kept.memory_id or "",))
        shelf.failure = RuntimeError()
        with pytest.raises(ProviderUnavailable):
            await app.gate.call(ANN, Forget("notes", selector, compliance=compliance, request_id="go"))
        assert await memories(app) == []
        shelf.failure = None
        result = await app.gate.call(ANN, Forget("notes", selector, compliance=compliance, request_id="go"))
        assert (result.deleted_count, result.engines[0].deleted_count, shelf.texts) == (1, 1, [])
        assert (result.receipt is not None) == compliance
    finally:
        await app.close()


async def test_a_legal_hold_keeps_both_sides() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, retain_target="both")
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        await app.gate.call(ANN, PlaceHold("notes", reason="a case"))
        for work in (
            app.gate.call(ANN, Forget("notes", ForgetSelector(scope="all"), compliance=True)),
            app.gate.call(ANN, DeleteBank("notes")),
        ):
            with pytest.raises(LegalHoldActive):
                await work
        assert shelf.texts == ["tea"]
    finally:
        await app.close()


async def test_an_engine_that_is_read_only_is_read_only() -> None:
    shelf = Shelf(able=EngineCapabilities(retain=False, forget=False))
    app = hybrid_app(shelf, read_only=True)
    try:
        shelf.put("theirs")
        await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        result = await app.gate.call(ANN, Forget("notes", ForgetSelector(scope="all"), compliance=True))
        assert [(one.outcome, one.reason) for one in result.engines] == [("not_asked", "read_only")]
        await app.gate.call(ANN, DeleteBank("notes"))
        assert shelf.texts == ["theirs"]
        assert {name for name, _ in shelf.calls} <= {"recall"}
    finally:
        await app.close()


async def test_a_bank_that_is_deleted_is_erased_there() -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, retain_target="both")
    try:
        await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        shelf.failure = RuntimeError()
        with pytest.raises(ProviderUnavailable):
            await app.gate.call(ANN, DeleteBank("notes", request_id="go"))
        shelf.failure = None
        assert await app.gate.call(ANN, DeleteBank("notes", request_id="go")) == 1
        assert shelf.texts == []
    finally:
        await app.close()


async def test_an_update_that_an_engine_missed_fails_where_both_are_required() -> None:
    from astrocyte.model import MemoryUpdate

    shelf = Shelf()
    app = hybrid_app(shelf, retain_target="both", require_both=True)
    try:
        kept = await app.gate.call(ANN, Retain("notes", RetainItem("tea")))
        update = MemoryUpdate(kept.memory_id or "", frozenset({"content"}), content="coffee")
        shelf.failure = RuntimeError()
        with pytest.raises(ProviderUnavailable):
            await app.gate.call(ANN, UpdateMemory("notes", update, request_id="go"))
        shelf.failure = None
        await app.gate.call(ANN, UpdateMemory("notes", update, request_id="go"))
        assert shelf.texts == ["coffee"]
    finally:
        await app.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"retain_target": "elsewhere"}, "retain_target"),
        ({"retain_target": "engine", "read_only": True}, "read_only"),
        ({"banks": ()}, "banks"),
        ({"colour": "red"}, "colour"),
        ({"engine_recall_weight": 0.0, "pipeline_recall_weight": 0.0}, "are both 0"),
        ({"retain_target": "both"}, "does not support retain"),
        ({}, "does not support forget"),
        ({"read_only": True, "reflect_target": "engine"}, "does not support reflect"),
    ],
)
async def test_settings_that_cannot_be_fulfilled_are_refused(options: dict[str, Any], message: str) -> None:
    shelf = Shelf(able=EngineCapabilities(retain=False, forget=False))
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    try:
        with pytest.raises(ConfigError, match=message):
            app.providers.engines.attach(HybridEngineProvider(shelf, name="shelf", options=options))
    finally:
        await app.close()


async def test_a_name_is_taken_once() -> None:
    app = hybrid_app(Shelf())
    try:
        for name in ("shelf", "pipeline"):
            with pytest.raises(ConfigError, match="in use"):
                app.providers.engines.attach(HybridEngineProvider(Shelf(), name=name))
    finally:
        await app.close()


async def test_a_program_gives_its_brain_an_engine() -> None:
    engine = Shelf()
    pipeline = PipelineOrchestrator(vector_store=..., llm_provider=...)
    hybrid = HybridEngineProvider(
        engine=engine,
        pipeline=pipeline,
        retain_target="engine",
        engine_recall_weight=1.0,
        pipeline_recall_weight=1.0,
    )
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    brain.set_engine_provider(hybrid)
    try:
        await brain.retain("tea at five", bank_id="notes")
        assert engine.texts == ["tea at five"]
        result = await brain.recall("tea", bank_id="notes", include_sources=True)
        assert [hit.source for hit in result.hits] == ["tier2_engine"]
        (described,) = await brain.list_engines()
        assert (described.name, described.provider, described.healthy) == ("engine", "Shelf", True)
        wrong = HybridEngineProvider(Shelf(), PipelineOrchestrator(vector_store="sqlite"), name="other")
        with pytest.raises(ConfigError, match="vector_store"):
            brain.set_engine_provider(wrong)
    finally:
        await brain.close()
    remote = connect("localhost:1")
    with pytest.raises(CapabilityNotSupported):
        remote.set_engine_provider(hybrid)
    await remote.close()


async def test_a_bare_engine_takes_the_place_of_the_pipeline() -> None:
    engine = Shelf()
    brain = Astrocyte.from_config_dict({"vector_store": "in_memory"})
    brain.set_engine_provider(engine)
    try:
        await brain.retain("tea at five", bank_id="notes")
        result = await brain.recall("tea", bank_id="notes")
        assert result.trace is not None
        assert [(one.engine, one.outcome, one.reason) for one in result.trace.engines] == [
            ("pipeline", "not_asked", "weight"),
            ("engine", "answered", ""),
        ]
    finally:
        await brain.close()


@pytest.mark.parametrize("compliance", [False, True])
async def test_memories_that_an_engine_alone_keeps_count_as_forgotten(*, compliance: bool) -> None:
    shelf = Shelf()
    app = hybrid_app(shelf, retain_target="engine")
    try:
        for text in ("tea", "jam", "bread"):
            await app.gate.call(ANN, Retain("notes", RetainItem(text, tags=("a",))))
        result = await app.gate.call(ANN, Forget("notes", ForgetSelector(tags=("a",)), compliance=compliance))
        assert (result.deleted_count, shelf.texts) == (3, [])
    finally:
        await app.close()
