"""One HTTP request and its answer, over ASGI."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

import orjson

from astrocyte.errors import DeadlineExceeded, MessageTooLarge
from astrocyte.gateway.failures import HttpError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = "application/json"
LINES = "application/x-ndjson"
EVENTS = "text/event-stream"
# Key of the scope under which the protocol leaves the names in a client's certificate.
PEER_KEY = "astrocyte.peer"
# A stream of requests without a byte for so long ends.
IDLE_SECONDS = 60.0


class ClientGoneError(Exception):
    """The client closed the connection, so that nobody reads an answer."""


class Exchange:
    """A request that is read, and an answer that is sent, once.

    Args:
        scope: The ASGI scope.
        receive: Takes the next event of the connection.
        send: Sends an event.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        # Of the answer that has begun; None before.
        self.status: int | None = None
        self._receive = receive
        self._send = send
        # Headers that repeat are joined by none: which of them holds would be decided by proxies.
        self.headers: dict[str, str] = {}
        self.repeated: set[str] = set()
        for name, value in scope["headers"]:
            text = name.decode("latin-1")
            if text in self.headers:
                self.repeated.add(text)
            self.headers[text] = value.decode("latin-1")

    @property
    def begun(self) -> bool:
        """True if the head of the answer was sent."""
        return self.status is not None

    @property
    def verb(self) -> str:
        """HTTP method; a HEAD is a GET whose body the server leaves out."""
        verb: str = self.scope["method"]
        return "GET" if verb == "HEAD" else verb

    def auth_context(self) -> dict[str, list[bytes]]:
        """The names in the client's verified certificate; see `Peer`."""
        found: dict[str, list[bytes]] = self.scope.get(PEER_KEY, {})
        return found

    def check_type(self, expected: str) -> None:
        """Check the media type of the body.

        A browser sends this type for a page of another origin only after asking, so that a page cannot make such calls.

        Raises:
            HttpError: It is another one.
        """
        given = self.headers.get("content-type", "")
        if given.partition(";")[0].strip().lower() != expected:
            raise HttpError(
                415, "unsupported_media_type", f"the body has another type; send the header content-type: {expected}"
            )

    async def body(self, most_bytes: int) -> bytes:
        """The whole body.

        Raises:
            MessageTooLarge: It is larger.
            ClientGoneError: The client left before its end.
        """
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > most_bytes:
            raise _too_large(most_bytes)
        pieces: list[bytes] = []
        size = 0
        while True:
            event = await self._next()
            piece = event.get("body", b"")
            size += len(piece)
            if size > most_bytes:
                raise _too_large(most_bytes)
            pieces.append(piece)
            if not event.get("more_body", False):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def lines(self, most_bytes: int) -> AsyncIterator[bytes]:
        """The lines of the body as they come, without empty ones.

        Raises:
            MessageTooLarge: A line is larger.
            DeadlineExceeded: No byte came for a while.
            ClientGoneError: The client left before the end of the body.
        """
        rest = b""
        more = True
        while more:
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    event = await self._next()
            except TimeoutError:
                raise DeadlineExceeded(f"the stream of requests had no byte for {IDLE_SECONDS:g} s") from None
            more = event.get("more_body", False)
            *lines, rest = (rest + event.get("body", b"")).split(b"\n")
            if not more:
                lines.append(rest)
            elif len(rest) > most_bytes:
                raise _too_large(most_bytes)
            for line in lines:
                if len(line) > most_bytes:
                    raise _too_large(most_bytes)
                if line.strip():
                    yield line

    async def gone(self) -> None:
        """Return when the client closes the connection; for a request whose body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def answer(self, status: int, value: Any, headers: Mapping[str, str]) -> None:  # noqa: ANN401 - a value of JSON
        """Send an answer in JSON."""
        body = orjson.dumps(value)
        made = [("content-type", JSON), ("content-length", str(len(body))), *headers.items()]
        await self._begin(status, made)
        await self._send({"type": "http.response.body", "body": body})

    async def begin_events(self, headers: Mapping[str, str]) -> None:
        """Send the head of a stream of events. A proxy that collected them would hold them back."""
        await self._begin(200, [("content-type", EVENTS), ("x-accel-buffering", "no"), *headers.items()])

    async def event(self, value: Any, name: str | None = None) -> None:  # noqa: ANN401 - a value of JSON
        """Send an event of a stream."""
        head = b"" if name is None else b"event: " + name.encode() + b"\n"
        await self._piece(head + b"data: " + orjson.dumps(value) + b"\n\n")

    async def comment(self) -> None:
        """Send an event without content, by which both sides notice that the connection is alive."""
        await self._piece(b":\n\n")

    async def end_events(self) -> None:
        """End a stream."""
        await self._send({"type": "http.response.body", "body": b""})

    async def _begin(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self.status = status
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        encoded += [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def _piece(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def _next(self) -> MutableMapping[str, Any]:
        event = await self._receive()
        if event["type"] == "http.disconnect":
            raise ClientGoneError
        return event


def _too_large(most_bytes: int) -> MessageTooLarge:
    return MessageTooLarge(
        f"the body is larger than {most_bytes:,} bytes, the limit; send less at once",
        metadata={"limit": str(most_bytes)},
    )
