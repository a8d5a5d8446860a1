"""A channel to a server, with what every call sends and how its failure is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc

from astrocyte.client.wire import (
    claims,
    roots,
    translate,
)
from astrocyte.model import (
    Caller,
)
from astrocyte.v1 import admin_pb2_grpc, memory_pb2_grpc

# Longer than any deadline that the server imposes by itself, so that its own answer comes first.
DEFAULT_TIMEOUT_SECONDS = 30.0
# Answers can be much larger than requests: 200 hits of 100 KiB each, and some air.
MAX_ANSWER_BYTES = 64 * 1_024 * 1_024
# A server that was down is tried again at least this often; the default grows to two minutes.
MAX_RECONNECT_MS = 5_000


class Connection:
    """Arguments are those of `astrocyte.connect`. Nothing is sent before the first call."""

    def __init__(
        self,
        address: str,
        *,
        api_key: str | None = None,
        tls: bool | Path | str = False,
        timeout: float | None = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        options = [
            ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
            ("grpc.max_reconnect_backoff_ms", MAX_RECONNECT_MS),
        ]
        if tls:
            credentials = grpc.ssl_channel_credentials(roots(tls))
            self._channel = grpc.aio.secure_channel(address, credentials, options=options)
        else:
            self._channel = grpc.aio.insecure_channel(address, options=options)
        self._metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        self._timeout = timeout
        self._memory = memory_pb2_grpc.MemoryServiceStub(self._channel)
        self._admin = admin_pb2_grpc.AdminServiceStub(self._channel)

    async def _call(self, caller: Caller, method: Any, request: Any, wait_seconds: float = 0.0) -> Any:  # noqa: ANN401 - generated stubs and messages
        metadata = (*self._metadata, *claims(caller))
        timeout = None if self._timeout is None else self._timeout + wait_seconds
        try:
            return await method(request, timeout=timeout, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            raise translate(error) from None

    async def close(self) -> None:
        """Close the connection; calls in progress are cancelled."""
        await self._channel.close()
