"""Refusing calls for which there is no room before their messages are read: what it costs, others are not answered."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from grpc.aio import ServicerContext

from astrocyte.services.admission import Admission
from astrocyte.services.status import code_of, to_status, trailers

# Ready answers, each with its own time to retry after: making one costs as much as all the rest of a refusal.
REFUSALS = 64

Context = ServicerContext[Any, Any]
# The request id of a call, which is its caller's or a new one, as a trailer.
Identified = Callable[[Context], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Method:
    """What answers the calls of a method, and where they are admitted."""

    handler: grpc.RpcMethodHandler[Any, Any]
    admission: Admission


class Methods(grpc.GenericRpcHandler):
    """The methods of a service, by their paths; a call that would be refused is refused at once.

    Whoever calls is not asked who they are, as long as there is no room for anybody.
    """

    def __init__(self, methods: Mapping[str, Method], identified: Identified) -> None:
        admissions = {id(method.admission): method.admission for method in methods.values()}
        refusing = {key: _refusing(admission, identified) for key, admission in admissions.items()}
        # How many calls have come.
        self.arrived = 0
        self._methods = {
            path: (method.admission, method.handler, refusing[id(method.admission)]) for path, method in methods.items()
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """What handles the call; None for what is no method of the service."""
        found = self._methods.get(handler_call_details.method)
        if found is None:
            return None
        self.arrived += 1
        admission, handler, refusing = found
        return refusing if admission.full else handler


def _refusing(admission: Admission, identified: Identified) -> grpc.RpcMethodHandler[Any, Any]:
    """Ends calls of any kind; for gRPC it reads a stream, since it would wait for a single message."""
    error = admission.refusal()
    statuses = [(refusal, to_status(refusal)) for refusal in (admission.refusal() for _ in range(REFUSALS))]
    endings = itertools.cycle([trailers(refusal, status) for refusal, status in statuses])
    code, message = code_of(error), statuses[0][1].message

    async def refuse(_: AsyncIterator[bytes], context: Context) -> None:
        await context.abort(code, message, (*next(endings), identified(context)))

    return grpc.stream_stream_rpc_method_handler(refuse)
