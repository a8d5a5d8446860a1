"""A server that records what a client sends and fails as it is told: for what a real server does not show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from conformance.calls import METHODS

DETAILS_KEY = "grpc-status-details-bin"
# No deadline is as long.
NO_DEADLINE_SECONDS = 1e6
PUSHBACK_KEY = "grpc-retry-pushback-ms"


@dataclass(frozen=True)
class Failure:
    """The failure of a call.

    Attributes:
        code: Code of gRPC.
        reason: Reason of its ErrorInfo; empty sends no details.
        pushback: Value of the trailer that a retry policy reads; None sends none.
        retry_after: Seconds of its RetryInfo; None sends none.
    """

    code: grpc.StatusCode
    reason: str = ""
    pushback: str | None = None
    retry_after: float | None = None

    def trailers(self) -> tuple[tuple[str, str | bytes], ...]:
        """The trailing metadata."""
        found: list[tuple[str, str | bytes]] = []
        if self.reason:
            status = Status(code=self.code.value[0], message="told to fail")
            status.details.add().Pack(error_details_pb2.ErrorInfo(reason=self.reason, domain="astrocyte.dev"))
            if self.retry_after is not None:
                delay = Duration()
                delay.FromMilliseconds(round(self.retry_after * 1_000))
                status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
            found.append((DETAILS_KEY, status.SerializeToString()))
        if self.pushback is not None:
            found.append((PUSHBACK_KEY, self.pushback))
        return tuple(found)


@dataclass(frozen=True)
class Seen:
    """One try of a call, as it arrived."""

    headers: Mapping[str, str]
    request: Any
    seconds: float | None


@dataclass
class Recorder:
    """The tries of calls, and how the next ones fail."""

    seen: list[Seen] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def answer(self, method: str, raw: bytes, context: grpc.ServicerContext) -> bytes:
        """Record a try; fail, or answer with an empty response."""
        headers = {key: value for key, value in context.invocation_metadata() if isinstance(value, str)}
        request = GetMessageClass(METHODS[method].input_type).FromString(raw)
        left = context.time_remaining()
        # Without a deadline, grpcio returns a time beyond all reason.
        self.seen.append(Seen(headers, request, None if left > NO_DEADLINE_SECONDS else left))
        if self.failures:
            failure = self.failures.pop(0)
            context.set_trailing_metadata(failure.trailers())
            context.abort(failure.code, "told to fail")
        return b""


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        name = handler_call_details.method.rpartition("/")[2]

        def unary(raw: bytes, context: grpc.ServicerContext) -> bytes:
            return self._recorder.answer(name, raw, context)

        def stream(raw: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
            yield self._recorder.answer(name, raw, context)

        if METHODS[name].server_streaming:
            return grpc.unary_stream_rpc_method_handler(stream)
        return grpc.unary_unary_rpc_method_handler(unary)


@contextmanager
def recording() -> Iterator[tuple[str, Recorder]]:
    """Address of a recording server on this machine, and its recorder."""
    recorder = Recorder()
    with ThreadPoolExecutor(max_workers=4) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers((_Handler(recorder),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}", recorder
        finally:
            server.stop(0).wait()
