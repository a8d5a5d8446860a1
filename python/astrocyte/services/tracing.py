"""A span for each call of gRPC, below the span of its caller, which `traceparent` in the metadata names (W3C).

Everything that the call does is below it: who calls, how the call is decoded, the operation, and lines of the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import MethodDescriptor
from grpc import StatusCode

if TYPE_CHECKING:
    # It comes with an extra.
    from astrocyte.policy.observability.tracing import Tracing

Serve = Callable[[Any, Any], Any]


def traced(tracing: Tracing, method: MethodDescriptor, serve: Serve) -> Serve:
    """``serve``, the handler of a method, with a span around each call."""
    service = method.containing_service.full_name
    name = f"{service}/{method.name}"
    attributes = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": method.name}

    async def call(raw: Any, context: Any) -> Any:  # noqa: ANN401 - grpc's
        headers = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        with tracing.call(name, attributes, headers) as span:
            try:
                return await serve(raw, context)
            finally:
                # A number until somebody sets one; of a call that was cut off before, nothing is known.
                code = context.code() or StatusCode.OK
                span.set_attribute("rpc.grpc.status_code", code.name if isinstance(code, StatusCode) else str(code))

    return call
