"""A secret sent through every call and into every failure comes out in no log, span, metric, hook or error.

The calls come from the descriptors of the services, and the secret goes into each of their fields in turn. Names are
said back in errors to who sent them: `NAMES` lists them, and all other fields are content.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
import structlog
from google.protobuf.message_factory import GetMessageClass
from opentelemetry import trace

from astrocyte import HookEvent, HookKind
from astrocyte.api.requests import Recall
from astrocyte.errors import ValidationError
from astrocyte.policy.gate import Gate
from astrocyte.policy.observability import hooks
from astrocyte.providers.messages import Completion, Prompt
from astrocyte.v1 import memory_pb2
from doubles.remote_embedders import RemoteEmbedder
from harness.calls import METHODS
from harness.serving import Served, serving
from harness.spans import no_exporter
from integration.server.test_server_fuzz import ACCESS, valid_requests, watched
from oracles.canary import CANARY, WORD, Sinks, answer_tells, error_tells, with_canary

OBSERVED = {"prometheus_enabled": True, "otel_enabled": True, "metrics_port": 0}
# The last parts of the paths of what an error may say back: ids, and words of a closed list.
NAMES = {
    "agent_id",
    "bank_id",
    "directive_id",
    "embedding_model",
    "entity_a",
    "entity_b",
    "entity_id",
    "entity_ids",
    "entity_type",
    "entity_types",
    "etag",
    "evidence",
    "extraction_profile",
    "hold_id",
    "into_id",
    "key_id",
    "link_id",
    "link_type",
    "link_types",
    "memory_id",
    "memory_ids",
    "model_id",
    "observation_id",
    "operation_id",
    "page_id",
    "paths",
    "prefix",
    "request_id",
    "scope",
    "source_id",
    "source_ids",
    "target_id",
}
# Keys of mappings likewise; one of metadata where the settings refuse it.
NAMED_KEYS = ("weights.key", "layer_weights.key", "metadata.key")
# Personal data, so that barriers have something to find.
MAIL = "canary4471@example.org sings"
Metadata = Sequence[tuple[str, str]]


class Watched:
    """A server and all that its operators see of it."""

    def __init__(self, served: Served, sinks: Sinks) -> None:
        self.served = served
        self.sinks = sinks
        self.codes: set[str] = set()
        # Paths of the fields that an error said back.
        self.told: set[str] = set()

    async def send_all(self, secret: str = CANARY, metadata: Metadata = (), calls: set[str] | None = None) -> None:
        """The secret in every field of every call, or of some."""
        kept = await self._first_memory()
        for name, valid in valid_requests(kept).items():
            if calls is None or name in calls:
                for path, message in with_canary(valid, secret):
                    await self.send(name, path, message.SerializeToString(), metadata)

    async def send(self, name: str, path: str, payload: bytes, metadata: Metadata = ()) -> None:
        """One call."""
        method = METHODS[name]
        route = f"/{method.containing_service.full_name}/{name}"
        channel: Any = self.served.channel
        sent = {"timeout": 20, "metadata": metadata}
        try:
            if method.client_streaming:
                read = GetMessageClass(method.output_type).FromString
                stream = channel.stream_stream(route, response_deserializer=read)
                async for answer in stream(iter([payload]), **sent):
                    if answer_tells(answer):
                        self.told.add(path)
            elif name == "Watch":
                await watched(
                    lambda *args, **kwargs: channel.unary_stream(route)(*args, **kwargs, metadata=metadata), payload
                )
            elif method.server_streaming:
                async for _ in channel.unary_stream(route)(payload, **sent):
                    pass
            else:
                await channel.unary_unary(route)(payload, **sent)
        except grpc.aio.AioRpcError as error:
            self.codes.add(error.code().name)
            if error_tells(error):
                self.told.add(path)
        else:
            self.codes.add("OK")

    @property
    def content_told(self) -> set[str]:
        """Paths of the fields that an error said back and should not have."""
        return {path for path in self.told if path.rpartition(".")[2] not in NAMES and not path.endswith(NAMED_KEYS)}

    async def _first_memory(self) -> str:
        request = memory_pb2.RetainRequest(bank_id="family", content="Mara cannot eat sesame.")
        try:
            return str((await self.served.memory.Retain(request)).memory_id)
        except grpc.aio.AioRpcError:
            return "mem_" + "0" * 32


@pytest.fixture(autouse=True)
def _no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    no_exporter(monkeypatch)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[HookEvent]:
    """Events for the hooks of the next server."""
    heard: list[HookEvent] = []

    class Point:
        name = value = "ear"

        def load(self) -> Any:
            return lambda on: [on(kind, heard.append) for kind in HookKind]

    monkeypatch.setattr(hooks, "entry_points", lambda **_: [Point()])
    return heard


@asynccontextmanager
async def watching(caplog: pytest.LogCaptureFixture, heard: list[HookEvent], **settings: Any) -> AsyncIterator[Watched]:
    # It tells of itself at every call. This comes first, for it narrows what is caught of everybody.
    caplog.set_level(logging.INFO, "grpc._cython.cygrpc")
    caplog.set_level(logging.DEBUG)
    with structlog.testing.capture_logs() as lines:
        async with serving(observability=OBSERVED, hooks={"enabled": ["ear"]}, **settings) as served:
            sinks = Sinks(served.app, lines, caplog.records, heard)
            watched = Watched(served, sinks)
            yield watched
        # And whatever the end told.
        assert sinks.leaks() == []
        assert watched.content_told == set()
    assert sinks.spans > 0


async def test_every_field_of_every_call(caplog: pytest.LogCaptureFixture, heard: list[HookEvent]) -> None:
    async with watching(caplog, heard, **ACCESS) as watched:
        await watched.send_all()
        await watched.send_all(MAIL)
        assert watched.codes >= {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "ABORTED", "ALREADY_EXISTS"}
        # The secret went in, and out to where it belongs.
        found = await watched.served.memory.Recall(memory_pb2.RecallRequest(bank_id="family", query=CANARY))
        assert WORD in found.SerializeToString()
        assert {event.type for event in heard} >= {"on_retain", "on_recall", "on_reflect", "on_pii_detected"}


async def test_who_may_nothing(caplog: pytest.LogCaptureFixture, heard: list[HookEvent]) -> None:
    async with watching(caplog, heard, access_control={"enabled": True}) as watched:
        await watched.send_all()
        assert "PERMISSION_DENIED" in watched.codes


async def test_credentials(caplog: pytest.LogCaptureFixture, heard: list[HookEvent]) -> None:
    claims = [("authorization", f"Bearer {CANARY}")]
    async with watching(caplog, heard, auth={"required": True}) as watched:
        await watched.send_all(metadata=claims)
        assert watched.codes == {"UNAUTHENTICATED"}
        assert watched.told == set()


async def test_what_is_no_message(caplog: pytest.LogCaptureFixture, heard: list[HookEvent]) -> None:
    async with watching(caplog, heard) as watched:
        for name in METHODS:
            await watched.send(name, "bytes", b"\xff" + CANARY.encode())
            await watched.send(name, "size", CANARY.encode() * 150_000)
        assert watched.codes == {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
        assert watched.told == set()


async def test_barriers_that_refuse(caplog: pytest.LogCaptureFixture, heard: list[HookEvent]) -> None:
    barriers = {
        "pii": {"action": "reject", "scan": ["content", "metadata", "tags", "query", "source"]},
        "metadata": {"blocked_keys": ["canary4471*", CANARY, MAIL]},
    }
    async with watching(caplog, heard, barriers=barriers, **ACCESS) as watched:
        await watched.send_all(MAIL)
        assert "FAILED_PRECONDITION" in watched.codes


async def test_limits_and_quality_that_refuse(caplog: pytest.LogCaptureFixture, heard: list[HookEvent]) -> None:
    limits = {
        "rate_limits": {"recall_per_minute": 1, "reflect_per_minute": 1},
        "quotas": {"retain_per_day": 30, "storage_bytes_per_bank": 60},
        "retain_max_content_bytes": 80,
    }
    quality = {"scoring": {"enabled": True, "min_score": 1.0, "action": "reject"}}
    async with watching(caplog, heard, homeostasis=limits, signal_quality=quality, **ACCESS) as watched:
        await watched.send_all()
        await watched.send(
            "Retain", "content", memory_pb2.RetainRequest(bank_id="family", content=CANARY * 9).SerializeToString()
        )
        assert "RESOURCE_EXHAUSTED" in watched.codes


async def test_holds_and_conflicts(caplog: pytest.LogCaptureFixture, heard: list[HookEvent]) -> None:
    async with watching(caplog, heard, **ACCESS) as watched:
        memory, admin = watched.served.memory, watched.served.admin
        kept = await memory.Retain(memory_pb2.RetainRequest(bank_id="family", content=CANARY, tags=[CANARY]))
        requests = valid_requests(kept.memory_id)
        await admin.PlaceHold(requests["PlaceHold"])
        forget = memory_pb2.ForgetRequest(bank_id="family", tags=[CANARY], reason=CANARY)
        for compliance in (False, True):
            forget.compliance = compliance
            await watched.send("Forget", "tags", forget.SerializeToString())
        assert watched.codes == {"FAILED_PRECONDITION"}


async def test_faults_of_ours(
    caplog: pytest.LogCaptureFixture, heard: list[HookEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fault(*_: Any, **__: Any) -> Any:
        raise RuntimeError(CANARY)

    async def stream(*_: Any, **__: Any) -> AsyncIterator[Any]:
        raise RuntimeError(CANARY)
        yield

    monkeypatch.setattr(Gate, "call", fault)
    monkeypatch.setattr(Gate, "stream", stream)
    async with watching(caplog, heard) as watched:
        await watched.send_all()
        assert "INTERNAL" in watched.codes


class Gossip(RemoteEmbedder):
    """Fails once it was told to, with what it was asked."""

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        if self.down:
            raise ValueError(f"cannot embed {texts}")
        return await super().embed(texts)


class Babble:
    """A language model that fails with what it was asked."""

    model_id = "babble"

    async def complete(self, prompt: Prompt, *, deadline: float | None = None) -> Completion:
        raise ValueError(repr(prompt))

    async def stream(self, prompt: Prompt, *, deadline: float | None = None) -> AsyncIterator[str | Completion]:
        raise ValueError(repr(prompt))
        yield

    async def close(self) -> None:
        return


@pytest.mark.parametrize("mode", ["error", "empty_recall", "cache"])
async def test_providers_that_fail(
    caplog: pytest.LogCaptureFixture, heard: list[HookEvent], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    embedder = Gossip()
    monkeypatch.setattr("astrocyte.wiring.providers.create_embedder", lambda *_: embedder)
    monkeypatch.setattr("astrocyte.wiring.providers.create_language_model", lambda *_: Babble())
    escalation = {"degraded_mode": mode, "circuit_breaker": {"failure_threshold": 3}}
    calls = {
        "Retain",
        "BatchRetain",
        "StreamRetain",
        "UpdateMemory",
        "Recall",
        "BatchRecall",
        "Reflect",
        "StreamReflect",
    }
    async with watching(caplog, heard, llm_provider="mock", escalation=escalation, **ACCESS) as watched:
        # The model fails while the embedder works, then both do.
        await watched.send_all(calls={"Reflect", "StreamReflect"})
        embedder.down = True
        await watched.send_all(calls=calls)
        assert "UNAVAILABLE" in watched.codes
        assert "on_circuit_changed" in {event.type for event in heard}


def leak_by_log(_: Served, query: str) -> None:
    structlog.get_logger("leak").info("recalled", query=query)


def leak_by_library(_: Served, query: str) -> None:
    logging.getLogger("leak").debug("recalled %s", query)


def leak_by_span(_: Served, query: str) -> None:
    trace.get_current_span().set_attribute("query", query)


def leak_by_event(_: Served, query: str) -> None:
    trace.get_current_span().record_exception(ValueError(query))


def leak_by_metric(served: Served, query: str) -> None:
    metrics = served.app.telemetry.metrics
    assert metrics
    metrics.banks.of(query)
    metrics.recall_failed(query)


def leak_by_hook(served: Served, query: str) -> None:
    heard: Any = served.app.telemetry._hooks
    heard.fire(HookKind.RECALL, None, None, {"query": query})


def leak_by_error(_: Served, query: str) -> None:
    raise ValidationError(f"{query} is no question", field="query")


@pytest.mark.parametrize(
    ("leak", "sink"),
    [
        (leak_by_log, "log: "),
        (leak_by_library, "library: "),
        (leak_by_span, "span: "),
        (leak_by_event, "span: "),
        (leak_by_metric, "metric: "),
        (leak_by_hook, "hook: "),
        (leak_by_error, "'query'"),
    ],
)
async def test_a_leak_is_found(
    caplog: pytest.LogCaptureFixture, heard: list[HookEvent], monkeypatch: pytest.MonkeyPatch, leak: Any, sink: str
) -> None:
    """The control: with a leak in one place the tests above fail."""
    watched: Watched | None = None
    call = Gate.call

    def leaking(self: Any, caller: Any, request: Any) -> Any:
        assert watched is not None
        if isinstance(request, Recall):
            leak(watched.served, request.query.query)
        return call(self, caller, request)

    monkeypatch.setattr(Gate, "call", leaking)
    with pytest.raises(AssertionError, match=sink):
        async with watching(caplog, heard, **ACCESS) as watched:
            await watched.send_all(calls={"Recall"})


def test_every_call_of_the_services_is_sent() -> None:
    assert set(valid_requests("")) == set(METHODS)
    sent = {name: [path for path, _ in with_canary(valid)] for name, valid in valid_requests("").items()}
    assert {name for name, paths in sent.items() if not paths} == {
        "GetServerInfo",
        "ListApiKeys",
        "ListBankGroups",
        "ListBankTemplates",
        "ListEngines",
        "ListSources",
    }
    assert {"query", "queries.query", "metadata.key", "metadata.value", "external_context.text"} <= {
        path for paths in sent.values() for path in paths
    }
