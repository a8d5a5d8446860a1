"""Spans: their names and attributes are the promised ones, and nothing that a caller wrote is in them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from astrocyte import Astrocyte
from astrocyte.api.requests import (
    BatchRecall,
    BatchRetain,
    Forget,
    GetServerInfo,
    History,
    Recall,
    Reflect,
    Retain,
    StreamReflect,
    Watch,
)
from astrocyte.app import App
from astrocyte.config import Settings
from astrocyte.config.loading.environment import span_exporters
from astrocyte.core import count_tokens
from astrocyte.errors import BankNotFound, ConfigError, ValidationError
from astrocyte.model import Caller, ForgetSelector, RecallQuery, ReflectQuery, ReflectResult, RetainItem
from astrocyte.policy import events
from astrocyte.policy.gate import Gate
from astrocyte.policy.observability.tracing import Tracing
from astrocyte.providers.engines import EngineCapabilities
from harness.engines import Shelf, hybrid_app
from harness.spans import TRACED, Spans, no_exporter

ME = Caller()
# As documented.
RETAIN = {"bank_id", "provider", "content_bytes", "pii_detected", "dedup_hit", "policy.actions_taken"}
RECALL = {"bank_id", "provider", "query_tokens", "result_count", "result_tokens", "truncated", "fallback_used"}
REFLECT = {"bank_id", "provider", "native_reflect", "llm_tokens_used"}


def told(span: Any) -> dict[str, Any]:
    return {name.removeprefix("astrocyte."): value for name, value in span.attributes.items()}


@pytest.fixture(autouse=True)
def _no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    no_exporter(monkeypatch)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "llm_provider": "mock", "observability": TRACED}))
    yield app
    await app.close()


@pytest.fixture
def spans(app: App) -> Spans:
    return Spans(app)


async def test_without_the_setting_nothing_is_laid_around_anything() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory"}))
    assert app.telemetry.tracing is None
    assert app.backend is app.gate
    assert type(app.gate) is Gate
    assert type(app.gate._pipelines.recall).__name__ == "RecallPipeline"
    assert type(app.providers.spaces.default).__name__ == "Static"
    await app.close()


async def test_a_retain_has_its_attributes_and_its_stages_below_it(app: App, spans: Spans) -> None:
    item = RetainItem("Write to mara@example.org about the oboe.")
    await app.backend.call(ME, Retain("family", item))
    span = spans.named("astrocyte.retain")
    assert set(told(span)) >= RETAIN
    assert told(span)["bank_id"] == "family"
    assert told(span)["provider"] == "in_memory"
    assert told(span)["content_bytes"] == len(item.content)
    assert told(span)["pii_detected"] is True
    assert told(span)["dedup_hit"] is False
    assert told(span)["policy.actions_taken"] == ("pii_redacted",)
    assert spans.tree()["provider.retain"] == "astrocyte.retain"
    assert spans.tree()["retain.prepare"] == "astrocyte.retain"
    assert [event.name for event in span.events] == ["astrocyte.policy.pii_redacted"]
    spans.clear()
    await app.backend.call(ME, Retain("family", item))
    assert told(spans.named("astrocyte.retain"))["dedup_hit"] is True


async def test_batches_have_the_name_of_what_they_do(app: App, spans: Spans) -> None:
    await app.backend.call(ME, BatchRetain("family", [RetainItem("one boat"), RetainItem("two boats")]))
    assert told(spans.named("astrocyte.retain"))["content_bytes"] == len("one boattwo boats")
    spans.clear()
    await app.backend.call(ME, BatchRecall([RecallQuery("boats", "family"), RecallQuery("one", "family")]))
    assert told(spans.named("astrocyte.recall"))["result_count"] == 4


@pytest.mark.parametrize("include_trace", [True, False])
async def test_a_recall_has_its_attributes_and_its_stages_below_it(
    app: App, spans: Spans, *, include_trace: bool
) -> None:
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    spans.clear()
    result = await app.backend.call(
        ME, Recall(RecallQuery("who plays the oboe?", "family", include_trace=include_trace))
    )
    assert (result.trace is not None) is include_trace
    assert told(spans.named("astrocyte.recall")) == {
        "bank_id": "family",
        "provider": "in_memory",
        "query_tokens": count_tokens("who plays the oboe?"),
        "result_count": 1,
        "result_tokens": result.hits[0].token_count,
        "truncated": False,
        "fallback_used": False,
        "policy.actions_taken": (),
    }
    tree = spans.tree()
    assert tree["provider.recall"] == "astrocyte.recall"
    assert {tree[name] for name in ("provider.embed", "recall.core", "recall.hydrate")} == {"provider.recall"}
    parent, core = spans.named("provider.recall"), spans.named("recall.core")
    assert (parent.start_time or 0) <= (core.start_time or 0) <= (core.end_time or 0)
    assert told(spans.named("provider.embed"))["gen_ai.request.model"].startswith("static")


async def test_history_counts_as_a_recall_of_its_own(app: App, spans: Spans) -> None:
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    await app.backend.call(ME, History(RecallQuery("oboe", "family", as_of=datetime.now(UTC))))
    assert set(told(spans.named("astrocyte.history"))) >= RECALL


async def test_a_reflect_has_its_attributes_and_the_model_below_it(app: App, spans: Spans) -> None:
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    spans.clear()
    await app.backend.call(ME, Reflect(ReflectQuery("who plays the oboe?", "family")))
    assert set(told(spans.named("astrocyte.reflect"))) >= REFLECT
    assert told(spans.named("astrocyte.reflect"))["native_reflect"] is False
    tree = spans.tree()
    assert tree["astrocyte.fallback_reflect"] == "astrocyte.reflect"
    assert tree["provider.complete"] == tree["provider.recall"] == "astrocyte.fallback_reflect"


async def test_a_reflect_in_pieces_has_the_same_spans(app: App, spans: Spans) -> None:
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    spans.clear()
    current: list[bool] = []
    last: object = None
    async for piece in app.backend.stream(ME, StreamReflect(ReflectQuery("who plays the oboe?", "family"))):
        # Whoever looks at a piece is not part of the span.
        current.append(trace.get_current_span().get_span_context().is_valid)
        last = piece
    assert isinstance(last, ReflectResult)
    assert not any(current)
    assert set(told(spans.named("astrocyte.reflect"))) >= REFLECT | {"policy.actions_taken"}
    tree = spans.tree()
    assert tree["provider.complete"] == "astrocyte.fallback_reflect"
    assert tree["astrocyte.fallback_reflect"] == "astrocyte.reflect"


@pytest.mark.parametrize("fails", [False, True])
async def test_an_engine_has_spans_of_its_own_and_says_that_it_answered(*, fails: bool) -> None:
    shelf = Shelf(EngineCapabilities(reflect=True), failure=ValueError("canary") if fails else None)
    app = hybrid_app(shelf, settings={"observability": TRACED}, reflect_target="engine")
    spans = Spans(app)
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    await app.backend.call(ME, Recall(RecallQuery("who plays the oboe?", "family")))
    engine = [span for span in spans.ended if span.name == "provider.recall" and told(span).get("provider") == "shelf"]
    assert len(engine) == 1
    spans.clear()
    await app.backend.call(ME, Reflect(ReflectQuery("who plays the oboe?", "family")))
    await app.close()
    assert told(spans.named("astrocyte.reflect"))["native_reflect"] is not fails
    tree = spans.tree()
    assert tree["provider.reflect"] == "astrocyte.reflect"
    assert ("astrocyte.fallback_reflect" in tree) is fails
    assert "canary" not in "".join(span.to_json() for span in spans.ended)


async def test_a_stream_that_nobody_reads_to_the_end_ends_its_span(app: App, spans: Spans) -> None:
    await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    changes: Any = app.backend.stream(ME, Watch("family", after_position=0))
    await anext(changes)
    await changes.aclose()
    assert spans.named("astrocyte.watch").status.status_code is StatusCode.UNSET


async def test_a_failure_says_its_reason_and_no_message(app: App, spans: Spans) -> None:
    with pytest.raises(BankNotFound):
        await app.backend.call(ME, Recall(RecallQuery("canary", "missing")))
    span = spans.named("astrocyte.recall")
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description == "BANK_NOT_FOUND"
    assert told(span)["error.type"] == "BANK_NOT_FOUND"
    assert span.events == ()


async def test_what_cannot_be_a_bank_is_in_no_span(app: App, spans: Spans) -> None:
    with pytest.raises(ValidationError):
        await app.backend.call(ME, Recall(RecallQuery("oboe", "canary bank")))
    with pytest.raises(ValidationError):
        await app.backend.call(ME, Forget("canary\nbank", ForgetSelector(tags=("canary",))))
    assert [span.name for span in spans.ended] == ["astrocyte.recall", "astrocyte.forget"]
    assert "canary" not in "".join(span.to_json() for span in spans.ended)


async def test_it_goes_below_the_span_of_its_caller(app: App, spans: Spans) -> None:
    assert app.telemetry.tracing
    with app.telemetry.tracing.span("agent.turn"):
        await app.backend.call(ME, Retain("family", RetainItem("Mara plays the oboe.")))
    assert spans.tree()["astrocyte.retain"] == "agent.turn"


async def test_a_front_has_every_operation_of_a_backend(app: App) -> None:
    assert app.backend is not app.gate
    info = await app.backend.call(ME, GetServerInfo())
    assert info.store == "in_memory"


async def test_recovery_is_marked_wherever_it_comes(app: App, spans: Spans) -> None:
    events.emit("circuit_closed", provider="openai", wait_seconds=0)
    span = spans.named("astrocyte.recovery")
    assert [event.name for event in span.events] == ["astrocyte.policy.circuit_closed"]
    spans.clear()
    await app.close()
    events.emit("circuit_closed", provider="openai", wait_seconds=0)
    assert spans.ended == []


async def test_calls_at_once_keep_their_spans_apart(app: App, spans: Spans) -> None:
    items = [RetainItem(f"boat {number}, of {number}@example.org") for number in range(8)]
    await asyncio.gather(
        *(app.backend.call(ME, Retain(f"bank-{number % 4}", item)) for number, item in enumerate(items))
    )
    retains = [span for span in spans.ended if span.name == "astrocyte.retain"]
    assert len({span.context.trace_id for span in retains if span.context}) == 8
    assert {len(span.events) for span in retains} == {1}


async def test_a_program_that_has_set_up_tracing_gets_the_spans() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracing = Tracing("sqlite", provider)
    with tracing.span("here"):
        pass
    tracing.close()
    # It is not ours to shut down.
    with provider.get_tracer("theirs").start_as_current_span("there"):
        pass
    assert [span.name for span in exporter.get_finished_spans()] == ["here", "there"]


def test_without_the_extra_the_start_fails_and_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    late = ("opentelemetry", "astrocyte.policy.observability.trac")
    for name in [name for name in sys.modules if name.startswith(late)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"otel_enabled.* needs opentelemetry: pip install 'astrocyte-grpc\[teleme"):
        App(Settings.from_mapping({"vector_store": "in_memory", "observability": TRACED}))


def test_an_exporter_that_does_not_exist_is_a_wrong_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "carrier_pigeon")
    with pytest.raises(
        ConfigError, match="OTEL_TRACES_EXPORTER: there is no exporter 'carrier_pigeon'; expected one of none, otlp, "
    ):
        App(Settings.from_mapping({"vector_store": "in_memory", "observability": TRACED}))


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({}, ("otlp_proto_grpc",)),
        ({"OTEL_TRACES_EXPORTER": "none"}, ()),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, ("console", "otlp_proto_grpc")),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, ("otlp_proto_http",)),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
            ("otlp_proto_grpc",),
        ),
    ],
)
def test_the_exporter_is_what_the_common_variables_say(variables: dict[str, str], names: tuple[str, ...]) -> None:
    assert span_exporters(variables) == names


def test_a_protocol_that_is_none_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="OTEL_EXPORTER_OTLP_PROTOCOL: expected one of grpc, http/protobuf, got 'http/json'"
    ):
        span_exporters({"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})


async def test_the_python_api_makes_the_same_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    async with Astrocyte.from_config_dict({"vector_store": "in_memory", "observability": TRACED}) as brain:
        with provider.get_tracer("agent").start_as_current_span("agent.turn"):
            await brain.retain("Mara plays the oboe.", bank_id="family")
    found = {span.name: span for span in exporter.get_finished_spans()}
    parent, context = found["astrocyte.retain"].parent, found["agent.turn"].context
    assert parent is not None
    assert context is not None
    assert parent.span_id == context.span_id
