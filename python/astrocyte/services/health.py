"""grpc.health.v1: Check and Watch as grpcio has them, List, which it lacks, and watchers that do not hold up a stop."""

from __future__ import annotations

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health import aio

from astrocyte.errors import Unavailable
from astrocyte.services.draining import Draining
from astrocyte.services.transport import Context

# The value of "" stands for the whole server.
WHOLE_SERVER = ""
HEALTH_SERVICE = health_pb2.DESCRIPTOR.services_by_name["Health"]


class Health(aio.HealthServicer):  # type: ignore[misc]  # published without types
    """Health of the server and of each service.

    Probes pass no credential, no admission and no limit: they must be answered most of all when the rest is not.

    Args:
        services: Full names; all are served from `serve` on.
        draining: Ends watches when the server stops, after they have heard of it.
    """

    def __init__(self, services: list[str], draining: Draining) -> None:
        super().__init__()
        self._names = [WHOLE_SERVER, *services]
        self._draining = draining
        self._status = health_pb2.HealthCheckResponse.NOT_SERVING

    @property
    def serving(self) -> bool:
        """True if all services are reported as serving."""
        return bool(self._status == health_pb2.HealthCheckResponse.SERVING)

    async def serve(self) -> None:
        """Report all services as serving."""
        await self._announce(health_pb2.HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        """Report all services as not serving, for good."""
        await self._announce(health_pb2.HealthCheckResponse.NOT_SERVING)

    async def _announce(self, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        self._status = status
        for name in self._names:
            await self.set(name, status)

    async def List(  # noqa: N802 - the RPC's name
        self, request: health_pb2.HealthListRequest, context: Context
    ) -> health_pb2.HealthListResponse:
        """The status of every name."""
        del request, context
        response = health_pb2.HealthCheckResponse(status=self._status)
        return health_pb2.HealthListResponse(statuses=dict.fromkeys(self._names, response))

    async def Watch(self, request: health_pb2.HealthCheckRequest, context: Context) -> None:  # noqa: N802 - as above
        """The status of one name now and whenever it changes, until the caller or the server ends it."""
        try:
            with self._draining.interrupting():
                await super().Watch(request, context)
        except Unavailable as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, error.message)


def health_handler(health: Health) -> grpc.GenericRpcHandler:
    """The handler of health checks."""
    kinds = {
        "Check": (grpc.unary_unary_rpc_method_handler, health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse),
        "List": (grpc.unary_unary_rpc_method_handler, health_pb2.HealthListRequest, health_pb2.HealthListResponse),
        "Watch": (grpc.unary_stream_rpc_method_handler, health_pb2.HealthCheckRequest, health_pb2.HealthCheckResponse),
    }
    handlers = {
        name: make(getattr(health, name), request.FromString, response.SerializeToString)
        for name, (make, request, response) in kinds.items()
    }
    return grpc.method_handlers_generic_handler(HEALTH_SERVICE.full_name, handlers)
