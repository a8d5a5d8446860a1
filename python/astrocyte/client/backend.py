"""The API over the wire: each request is one call of a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from copy import copy
from typing import Any, NamedTuple, TypeVar

import grpc
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from astrocyte.api import RPCS, Request, Rpc, StreamRequest
from astrocyte.api.requests import OPTIONAL_PARTS, USUAL_WAIT_SECONDS, ImportBank, StreamRetain, unknown
from astrocyte.client.connection import Connection
from astrocyte.client.errors import translate
from astrocyte.client.tls import File, channel_credentials
from astrocyte.errors import AstrocyteError, ValidationError
from astrocyte.model import Caller, ImportProgress, RetainResult
from astrocyte.services.archive_stream import ACTIONS, STATES
from astrocyte.services.convert import ITEMS, RETAIN_RESULTS, RpcCodec, codec_of_rpc, descriptor_of, encoding
from astrocyte.services.status import from_status
from astrocyte.v1 import admin_pb2, memory_pb2

# Longer than any deadline that the server imposes by itself, so that its own error comes first.
DEFAULT_TIMEOUT_SECONDS = 30.0
# Far below the default limit of a message.
ARCHIVE_MESSAGE_BYTES = 128 * 1_024
# Time for the server to refuse an import before its data is sent: grpc loses the status of a call that ends while its
# requests are written.
REFUSAL_SECONDS = 0.1

R = TypeVar("R")


class Method(NamedTuple):
    """One RPC of the channel; the codec is None where `RemoteBackend` has its own."""

    rpc: Rpc
    invoke: Any
    codec: RpcCodec | None


class RemoteBackend:
    """Implements `astrocyte.api.Backend` by calling a server. Arguments are those of `connect`.

    The credential determines the caller: the server refuses a ``caller`` that differs. Every failure is raised from the
    exception tree, whether this side or the server found it.
    """

    def __init__(  # noqa: PLR0913 - as for `connect`
        self,
        address: str,
        *,
        api_key: str | None = None,
        tls: bool | File = False,
        ca: File | None = None,
        certificate: File | None = None,
        key: File | None = None,
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        credentials = channel_credentials(tls=tls, ca=ca, certificate=certificate, key=key)
        self._connection = Connection(address, api_key=api_key, credentials=credentials)
        self._timeout = timeout
        self._methods = {rpc.request: _method(self._connection.channel, rpc) for rpc in RPCS.values()}

    async def call(self, caller: Caller, request: Request[R]) -> R:
        """The response of the server.

        Raises:
            AstrocyteError: See the class of the request.
            TypeError: The request is none of an RPC that returns one response.
        """
        rpc, invoke, codec = self._method(request, streaming=False)
        if codec is None:
            return await self._stream_retain(invoke, caller, request)  # type: ignore[arg-type,return-value]
        message = codec.encode_request(request)
        metadata = self._connection.metadata(caller, _bank(rpc, request))
        try:
            response = await invoke(message, timeout=self._deadline(rpc, request), metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        decoded: R = codec.decode_response(response, request)
        return decoded

    async def stream(self, caller: Caller, request: StreamRequest[R]) -> AsyncIterator[R]:
        """The responses of the server as they come; raises what `call` does."""
        rpc, invoke, codec = self._method(request, streaming=True)
        sent: Any
        decode: Any
        if codec is None:
            assert isinstance(request, ImportBank)  # noqa: S101 - the other one, StreamRetain, is no stream here
            sent, decode = _archive(request), _import_state
        else:
            sent, decode = codec.encode_request(request), codec.decode_response
        call = invoke(sent, metadata=self._connection.metadata(caller, _bank(rpc, request)))
        try:
            async for response in call:
                yield decode(response, request)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        finally:
            call.cancel()

    def with_key(self, api_key: str) -> RemoteBackend:
        """The same connection with another API key or token, for a caller whose call is passed on.

        Raises:
            ValidationError: The key is not printable ASCII.
        """
        if not api_key.isascii() or not api_key.isprintable():
            raise ValidationError("expected printable ASCII, for metadata carries no other", field="authorization")
        other = copy(self)
        other._connection = self._connection.with_key(api_key)  # noqa: SLF001 - own class
        return other

    async def close(self) -> None:
        """Close the connection; calls in progress are cancelled."""
        await self._connection.close()

    def _method(self, request: object, *, streaming: bool) -> Method:
        method = self._methods.get(type(request))
        if method is None or method.rpc.server_streaming is not streaming:
            raise unknown(request)
        return method

    def _deadline(self, rpc: Rpc, request: Any) -> float | None:  # noqa: ANN401 - any request
        if self._timeout is None or not rpc.waits:
            return self._timeout
        return self._timeout + (USUAL_WAIT_SECONDS if request.timeout is None else max(request.timeout, 0.0))

    async def _stream_retain(
        self,
        invoke: Any,  # noqa: ANN401 - a method of a channel
        caller: Caller,
        request: StreamRetain,
    ) -> list[RetainResult | AstrocyteError]:
        """Send the items as a stream; an item's own failure stands in its place."""
        metadata = self._connection.metadata(caller, request.bank_id)
        count, ids = len(request.items), request.request_ids
        if ids and len(ids) != count:
            raise ValidationError(f"expected {count} or none, got {len(ids)}", field="request_ids")
        outcomes: dict[int, RetainResult | AstrocyteError] = {}
        messages: list[Message] = []
        for index, item in enumerate(request.items):
            rest = {"bank_id": request.bank_id, "request_id": ids[index] if ids else None}
            try:
                with encoding({**rest, "": item}):
                    fields: dict[str, Any] = {"sequence": index, "item": ITEMS.write(item), **rest}
                    messages.append(memory_pb2.StreamRetainRequest(**fields))
            except ValidationError as error:
                outcomes[index] = error
        try:
            async for response in invoke(iter(messages), metadata=metadata):
                outcomes[response.sequence] = _outcome(response)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None
        return [outcomes[index] for index in range(count)]


