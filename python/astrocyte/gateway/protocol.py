"""HTTP/1.1 by uvicorn and llhttp, with limits that uvicorn lacks: size and time of a head, number of connections."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from astrocyte.config import GatewaySettings, McpSettings
from astrocyte.gateway.exchange import PEER_KEY
from astrocyte.gateway.failures import HttpError, body_of


class Connection(HttpToolsProtocol):
    """One connection. `limited` makes the class for given limits."""

    # A client that reads nothing for so long loses its connection; its call would keep its place for ever.
    send_seconds = 60.0
    head_bytes: int
    head_seconds: float
    most_connections: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(*args, **kwargs)
        # Bytes since the last whole request; those of a head that is incomplete, and the body before it at most.
        self._unread = 0
        self._in_head = True
        self._timer: asyncio.TimerHandle | None = None
        self._peer: dict[str, list[bytes]] = {}
        # Watches whether a client reads: bytes that waited for it at the last look.
        self._sending: asyncio.TimerHandle | None = None
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Accept a connection, if there is room."""
        full = len(self.connections) >= self.most_connections
        super().connection_made(transport)
        self._peer = _names(transport)
        self._wait_for_head()
        if full:
            self._refuse(HttpError(503, "overloaded", "the server has all the connections it takes; retry later"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        self._stop_watching()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        if self._in_head:
            self._unread += len(data)
        super().data_received(data)
        if self._in_head and self._unread > self.head_bytes:
            self._refuse_head()

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        scope: MutableMapping[str, Any] = self.scope  # type: ignore[assignment]  # with a key for `Exchange`
        scope[PEER_KEY] = self._peer
        if self._timer is None:
            self._wait_for_head()

    def on_headers_complete(self) -> None:
        """Start the call, unless its head is too large."""
        self._stop_waiting()
        self._in_head = False
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if size > self.head_bytes:
            self._refuse_head()
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body; a request that was refused has no call."""
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._in_head = True
        self._unread = 0
        if not self.transport.is_closing():
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Hold back what is to be sent, and watch whether the client reads."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Send again."""
        self._stop_watching()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no request."""
        self._refuse(HttpError(400, "bad_request", msg))

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; one whose client does not read its answer would never close in order."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _unsupported_upgrade_warning(self) -> None:
        """Serve the request as if it had not asked for another protocol; the log need not know."""

    def _watch(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._sending = self.loop.call_later(self.send_seconds, self._check_progress)

    def _check_progress(self) -> None:
        if self.transport.get_write_buffer_size() >= self._unsent:
            # Closing in order would wait for the client as well.
            self.transport.abort()
        else:
            self._watch()

    def _stop_watching(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self._late)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        self._refuse(HttpError(408, "request_timeout", f"no whole head came within {self.head_seconds:g} s"))

    def _refuse_head(self) -> None:
        self._refuse(
            HttpError(431, "head_too_large", f"the head of the request is larger than {self.head_bytes:,} bytes")
        )

    def _refuse(self, error: HttpError) -> None:
        """Answer and close, unless an answer is on its way, which closing ends."""
        if self.transport.is_closing():
            return
        # None until the first request, whatever its type says.
        answering: Any = self.cycle
        if answering is None or answering.response_complete:
            body = orjson.dumps(body_of(error))
            phrase = HTTPStatus(error.status).phrase
            head = (
                f"HTTP/1.1 {error.status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode("ascii") + body)
        self.transport.close()


def limited(settings: GatewaySettings | McpSettings) -> type[Connection]:
    """The class of connections with the limits of the settings."""
    limits = {
        "head_bytes": settings.max_header_bytes,
        "head_seconds": settings.header_timeout_seconds,
        "most_connections": settings.max_connections,
    }
    return type("LimitedConnection", (Connection,), limits)


def _names(transport: asyncio.Transport) -> dict[str, list[bytes]]:
    """The names in the verified certificate of a client, under gRPC's keys."""
    shown = transport.get_extra_info("peercert") or {}
    alternative = [value.encode() for kind, value in shown.get("subjectAltName", ())]
    common = [value.encode() for part in shown.get("subject", ()) for name, value in part if name == "commonName"]
    found = {"x509_subject_alternative_name": alternative, "x509_common_name": common}
    return {name: values for name, values in found.items() if values}
