"""The server side of every RPC: decode the request, call the backend, encode the response."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from google.protobuf.message import Message

from astrocyte.api import Backend, Rpc, requests
from astrocyte.model import Caller
from astrocyte.services.archive_stream import archive_stream
from astrocyte.services.convert import codec_of_rpc
from astrocyte.services.draining import Draining
from astrocyte.services.retain_stream import retain_stream

# A message, or an iterator of messages where the client streams, and the caller, to a response or an iterator of them.
Behaviour = Callable[[Any, Caller], Any]

# Answers of the RPCs whose requests are streams.
_CLIENT_STREAMS: Mapping[type[Any], Callable[[Backend, Caller, Any, Draining], AsyncIterator[Message]]] = {
    requests.StreamRetain: retain_stream,
    requests.ImportBank: archive_stream,
}


class Servicer:
    """Makes the behaviour of each RPC.

    Args:
        backend: Answers the requests.
        draining: Ends streams and waits when the server stops.
    """

    def __init__(self, backend: Backend, draining: Draining) -> None:
        self._backend = backend
        self._draining = draining

    @property
    def backend(self) -> Backend:
        """Answers the requests."""
        return self._backend

    def behaviour(self, rpc: Rpc) -> Behaviour:
        """The behaviour of an RPC."""
        if rpc.client_streaming:
            answer = _CLIENT_STREAMS[rpc.request]
            return lambda messages, caller: answer(self._backend, caller, messages, self._draining)
        if rpc.server_streaming:
            return self._streaming(rpc)
        return self._waiting(rpc) if rpc.waits else self._unary(rpc)

    def _unary(self, rpc: Rpc) -> Behaviour:
        decode, _, encode, _ = codec_of_rpc(rpc)
        call = self._backend.call

        async def behaviour(message: Message, caller: Caller) -> Message | bytes:
            response: Message | bytes = encode(await call(caller, decode(message)))
            return response

        return behaviour

    def _waiting(self, rpc: Rpc) -> Behaviour:
        unary = self._unary(rpc)

        async def behaviour(message: Message, caller: Caller) -> Message | bytes:
            with self._draining.interrupting():
                response: Message | bytes = await unary(message, caller)
            return response

        return behaviour

    def _streaming(self, rpc: Rpc) -> Behaviour:
        decode, _, encode, _ = codec_of_rpc(rpc)

        async def behaviour(message: Message, caller: Caller) -> AsyncIterator[Message]:
            responses = self._backend.stream(caller, decode(message))
            async with aclosing(responses) as pieces:  # type: ignore[type-var]  # a generator
                async for piece in pieces:
                    yield encode(piece)

        return behaviour
