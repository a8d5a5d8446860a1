"""A server on loopback that speaks the wire protocols of language models, well and badly."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """One answer. ``events`` makes a stream of ``body``'s place; ``hang`` waits before the body, for ever.

    ``answer`` makes the body of each request.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    events: list[str] | None = None
    answer: Callable[[dict[str, Any]], Any] | None = None
    hang: bool = False
    # Close the connection before the body is whole.
    cut: bool = False
    # Bytes without end.
    endless: bool = False


@dataclass
class FakeServer:
    """Answers with ``replies`` in order, the last one for ever; keeps what it was asked."""

    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    state: FakeServer
    _asked: dict[str, Any]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self._asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.state.requests.append(self._asked)
        self.state.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.state.paths.append(self.path)
        reply = self.state.replies.pop(0) if len(self.state.replies) > 1 else self.state.replies[0]
        self.send_response(reply.status)
        # Said, not only done: a client that meant to use the connection again would count one try that never came.
        self.send_header("Connection", "close")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        # The client may have heard enough, which is what some tests are about.
        with suppress(BrokenPipeError, ConnectionResetError):
            if reply.events is not None:
                self._stream(reply, reply.events)
            else:
                self._body(reply if reply.answer is None else replace(reply, body=reply.answer(self._asked)))

    def _stream(self, reply: Reply, events: list[str]) -> None:
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            self._send(event)
        while reply.endless and not self.state.stop.wait(0.001):
            self._send(events[-1])
        if reply.hang:
            self.state.stop.wait(30)

    def _send(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()

    def _body(self, reply: Reply) -> None:
        if reply.hang:
            self.end_headers()
            self.wfile.flush()
            self.state.stop.wait(30)
            return
        payload = (reply.body if isinstance(reply.body, str) else json.dumps(reply.body)).encode()
        self.send_header("Content-Length", str(len(payload) + (10 if reply.cut else 0)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


@contextmanager
def serve(*replies: Reply) -> Iterator[FakeServer]:
    """A server that answers with these."""
    state = FakeServer(list(replies))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"state": state}))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        state.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


def openai_answer(
    text: str | None, *, finish: str = "stop", calls: list[tuple[str, str, str]] | None = None, **message: Any
) -> dict[str, Any]:
    """A chat completion as OpenAI sends it; calls are id, name and arguments."""
    said: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, **message}
    if calls:
        said["tool_calls"] = [
            {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
            for identity, name, arguments in calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "m",
        "choices": [{"index": 0, "message": said, "logprobs": None, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


def openai_events(*deltas: dict[str, Any], finish: str | None = "stop", done: bool = True) -> list[str]:
    """The events of a streamed chat completion."""
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None} for delta in deltas
    ]
    if finish:
        chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": None})
        chunks.append({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}})
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return [f"data: {json.dumps(base | chunk)}\n\n" for chunk in chunks] + (["data: [DONE]\n\n"] if done else [])


def anthropic_answer(*blocks: dict[str, Any], stop: str = "end_turn") -> dict[str, Any]:
    """A message as Anthropic sends it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 3},
    }


def anthropic_events(
    *blocks: tuple[dict[str, Any], list[dict[str, Any]]], stop: str = "end_turn", done: bool = True
) -> list[str]:
    """The events of a streamed message; a block is how it starts and its deltas."""
    message = anthropic_answer(stop=stop) | {"stop_reason": None, "usage": {"input_tokens": 11, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.append({"type": "ping"})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if done:
        delta = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}})
        events.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]


def anthropic_text(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}
