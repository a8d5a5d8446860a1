"""Calls over raw HTTP/2: a client that costs a tenth of gRPC's, so that a server can be flooded from its own machine.

Requests are bytes that were made before. An answer is told from a failure by its frames; on connections that look
closer the headers of all answers are decoded, which says how a failure ended.
"""

from __future__ import annotations

import asyncio
import base64
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from hpack import Decoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
FRAME = 9
# No answer waits for a window.
WINDOW = (1 << 31) - 1
INITIAL_WINDOW_SIZE, FIRST_WINDOW = 4, 65_535
RESOURCE_EXHAUSTED = "8"
CODES: Mapping[str, str] = {
    "1": "CANCELLED",
    "2": "UNKNOWN",
    "4": "DEADLINE_EXCEEDED",
    "13": "INTERNAL",
    "14": "UNAVAILABLE",
}

# What became of a call, and after how many seconds.
Done = Callable[[str, float], None]


def header_block(path: str, authority: str, seconds: int) -> bytes:
    """The headers of a call with a deadline, as HPACK literals that leave no trace in a table."""
    literals = {
        b"content-type": b"application/grpc",
        b"te": b"trailers",
        b"grpc-timeout": b"%dS" % seconds,
    }
    # POST, http; then the path and the authority by the names that the static table has.
    block = b"\x83\x86" + _text(b"\x04", path.encode()) + _text(b"\x01", authority.encode())
    return block + b"".join(_text(_text(b"\x00", name), value) for name, value in literals.items())


def _text(before: bytes, text: bytes) -> bytes:
    assert len(text) < 127
    return before + bytes([len(text)]) + text


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload


@dataclass(slots=True)
class _Call:
    done: Done
    started: float
    answered: bool = False


class Connection(asyncio.Protocol):
    """One connection, with as many calls at once as are begun.

    Args:
        closer: Look at the headers of answers.
    """

    def __init__(self, *, closer: bool) -> None:
        self._decoder = Decoder() if closer else None
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._block = b""
        self._next = 1
        self._calls: dict[int, _Call] = {}

    @property
    def unanswered(self) -> int:
        """Calls whose end has not come."""
        return len(self._calls)

    def begin(self, block: bytes, message: bytes, done: Done) -> None:
        """Send a call; ``done`` hears of its end, if there is one."""
        assert self._transport is not None
        stream, self._next = self._next, self._next + 2
        self._calls[stream] = _Call(done, time.perf_counter())
        body = b"\x00" + len(message).to_bytes(4, "big") + message
        headers = _frame(HEADERS, END_HEADERS, stream, block)
        self._transport.write(headers + _frame(DATA, END_STREAM, stream, body))

    def close(self) -> None:
        """Drop it with all that has not ended."""
        assert self._transport is not None
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say that this is HTTP/2."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        settings = _frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, WINDOW))
        transport.write(PREFACE + settings + _frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW - FIRST_WINDOW)))

    def data_received(self, data: bytes) -> None:
        """Take the frames that are whole."""
        buffer = self._buffer + data if self._buffer else data
        place = 0
        while len(buffer) - place >= FRAME:
            end = place + FRAME + int.from_bytes(buffer[place : place + 3], "big")
            if end > len(buffer):
                break
            kind, flags, stream = struct.unpack_from(">BBI", buffer, place + 3)
            self._take(kind, flags, stream, buffer[place + FRAME : end])
            place = end
        self._buffer = buffer[place:]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == DATA:
            if stream in self._calls:
                self._calls[stream].answered = True
        elif kind in {HEADERS, CONTINUATION}:
            self._headers(flags, stream, payload)
        elif kind == RST_STREAM:
            self._end(stream, "reset")
        elif kind in {SETTINGS, PING} and not flags & ACK:
            assert self._transport is not None
            self._transport.write(_frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind == GOAWAY:
            for other in list(self._calls):
                self._end(other, "connection closed")

    def _headers(self, flags: int, stream: int, payload: bytes) -> None:
        self._block += payload
        # gRPC ends the stream with the frame that begins the headers.
        ends = bool(flags & END_STREAM)
        if not flags & END_HEADERS:
            return
        block, self._block = self._block, b""
        headers = None
        if self._decoder is not None:
            headers = {str(name): str(value) for name, value in self._decoder.decode(block, raw=False)}
        if ends:
            answered = stream in self._calls and self._calls[stream].answered
            self._end(stream, "OK" if answered else "failed" if headers is None else ending(headers))

    def _end(self, stream: int, code: str) -> None:
        call = self._calls.pop(stream, None)
        if call is not None:
            call.done(code, time.perf_counter() - call.started)


def ending(headers: Mapping[str, str]) -> str:
    """The end of a failed call: ``refused`` where it says when to come again in both of its ways."""
    code = headers.get("grpc-status", "none")
    if code != RESOURCE_EXHAUSTED:
        return CODES.get(code, f"status {code}")
    details = headers.get("grpc-status-details-bin", "")
    # gRPC leaves out the padding.
    status = Status.FromString(base64.b64decode(details + "=" * (-len(details) % 4)))
    retry = error_details_pb2.RetryInfo()
    told = any(packed.Unpack(retry) for packed in status.details if packed.Is(retry.DESCRIPTOR))
    return "refused" if told and "grpc-retry-pushback-ms" in headers else "refused without a time"


async def connect(address: str, count: int, *, closer: int) -> list[Connection]:
    """So many connections, of which every ``closer``-th looks closer."""
    host, _, port = address.rpartition(":")
    loop = asyncio.get_running_loop()
    made = []
    for number in range(count):
        connection = Connection(closer=number % closer == 0)
        await loop.create_connection(partial(_given, connection), host, int(port))
        made.append(connection)
    return made


def _given(connection: Connection) -> Connection:
    return connection
