"""Parts of a connection that the synchronous and the asynchronous client share: channel options and calls."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.message import Message

BANK_HEADER = "x-astrocyte-bank"
# Ids of banks, as the protocol describes them. Others are left to the server, whose error names the field.
BANK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}")
# Longer than the deadlines that the server sets by itself, so that its own error comes first.
DEFAULT_TIMEOUT_SECONDS = 30.0
# A server that was down is tried again at least this often; the default of gRPC grows to two minutes.
MAX_RECONNECT_MS = 5_000
# The largest answer that a server can be set to send.
MAX_RECEIVE_BYTES = 64 * 1024 * 1024

File = Path | str


class Unset:
    """Type of the default of ``deadline``: that of the client."""


UNSET = Unset()
Deadline = float | None | Unset


@dataclass(frozen=True, slots=True)
class Rpc:
    """One RPC of the protocol; see `astrocyte_client.methods`.

    Attributes:
        name: Name in the protocol.
        stub: Class of its service's stub.
        request: Class of its request.
        bank: Path of the field that names its bank; empty without one.
        has_request_id: True if an empty ``request_id`` is filled, so that a repeated call takes effect once.
        has_timeout: True if the request has the time that the server waits.
        extra_seconds: Added to the default deadline.
    """

    name: str
    stub: Any
    request: type[Message]
    bank: tuple[str, ...] = ()
    has_request_id: bool = False
    has_timeout: bool = False
    extra_seconds: float = 0.0

    def message(self, request: Any, fields: Mapping[str, Any]) -> Any:
        """The request of a call, from a message or from its fields.

        Raises:
            TypeError: Both are given.
        """
        if request is not None and fields:
            raise TypeError(f"{self.name} takes a {self.request.__name__} or its fields, not both")
        message: Any = self.request(**fields) if request is None else request
        if self.has_request_id and not message.request_id:
            copy = self.request()
            copy.CopyFrom(message)
            copy.request_id = str(uuid.uuid4())  # type: ignore[attr-defined] # all with `has_request_id` have it
            return copy
        return message

    def deadline(self, message: Any, timeout: float | None, given: Deadline) -> float | None:
        """Seconds until the call fails; None for no deadline of the client."""
        if not isinstance(given, Unset):
            return given
        if timeout is None:
            return None
        if self.has_timeout and message.HasField("timeout"):
            return timeout + max(0.0, float(message.timeout.ToMilliseconds()) / 1_000)
        return timeout + self.extra_seconds

    def headers(self, message: Any) -> tuple[tuple[str, str], ...]:
        """Metadata of the call: the bank that it names."""
        value = message
        for name in self.bank:
            value = getattr(value, name)
        if self.bank and BANK_ID.fullmatch(value):
            return ((BANK_HEADER, value),)
        return ()


def service_config() -> str:
    """The retry policy, as JSON."""
    return resources.files("astrocyte_client").joinpath("service_config.json").read_text(encoding="utf-8")


def channel_options(*, retries: bool) -> list[tuple[str, Any]]:
    """Options of a channel."""
    return [
        ("grpc.enable_retries", int(retries)),
        ("grpc.max_receive_message_length", MAX_RECEIVE_BYTES),
        ("grpc.max_reconnect_backoff_ms", MAX_RECONNECT_MS),
        ("grpc.service_config", json.dumps(json.loads(service_config()))),
    ]


def credentials(
    *, tls: bool, ca: File | None, certificate: File | None, key: File | None
) -> grpc.ChannelCredentials | None:
    """Credentials of a channel; None for plain text.

    Raises:
        ValueError: Only one of certificate and key is given.
        OSError: A file cannot be read.
    """
    if (certificate is None) != (key is None):
        raise ValueError("a client certificate needs two files: pass both certificate and key")
    if not tls and ca is None and certificate is None:
        return None
    roots, chain, secret = (None if file is None else Path(file).read_bytes() for file in (ca, certificate, key))
    return grpc.ssl_channel_credentials(roots, secret, chain)


def call_metadata(
    api_key: str | None, own: Iterable[tuple[str, str]], headers: Mapping[str, str] | None
) -> tuple[tuple[str, str], ...]:
    """Metadata of a call: the API key, what the client sets, and what the caller adds."""
    credential = (("authorization", f"Bearer {api_key}"),) if api_key else ()
    return (*credential, *own, *(headers or {}).items())
