"""Another service, as a proxy source meets it: its network is a function, and the addresses dialled are kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from astrocyte.config.sources.proxies import ProxySource

# A public address; nothing is ever sent there.
PUBLIC = "93.184.215.14"


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    for first in range(0, len(body), 65_536):
        yield body[first : first + 65_536]


def reply(body: object, status: int = 200, **headers: str) -> httpx.Response:
    """A response whose body is read from the network; JSON, unless it is bytes."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, headers=named, content=_chunks(content))


@dataclass
class Network(httpx.AsyncBaseTransport):
    """The network beyond the choice of an address: the handler answers whatever is sent."""

    handler: Callable[[httpx.Request], httpx.Response]
    requests: list[httpx.Request] = field(default_factory=list)

    @property
    def dialled(self) -> list[str]:
        """The hosts of all requests."""
        return [request.url.host for request in self.requests]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        return self.handler(request)


@dataclass
class Names:
    """A name server that answers each look-up with the next of its answers, the last for ever."""

    answers: list[Sequence[str]] = field(default_factory=lambda: [[PUBLIC]])
    asked: int = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return answer


def source(**values: Any) -> ProxySource:
    """A source with these settings."""
    return ProxySource.model_validate({"type": "proxy", "url": "https://tickets.example/search", **values})
