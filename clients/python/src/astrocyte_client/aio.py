"""The asyncio client."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

import grpc

from astrocyte_client.connection import (
    DEFAULT_TIMEOUT_SECONDS,
    UNSET,
    Deadline,
    File,
    Rpc,
    call_metadata,
    channel_options,
    credentials,
)
from astrocyte_client.errors import error_from_call
from astrocyte_client.methods import AsyncMethods


class AsyncClient(AsyncMethods):
    """Calls a server from one event loop. Made by `connect_async`."""

    def __init__(self, channel: grpc.aio.Channel, *, api_key: str | None, timeout: float | None) -> None:
        self._channel = channel
        self._api_key = api_key
        self._timeout = timeout
        self._stubs: dict[Any, Any] = {}

    async def close(self) -> None:
        """Close the connection; calls in progress are cancelled."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _invoke(self, rpc: Rpc) -> Any:
        if rpc.stub not in self._stubs:
            self._stubs[rpc.stub] = rpc.stub(self._channel)
        return getattr(self._stubs[rpc.stub], rpc.name)

    async def _unary(
        self, rpc: Rpc, request: Any, fields: Mapping[str, Any], deadline: Deadline, headers: Mapping[str, str] | None
    ) -> Any:
        message = rpc.message(request, fields)
        metadata = call_metadata(self._api_key, rpc.headers(message), headers)
        seconds = rpc.deadline(message, self._timeout, deadline)
        try:
            return await self._invoke(rpc)(message, timeout=seconds, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise error_from_call(error.code(), error.details(), error.trailing_metadata()) from None

    def _server_stream(
        self, rpc: Rpc, request: Any, fields: Mapping[str, Any], deadline: Deadline, headers: Mapping[str, str] | None
    ) -> AsyncIterator[Any]:
        message = rpc.message(request, fields)
        metadata = call_metadata(self._api_key, rpc.headers(message), headers)
        call = self._invoke(rpc)(message, timeout=None if deadline is UNSET else deadline, metadata=metadata)
        return _responses(call)

    def _stream(
        self,
        rpc: Rpc,
        requests: Iterable[Any] | AsyncIterable[Any],
        deadline: Deadline,
        headers: Mapping[str, str] | None,
    ) -> AsyncIterator[Any]:
        metadata = call_metadata(self._api_key, (), headers)
        call = self._invoke(rpc)(requests, timeout=None if deadline is UNSET else deadline, metadata=metadata)
        return _responses(call)


async def _responses(call: Any) -> AsyncIterator[Any]:
    """The responses of a stream; the call ends with the iterator."""
    try:
        async for response in call:
            yield response
    except grpc.aio.AioRpcError as error:
        raise error_from_call(error.code(), error.details(), error.trailing_metadata()) from None
    finally:
        call.cancel()


def connect_async(  # noqa: PLR0913 - the options of a connection
    address: str,
    *,
    api_key: str | None = None,
    tls: bool = False,
    ca: File | None = None,
    certificate: File | None = None,
    key: File | None = None,
    timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
    retries: bool = True,
) -> AsyncClient:
    """Connect to a server from asyncio. Parameters and errors are those of `connect`."""
    secret = credentials(tls=tls, ca=ca, certificate=certificate, key=key)
    options = channel_options(retries=retries)
    channel = (
        grpc.aio.insecure_channel(address, options)
        if secret is None
        else grpc.aio.secure_channel(address, secret, options)
    )
    return AsyncClient(channel, api_key=api_key, timeout=timeout)