def _bank(rpc: Rpc, request: object) -> object:
    """The id of the bank that a request names, None where it names none or several."""
    value: object = request
    for name in filter(None, rpc.bank.split(".")):
        value = getattr(value, name, None)
    return value


async def _archive(request: ImportBank) -> AsyncIterator[Message]:
    """The messages of an archive: its bytes, cut to the size of a message."""
    with encoding({"": request}):
        first = admin_pb2.ImportBankRequest(
            bank_id=request.bank_id,
            on_conflict=ACTIONS.encode(request.on_conflict),
            **{f"include_{part}": getattr(request, f"include_{part}") for part in OPTIONAL_PARTS},
        )
    yield first
    await asyncio.sleep(REFUSAL_SECONDS)
    async for data in request.archive:
        for start in range(0, len(data), ARCHIVE_MESSAGE_BYTES):
            yield admin_pb2.ImportBankRequest(data=data[start : start + ARCHIVE_MESSAGE_BYTES])


def _import_state(message: Any, _: object) -> ImportProgress:  # noqa: ANN401 - a message
    state: ImportProgress = STATES.decode(message)
    return state


def _method(channel: grpc.aio.Channel, rpc: Rpc) -> Method:
    descriptor = descriptor_of(rpc)
    kinds = {
        (False, False): channel.unary_unary,
        (False, True): channel.unary_stream,
        (True, True): channel.stream_stream,
    }
    make: Any = kinds[descriptor.client_streaming, descriptor.server_streaming]
    invoke = make(
        f"/{rpc.service}/{rpc.name}",
        request_serializer=GetMessageClass(descriptor.input_type).SerializeToString,
        response_deserializer=GetMessageClass(descriptor.output_type).FromString,
    )
    return Method(rpc, invoke, None if rpc.client_streaming else codec_of_rpc(rpc))


def _outcome(response: memory_pb2.StreamRetainResponse) -> RetainResult | AstrocyteError:
    """The result of one item of a stream, or its failure."""
    if response.HasField("error"):
        return from_status(response.error)
    result: RetainResult = RETAIN_RESULTS.decode(response.result)
    return result
