"""The interface of every implementation of the API: the gate in process, the client over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

from astrocyte.api.requests import Request, StreamRequest
from astrocyte.model import Caller

R = TypeVar("R")


class Backend(Protocol):
    """Answers requests of `astrocyte.api.requests`; each class there states what its call raises.

    A remote backend takes tenant and principal from its credential, and refuses another ``caller``.
    """

    async def call(self, caller: Caller, request: Request[R]) -> R:
        """The response to a request."""

    def stream(self, caller: Caller, request: StreamRequest[R]) -> AsyncIterator[R]:
        """The responses to a request as they come; the iterator is closed by ``aclose``."""

    async def close(self) -> None:
        """Finish pending writes and release all resources."""
