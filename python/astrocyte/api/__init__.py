"""The description of the API: the request of each RPC, the table of RPCs, and the interface of a backend."""

from astrocyte.api.backend import Backend
from astrocyte.api.requests import Request, StreamRequest, response_of
from astrocyte.api.rpcs import (
    ADMIN_SERVICE,
    AGENT_MEMORY_SERVICE,
    GRAPH_SERVICE,
    MEMORY_SERVICE,
    NO_BANK,
    RPCS,
    Concurrency,
    Creates,
    LimitKind,
    Rpc,
)

__all__ = [
    "ADMIN_SERVICE",
    "AGENT_MEMORY_SERVICE",
    "GRAPH_SERVICE",
    "MEMORY_SERVICE",
    "NO_BANK",
    "RPCS",
    "Backend",
    "Concurrency",
    "Creates",
    "LimitKind",
    "Request",
    "Rpc",
    "StreamRequest",
    "response_of",
]
