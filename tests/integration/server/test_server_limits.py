"""Deadlines, cancellation, load, credentials, certificates, addresses and request ids."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from astrocyte import connect
from astrocyte.api.requests import GetBank, GetBankStats, GetMemory, Recall, Retain
from astrocyte.app import App
from astrocyte.client import RemoteBackend
from astrocyte.config import Settings
from astrocyte.errors import AuthorizationError, ConfigError, RateLimited, Unavailable
from astrocyte.model import Caller, RecallQuery, RecallResult, RetainItem, RetainResult
from astrocyte.server import HEALTH_SECONDS, Server
from astrocyte.services.authentication import authenticator
from astrocyte.services.status import PUSHBACK_KEY
from astrocyte.stores.sqlite import SqliteStore
from astrocyte.v1 import memory_pb2
from astrocyte.wiring import storage as wired_storage
from doubles.faulty_disk import failing_sync, faulty_disk
from harness.certificates import certificates
from harness.serving import Served, detail, reason, serving, trailer

RETAIN = memory_pb2.RetainRequest(bank_id="family", content="Mara cannot eat sesame.")
RECALL = memory_pb2.RecallRequest(bank_id="family", query="Mara")
EMPTY = RecallResult((), 0, truncated=False)


def hold(
    monkeypatch: pytest.MonkeyPatch, served: Served, request: type[Any], answer: Any
) -> tuple[asyncio.Event, list[str]]:
    """Make a handler of the gate wait for the event; the list notes how calls begin and end."""
    opened, seen = asyncio.Event(), []

    async def held(*_: Any, **__: Any) -> Any:
        seen.append("begun")
        try:
            await opened.wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        seen.append("done")
        return answer

    monkeypatch.setitem(served.app.gate._handlers, request, held)
    return opened, seen


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it did not come true within 10 s")


async def test_a_deadline_is_imposed_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(server={"read_deadline_seconds": 0.1, "write_deadline_seconds": 0.2}) as served:
        hold(monkeypatch, served, Recall, EMPTY)
        hold(monkeypatch, served, Retain, RetainResult(stored=False))
        for call, seconds in ((served.memory.Recall(RECALL), "0.1"), (served.memory.Retain(RETAIN), "0.2")):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            info = detail(caught.value, error_details_pb2.ErrorInfo)
            assert (info.reason, info.metadata["timeout_seconds"]) == ("DEADLINE_EXCEEDED", seconds)


async def test_the_callers_deadline_holds_shorter_and_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(server={"read_deadline_seconds": 60}) as served:
        _, seen = hold(monkeypatch, served, Recall, EMPTY)
        begun = time.monotonic()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await served.memory.Recall(RECALL, timeout=0.1)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert time.monotonic() - begun < 30
        await until(lambda: seen == ["begun", "cancelled"])
    async with serving(server={"read_deadline_seconds": 0.3}) as served:
        opened, seen = hold(monkeypatch, served, Recall, EMPTY)
        longer = asyncio.ensure_future(served.memory.Recall(RECALL, timeout=60))
        await asyncio.sleep(0.5)
        opened.set()
        assert not (await longer).hits
        assert seen == ["begun", "done"]


async def test_a_cancelled_call_is_cancelled_at_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        _, seen = hold(monkeypatch, served, Recall, EMPTY)
        call = served.memory.Recall(RECALL)
        await until(lambda: seen == ["begun"])
        call.cancel()
        await until(lambda: seen == ["begun", "cancelled"])
    # The place was given back: the next call is let in.
    async with serving(server={"read_concurrency": 1}) as served:
        _, seen = hold(monkeypatch, served, Recall, EMPTY)
        for _ in range(5):
            with pytest.raises(grpc.aio.AioRpcError):
                await served.memory.Recall(RECALL, timeout=0.05)
        monkeypatch.undo()
        await served.memory.Retain(RETAIN)
        assert (await served.memory.Recall(RECALL)).hits


async def test_a_write_that_has_begun_survives_its_caller(tmp_path: Path) -> None:
    async with serving(vector_store="sqlite", data_dir=str(tmp_path)) as served:
        await served.memory.Retain(RETAIN)
        for number in range(20):
            content = f"The lighthouse keeper wrote entry number {number} at dawn."
            call = served.memory.Retain(memory_pb2.RetainRequest(bank_id="family", content=content))
            await asyncio.sleep(0.0005 * number)
            call.cancel()
        # When the calls have ended and a later write is stored, whatever was begun is complete.
        await until(lambda: not served.server._busy())
        await served.memory.Retain(memory_pb2.RetainRequest(bank_id="family", content="Tom repairs bicycles."))
        # And recall agrees with the store about it.
        listed = await served.memory.ListMemories(memory_pb2.ListMemoriesRequest(bank_id="family"))
        stats = await served.backend.call(Caller(), GetBankStats("family"))
        assert stats.memory_count == listed.total_size == len(listed.memories)
        for memory in listed.memories:
            request = memory_pb2.RecallRequest(bank_id="family", query=memory.content, max_results=1)
            assert (await served.memory.Recall(request)).hits[0].memory_id == memory.memory_id


async def test_beyond_the_limits_calls_are_told_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(server={"read_concurrency": 2}) as served:
        opened, seen = hold(monkeypatch, served, Recall, EMPTY)
        calls = [asyncio.ensure_future(served.memory.Recall(RECALL, timeout=20)) for _ in range(10)]
        done, waiting = await asyncio.wait(calls, timeout=1)
        assert (len(done), len(waiting)) == (6, 4)
        assert seen == ["begun", "begun"]
        for call in done:
            error = call.exception()
            assert isinstance(error, grpc.aio.AioRpcError)
            assert (error.code(), reason(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
            delay = detail(error, error_details_pb2.RetryInfo).retry_delay.ToMilliseconds()
            assert 500 <= delay <= 1_000
            assert trailer(error, PUSHBACK_KEY) == str(delay)
        with pytest.raises(RateLimited) as refused:
            await served.backend.call(Caller(), Recall(RecallQuery("q", "family")))
        assert 0.5 <= refused.value.retry_after <= 1
        # Other kinds of calls have room of their own.
        assert (await served.memory.Retain(RETAIN)).stored
        opened.set()
        assert len(await asyncio.gather(*waiting)) == 4


async def test_calls_that_wait_for_a_place_show_in_the_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = {"prometheus_enabled": True, "metrics_port": 0}
    async with serving(server={"read_concurrency": 2}, observability=watched) as served:
        metrics = served.app.telemetry.metrics
        assert metrics is not None

        def depth(kind: str) -> float | None:
            return metrics.registry.get_sample_value("astrocyte_queue_depth", {"queue": f"{kind}_calls"})

        opened, _ = hold(monkeypatch, served, Recall, EMPTY)
        calls = [asyncio.ensure_future(served.memory.Recall(RECALL, timeout=20)) for _ in range(3)]
        await until(lambda: depth("read") == 1)
        calls.append(asyncio.ensure_future(served.memory.Recall(RECALL, timeout=20)))
        await until(lambda: depth("read") == 2)
        assert [depth(kind) for kind in ("write", "reflect", "admin", "stream", "watch", "wait")] == [0] * 6
        opened.set()
        await asyncio.gather(*calls)
        assert depth("read") == 0


async def test_streams_are_limited_too() -> None:
    async with serving(server={"stream_concurrency": 1}) as served:
        await served.memory.Retain(RETAIN)
        request = memory_pb2.WatchRequest(bank_id="family", after_position=0)
        first = served.memory.Watch(request)
        assert (await first.read()).change.position == 1
        # None of them waits: it would for as long as the first one is open.
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await asyncio.wait_for(served.memory.Watch(request).read(), 5)
            assert (caught.value.code(), reason(caught.value)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
            assert detail(caught.value, error_details_pb2.RetryInfo).retry_delay.ToMilliseconds() >= 500
        first.cancel()
        await until(lambda: not served.server._busy())
        again = served.memory.Watch(request)
        assert (await asyncio.wait_for(again.read(), 5)).change.position == 1
        again.cancel()


async def test_an_unexpected_failure_tells_the_log_where_and_the_caller_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as served:

        async def broken(*_: Any) -> None:
            raise ZeroDivisionError("Mara cannot eat sesame")

        monkeypatch.setitem(served.app.gate._handlers, Recall, broken)
        with capture_logs() as logs, pytest.raises(grpc.aio.AioRpcError) as caught:
            await served.memory.Recall(RECALL, metadata=(("x-request-id", "call-7"),))
        assert (caught.value.code(), reason(caught.value)) == (grpc.StatusCode.INTERNAL, "INTERNAL")
        assert caught.value.details() == "internal error; the server's log explains it under request id call-7"
        (entry,) = logs
        assert entry["method"] == "astrocyte.v1.MemoryService.Recall"
        assert (entry["error"], entry["request_id"]) == ("ZeroDivisionError", "call-7")
        assert any("broken" in frame for frame in entry["frames"])
        assert "sesame" not in str(entry)


async def test_request_ids_come_back() -> None:
    async with serving() as served:
        await served.memory.Retain(RETAIN)
        for given, kept in (("call-7", True), ("x" * 128, True), ("x" * 129, False), ("two words", False)):
            metadata = (("x-request-id", given),)
            call = served.memory.Recall(RECALL, metadata=metadata)
            await call
            assert dict(await call.trailing_metadata()) == ({"x-request-id": given} if kept else {})
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await served.memory.Recall(memory_pb2.RecallRequest(bank_id="family"), metadata=metadata)
            assert (trailer(caught.value, "x-request-id") == given) is kept
        made = set()
        for _ in range(3):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await served.memory.Recall(memory_pb2.RecallRequest(bank_id="family"))
            made.add(trailer(caught.value, "x-request-id"))
        assert len(made) == 3
        assert all(made)


KEY = "a key of the test"
KEYS = [{"name": "ci", "sha256": hashlib.sha256(KEY.encode()).hexdigest(), "tenant": "acme", "principal": "ann"}]


@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("authorization", "Bearer wrong"),),
        (("authorization", f"Basic {KEY}"),),
        (("authorization", KEY),),
        (("authorization", "Bearer "),),
    ],
)
async def test_without_a_valid_key_nothing_is_answered(metadata: Any) -> None:
    async with serving(auth={"api_keys": KEYS}) as served:
        request = memory_pb2.StreamRetainRequest(bank_id="family", item=memory_pb2.RetainItem(content="x"))
        for call in (
            served.memory.Recall(RECALL, metadata=metadata),
            served.memory.Watch(memory_pb2.WatchRequest(bank_id="family"), metadata=metadata).read(),
            served.memory.StreamRetain(iter([request]), metadata=metadata).read(),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert (caught.value.code(), reason(caught.value)) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")


async def test_a_key_decides_tenant_and_principal() -> None:
    async with serving(auth={"api_keys": KEYS}) as served:
        backend = RemoteBackend(served.address, api_key=KEY)
        kept = await backend.call(Caller(), Retain("family", RetainItem("Mara cannot eat sesame.")))
        memory = await backend.call(Caller(), GetMemory("family", str(kept.memory_id)))
        assert memory.principal == "ann"
        assert (await backend.call(Caller(), GetBank("family"))).tenant == "acme"
        await backend.close()
        with pytest.raises(AuthorizationError):
            await served.backend.call(Caller(), GetBank("family"))


async def test_tls_and_client_certificates(tmp_path: Path) -> None:
    files = certificates(tmp_path)
    tls = {"tls_cert_file": str(files["server.pem"]), "tls_key_file": str(files["server.key"])}
    async with serving(server=tls) as served:
        backend = RemoteBackend(served.address, tls=files["ca.pem"])
        assert (await backend.call(Caller(), Retain("family", RetainItem("Over TLS.")))).stored
        await backend.close()
        with pytest.raises(Unavailable):
            await served.backend.call(Caller(), Recall(RecallQuery("plain text", "family")))
    async with serving(server={**tls, "tls_client_ca_file": str(files["ca.pem"])}) as served:
        anonymous = RemoteBackend(served.address, tls=files["ca.pem"])
        with pytest.raises(Unavailable):
            await anonymous.call(Caller(), Retain("family", RetainItem("Without a certificate.")))
        await anonymous.close()
        credentials = grpc.ssl_channel_credentials(
            files["ca.pem"].read_bytes(), files["client.key"].read_bytes(), files["client.pem"].read_bytes()
        )
        async with grpc.aio.secure_channel(served.address, credentials) as channel:
            call: Any = channel.unary_unary(
                "/astrocyte.v1.MemoryService/Retain", response_deserializer=memory_pb2.RetainResponse.FromString
            )
            kept = await call(RETAIN.SerializeToString())
        memory = await served.app.gate.call(Caller(), GetMemory("family", kept.memory_id))
        assert memory.principal == "ann"
        assert await _kept_by(files, tls, {"identity": "localhost", "tenant": "acme", "principal": "service:a"}) == (
            "acme",
            "service:a",
        )
        assert await _kept_by(files, tls, {"identity": "ann", "principal": "user:ann"}) == ("default", "user:ann")
        with pytest.raises(grpc.aio.AioRpcError, match="not known") as refused:
            await _kept_by(files, tls, {"identity": "an", "principal": "user:ann"})
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def _kept_by(files: dict[str, Path], tls: dict[str, str], listed: dict[str, str]) -> tuple[str, str]:
    """Tenant and principal of what a client with a certificate retains."""
    server = {**tls, "tls_client_ca_file": str(files["ca.pem"])}
    async with serving(server=server, auth={"certificates": [listed]}) as served:
        credentials = grpc.ssl_channel_credentials(
            files["ca.pem"].read_bytes(), files["client.key"].read_bytes(), files["client.pem"].read_bytes()
        )
        async with grpc.aio.secure_channel(served.address, credentials) as channel:
            call: Any = channel.unary_unary(
                "/astrocyte.v1.MemoryService/Retain", response_deserializer=memory_pb2.RetainResponse.FromString
            )
            kept = await call(RETAIN.SerializeToString())
        tenant = listed.get("tenant", "default")
        memory = await served.app.gate.call(Caller(tenant), GetMemory("family", kept.memory_id))
        return tenant, memory.principal


def test_certificates_without_roots_are_refused() -> None:
    settings = Settings.from_mapping({"auth": {"certificates": [{"identity": "a", "principal": "p"}]}})
    with pytest.raises(ConfigError, match="needs server"):
        authenticator(settings)


async def test_a_unix_socket(tmp_path: Path) -> None:
    path = f"unix:{tmp_path / 'astrocyte.sock'}"
    async with serving(server={"host": path}) as served:
        assert served.address == path
        async with connect(path) as brain:
            assert (await brain.retain("Through a socket.", bank_id="family")).stored


async def test_health_follows_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with faulty_disk() as disk:
        monkeypatch.setattr(wired_storage, "open_store", lambda folder, **_: SqliteStore(folder, _vfs=disk.name))
        async with serving(vector_store="sqlite", data_dir=str(tmp_path)) as served:
            await served.memory.Retain(RETAIN)
            health = health_pb2_grpc.HealthStub(served.channel)
            watch = health.Watch(health_pb2.HealthCheckRequest(service="astrocyte.v1.MemoryService"))
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            disk.fault = failing_sync
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await served.memory.Retain(memory_pb2.RetainRequest(bank_id="family", content="Tom repairs bicycles."))
            assert (caught.value.code(), reason(caught.value)) == (grpc.StatusCode.INTERNAL, "STORE_FAILED")
            assert (await asyncio.wait_for(watch.read(), 5)).status == health_pb2.HealthCheckResponse.NOT_SERVING
            # The disk may be well again; what this process knows of it is not.
            disk.fault = None
            await asyncio.sleep(2 * HEALTH_SECONDS)
            statuses = (await health.List(health_pb2.HealthListRequest())).statuses
            assert set(statuses) == {
                "",
                "astrocyte.v1.MemoryService",
                "astrocyte.v1.GraphService",
                "astrocyte.v1.AdminService",
                "astrocyte.v1.AgentMemoryService",
                "astrocyte.v1.KnowledgeService",
            }
            assert {one.status for one in statuses.values()} == {health_pb2.HealthCheckResponse.NOT_SERVING}
            for name in statuses:
                answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
            assert len((await served.memory.Recall(RECALL)).hits) == 1
            watch.cancel()


async def test_a_port_that_is_taken_is_refused() -> None:
    async with serving() as served:
        port = int(served.address.rpartition(":")[2])
        app = App(Settings.from_mapping({"vector_store": "in_memory", "server": {"port": port}}))
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            await Server(app.gate, app.settings, healthy=lambda: True).start()
        await app.close()


async def test_a_certificate_that_is_missing_is_named(tmp_path: Path) -> None:
    tls = {"tls_cert_file": str(tmp_path / "no.pem"), "tls_key_file": str(tmp_path / "no.key")}
    app = App(Settings.from_mapping({"vector_store": "in_memory", "server": {"port": 0, **tls}}))
    with pytest.raises(ConfigError, match=r"cannot read .*no\.key"):
        await Server(app.gate, app.settings, healthy=lambda: True).start()
    await app.close()


async def test_an_exposed_address_does_not_start() -> None:
    app = App(Settings.from_mapping({"vector_store": "in_memory", "server": {"host": "0.0.0.0"}}))  # noqa: S104
    with pytest.raises(ConfigError, match="is reachable from other machines"):
        Server(app.gate, app.settings, healthy=lambda: True)
    await app.close()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    backend = RemoteBackend("127.0.0.1:1", timeout=2)
    with pytest.raises(Unavailable):
        await backend.call(Caller(), Recall(RecallQuery("q", "family")))
    await backend.close()
