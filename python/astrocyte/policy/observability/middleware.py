"""Middlewares: code around every request of a backend, whichever implements it.

Metrics, spans and hooks are middlewares. The backend of an application has those that its settings switch on, so that a
request passes no line of the others.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import AbstractContextManager, aclosing
from typing import Any, Protocol, TypeVar

from astrocyte.api import Backend, Request, StreamRequest
from astrocyte.model import Caller

R = TypeVar("R")
# The rest of a call, or of a stream.
Proceed = Callable[[Caller, Any], Coroutine[Any, Any, Any]]
ProceedStream = Callable[[Caller, Any], AsyncIterator[Any]]


class Middleware(Protocol):
    """Code around requests; each method calls ``proceed`` once, with the caller and the request."""

    def call(self, caller: Caller, request: Any, proceed: Proceed) -> Coroutine[Any, Any, Any]:  # noqa: ANN401 - any request
        """The response of ``proceed``."""

    def stream(self, caller: Caller, request: Any, proceed: ProceedStream) -> AsyncIterator[Any]:  # noqa: ANN401 - any request
        """The responses of ``proceed``."""


class MiddlewareBackend:
    """A backend with a middleware around it.

    Args:
        inner: Answers the requests.
        middleware: Sees them first.
    """

    def __init__(self, inner: Backend, middleware: Middleware) -> None:
        self._inner = inner
        self._middleware = middleware

    def call(self, caller: Caller, request: Request[R]) -> Coroutine[Any, Any, R]:
        """The response to a request."""
        return self._middleware.call(caller, request, self._inner.call)

    def stream(self, caller: Caller, request: StreamRequest[R]) -> AsyncIterator[R]:
        """The responses to a request."""
        return self._middleware.stream(caller, request, self._inner.stream)

    async def close(self) -> None:
        """Close the inner backend."""
        await self._inner.close()


async def stepped(pieces: Any, around: Callable[[], AbstractContextManager[None]]) -> AsyncGenerator[Any, None]:  # noqa: ANN401 - a generator
    """The pieces, none of which is None; ``around`` is entered while each is made, not while the caller looks at it."""
    async with aclosing(pieces):
        while True:
            with around():
                piece = await anext(pieces, None)
            if piece is None:
                return
            yield piece
