"""The synchronous client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from astrocyte_client.methods import Methods


class Client(Methods):
    """Calls a server; safe for use by several threads. Made by `connect`."""

    def __init__(self, channel: grpc.Channel, *, api_key: str | None, timeout: float | None) -> None:
        self._channel = channel
        self._api_key = api_key
        self._timeout = timeout
        self._stubs: dict[Any, Any] = {}

    def close(self) -> None:
        """Close the connection; calls in progress are cancelled."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _invoke(self, rpc: Rpc) -> Any:
        if rpc.stub not in self._stubs:
            self._stubs[rpc.stub] = rpc.stub(self._channel)
        return getattr(self._stubs[rpc.stub], rpc.name)

    def _unary(
        self, rpc: Rpc, request: Any, fields: Mapping[str, Any], deadline: Deadline, headers: Mapping[str, str] | None
    ) -> Any:
        message = rpc.message(request, fields)
        metadata = call_metadata(self._api_key, rpc.headers(message), headers)
        try:
            return self._invoke(rpc)(message, timeout=rpc.deadline(message, self._timeout, deadline), metadata=metadata)
        except grpc.RpcError as error:
            raise error_from_call(error.code(), error.details(), error.trailing_metadata()) from None

    def _server_stream(
        self, rpc: Rpc, request: Any, fields: Mapping[str, Any], deadline: Deadline, headers: Mapping[str, str] | None
    ) -> Iterator[Any]:
        message = rpc.message(request, fields)
        metadata = call_metadata(self._api_key, rpc.headers(message), headers)
        call = self._invoke(rpc)(message, timeout=None if deadline is UNSET else deadline, metadata=metadata)
        return _responses(call)

    def _stream(
        self, rpc: Rpc, requests: Iterable[Any], deadline: Deadline, headers: Mapping[str, str] | None
    ) -> Iterator[Any]:
        metadata = call_metadata(self._api_key, (), headers)
        call = self._invoke(rpc)(iter(requests), timeout=None if deadline is UNSET else deadline, metadata=metadata)
        return _responses(call)


def _responses(call: Any) -> Iterator[Any]:
    """The responses of a stream; the call ends with the iterator."""
    try:
        yield from call
    except grpc.RpcError as error:
        raise error_from_call(error.code(), error.details(), error.trailing_metadata()) from None
    finally:
        call.cancel()


def connect(  # noqa: PLR0913 - the options of a connection
    address: str,
    *,
    api_key: str | None = None,
    tls: bool = False,
    ca: File | None = None,
    certificate: File | None = None,
    key: File | None = None,
    timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
    retries: bool = True,
) -> Client:
    """Connect to a server. Nothing is sent before the first call.

    Args:
        address: ``host:port``, or ``unix:PATH``.
        api_key: API key or token, sent with every call. Use it with TLS, except to this machine.
        tls: Use TLS; ``ca`` and ``certificate`` imply it.
        ca: PEM file of the roots to trust; None trusts the system's.
        certificate: PEM file of the client's certificate, with its chain.
        key: PEM file of the certificate's private key.
        timeout: Seconds until a call fails that is no stream; None leaves it to the server.
        retries: Repeat calls that the server could not take, by `service_config.json`.

    Raises:
        ValueError: Only one of certificate and key is given.
        OSError: A file cannot be read.
    """
    secret = credentials(tls=tls, ca=ca, certificate=certificate, key=key)
    options = channel_options(retries=retries)
    channel = (
        grpc.insecure_channel(address, options) if secret is None else grpc.secure_channel(address, secret, options)
    )
    return Client(channel, api_key=api_key, timeout=timeout)
