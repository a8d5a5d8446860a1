"""Traces over the wire: the caller's is continued, lines of the log name it, and spans reach a collector."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest
import structlog
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from astrocyte.api.requests import Retain
from astrocyte.app import App
from astrocyte.cli.logs import to_standard_error
from astrocyte.config import Settings
from astrocyte.model import Caller, RetainItem
from astrocyte.v1 import memory_pb2
from harness.http_requests import http
from harness.serving import serving
from harness.spans import TRACED, Spans, no_exporter

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"
PARENT = (("traceparent", f"00-{TRACE_ID}-{SPAN_ID}-01"),)
ITEM = memory_pb2.RetainRequest(bank_id="family", content="Write to mara@example.org.")


async def test_the_trace_of_the_caller_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    no_exporter(monkeypatch)
    async with serving(observability=TRACED) as served:
        spans = Spans(served.app)
        await served.memory.Retain(ITEM, metadata=PARENT)
        call = spans.named("astrocyte.v1.MemoryService/Retain")
        assert call.parent is not None
        assert call.parent.is_remote
        assert f"{call.parent.span_id:016x}" == SPAN_ID
        assert {f"{span.context.trace_id:032x}" for span in spans.ended if span.context} == {TRACE_ID}
        assert spans.tree()["astrocyte.retain"] == call.name
        assert call.attributes == {
            "rpc.system": "grpc",
            "rpc.service": "astrocyte.v1.MemoryService",
            "rpc.method": "Retain",
            "rpc.grpc.status_code": "OK",
        }


async def test_a_call_without_one_begins_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    no_exporter(monkeypatch)
    async with serving(observability=TRACED) as served:
        spans = Spans(served.app)
        await served.memory.Retain(ITEM)
        await served.memory.Retain(ITEM, metadata=(("traceparent", "nonsense"),))
        calls = [span for span in spans.ended if span.name.endswith("/Retain")]
        assert [span.parent for span in calls] == [None, None]


async def test_a_refused_call_says_the_code_whoever_refused_it(monkeypatch: pytest.MonkeyPatch) -> None:
    no_exporter(monkeypatch)
    async with serving(observability=TRACED, auth={"required": True}) as served:
        spans = Spans(served.app)
        with pytest.raises(grpc.aio.AioRpcError):
            await served.memory.Recall(memory_pb2.RecallRequest(bank_id="family", query="oboe"))
        call = spans.named("astrocyte.v1.MemoryService/Recall")
        assert call.attributes
        assert call.attributes["rpc.grpc.status_code"] == "UNAUTHENTICATED"
        assert [span.name for span in spans.ended] == [call.name]


async def test_streams_have_spans_too(monkeypatch: pytest.MonkeyPatch) -> None:
    no_exporter(monkeypatch)
    async with serving(observability=TRACED) as served:
        spans = Spans(served.app)
        item = memory_pb2.StreamRetainRequest(bank_id="family", item=memory_pb2.RetainItem(content="Ivo paints."))
        async for _ in served.memory.StreamRetain(iter([item]), metadata=PARENT):
            pass
        question = memory_pb2.ReflectRequest(bank_id="family", query="who paints?")
        async for _ in served.memory.StreamReflect(memory_pb2.StreamReflectRequest(reflect=question), metadata=PARENT):
            pass
        # The handlers end after their callers have heard all.
        await served.server.stop(5)
        tree = spans.tree()
        assert tree["astrocyte.retain"] == "astrocyte.v1.MemoryService/StreamRetain"
        assert tree["astrocyte.reflect"] == "astrocyte.v1.MemoryService/StreamReflect"
        assert {f"{span.context.trace_id:032x}" for span in spans.ended if span.context} == {TRACE_ID}


async def test_a_call_over_http_has_a_span_with_its_route(monkeypatch: pytest.MonkeyPatch) -> None:
    no_exporter(monkeypatch)
    async with serving(observability=TRACED, gateway={"port": 0}) as served, http(served) as client:
        spans = Spans(served.app)
        item = {"bank_id": "family", "content": "Write to mara@example.org."}
        await client.post("/v1/retain", json=item, headers=dict(PARENT))
        call = spans.named("POST /v1/retain")
        assert call.parent is not None
        assert f"{call.parent.span_id:016x}" == SPAN_ID
        assert spans.tree()["astrocyte.retain"] == call.name
        assert call.attributes == {
            "http.request.method": "POST",
            "http.route": "/v1/retain",
            "http.response.status_code": 200,
            "rpc.service": "astrocyte.v1.MemoryService",
            "rpc.method": "Retain",
        }
        await client.get("/v1/banks/private-name/memories")
        refused = spans.named("GET /v1/banks/{bank_id}/memories")
        assert refused.attributes
        assert refused.attributes["http.response.status_code"] == 404
        # A file of the server, whose path is in no folder for archives.
        await client.post("/v1/export", json={"bank_id": "family", "path": "/private/name.jsonl"})
        moved = spans.named("POST /v1/export")
        assert moved.attributes == {
            "http.request.method": "POST",
            "http.route": "/v1/export",
            "http.response.status_code": 422,
        }


async def test_a_client_tells_its_trace_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    no_exporter(monkeypatch)
    async with serving(observability=TRACED) as served:
        spans, tracing = Spans(served.app), served.app.telemetry.tracing
        assert tracing
        with tracing.span("agent.turn"):
            await served.backend.call(Caller(), Retain("family", RetainItem("Mara plays the oboe.")))
        await served.backend.call(Caller(), Retain("family", RetainItem("Ivo paints boats.")))
        first, second = [span for span in spans.ended if span.name.endswith("/Retain")]
        turn = spans.named("agent.turn").context
        assert turn is not None
        assert first.parent is not None
        assert first.parent.span_id == turn.span_id
        assert second.parent is None


async def test_lines_of_the_log_name_trace_and_span(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    no_exporter(monkeypatch)
    to_standard_error(0)
    async with serving(observability=TRACED) as served:
        spans = Spans(served.app)
        await served.memory.Retain(ITEM, metadata=PARENT)
        structlog.get_logger("elsewhere").info("outside")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    (told,) = [line for line in lines if line["event"] == "astrocyte.policy.pii_redacted"]
    operation = spans.named("astrocyte.retain").context
    assert operation is not None
    assert (told["trace_id"], told["span_id"]) == (TRACE_ID, f"{operation.span_id:016x}")
    assert (told["bank_id"], told["pattern"], told["action"]) == ("family", "email", "redact")
    assert told["provider"] == served.app.settings.vector_store
    (outside,) = [line for line in lines if line["event"] == "outside"]
    assert "trace_id" not in outside


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes spans, as collectors of OpenTelemetry do."""

    def __init__(self) -> None:
        self.services: set[str] = set()
        self.names: list[str] = []

    def Export(  # noqa: N802 - the name of the call
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        for resource in request.resource_spans:
            self.services |= {
                pair.value.string_value for pair in resource.resource.attributes if pair.key == "service.name"
            }
            self.names += [span.name for scope in resource.scope_spans for span in scope.spans]
        return trace_service_pb2.ExportTraceServiceResponse()


@contextmanager
def collecting(collector: Collector) -> Iterator[int]:
    server = grpc.server(ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(collector, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait()


async def test_spans_reach_a_collector_by_the_common_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_TRACES_EXPORTER", raising=False)
    collector = Collector()
    with collecting(collector) as port:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        app = App(Settings.from_mapping({"vector_store": "in_memory", "observability": TRACED}))
        await app.backend.call(Caller(), Retain("family", RetainItem("Mara plays the oboe.")))
        await app.close()
    assert collector.services == {"astrocyte"}
    assert "astrocyte.retain" in collector.names
