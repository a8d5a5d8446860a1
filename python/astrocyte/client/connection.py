"""A channel to a server, and the metadata of each call."""

from __future__ import annotations

import re
from copy import copy

import grpc

from astrocyte.config.limits import MOST_ANSWER_BYTES
from astrocyte.errors import ValidationError
from astrocyte.model import DEFAULT_PRINCIPAL, DEFAULT_TENANT, Caller
from astrocyte.services.authentication import BEHALF_HEADER, HOPS_HEADER, PRINCIPAL_HEADER, TENANT_HEADER
from astrocyte.services.propagation import trace_headers

# A proxy in between finds the server of a bank by it. Ids as the protocol has them; others are the server's to refuse.
BANK_HEADER = "x-astrocyte-bank"
BANK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}")
# A server that was down is tried again at least this often; the default grows to two minutes.
MAX_RECONNECT_MS = 5_000


class Connection:
    """A channel with a credential; nothing is sent before the first call.

    Args:
        address: ``host:port``, or ``unix:PATH``.
        api_key: Sent with every call.
        credentials: TLS; None speaks plain text.
    """

    def __init__(self, address: str, *, api_key: str | None, credentials: grpc.ChannelCredentials | None) -> None:
        options = [
            ("grpc.max_receive_message_length", MOST_ANSWER_BYTES),
            ("grpc.max_reconnect_backoff_ms", MAX_RECONNECT_MS),
        ]
        if credentials is None:
            self.channel = grpc.aio.insecure_channel(address, options=options)
        else:
            self.channel = grpc.aio.secure_channel(address, credentials, options=options)
        self._credential = _credential(api_key)

    def with_key(self, api_key: str) -> Connection:
        """The same channel with another credential; closing either closes both."""
        other = copy(self)
        other._credential = _credential(api_key)  # noqa: SLF001 - own class
        return other

    def metadata(self, caller: Caller, bank_id: object = None) -> tuple[tuple[str, str], ...]:
        """The metadata of a call by this caller, about one bank or none.

        Raises:
            ValidationError: A name of the caller is not printable ASCII.
        """
        return (*self._credential, *_claims(caller), *_bank(bank_id))

    async def close(self) -> None:
        """Close the channel; calls in progress are cancelled."""
        await self.channel.close()


def _credential(api_key: str | None) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {api_key}"),) if api_key else ()


def _bank(bank_id: object) -> tuple[tuple[str, str], ...]:
    return ((BANK_HEADER, bank_id),) if isinstance(bank_id, str) and BANK_ID.fullmatch(bank_id) else ()


def _claims(caller: Caller) -> tuple[tuple[str, str], ...]:
    """The names of the caller, which the server compares with the credential, and its trace."""
    if caller == Caller():
        return trace_headers()
    said = (
        (TENANT_HEADER, caller.tenant, DEFAULT_TENANT),
        (PRINCIPAL_HEADER, caller.principal, DEFAULT_PRINCIPAL),
        (BEHALF_HEADER, caller.on_behalf_of, None),
        (HOPS_HEADER, str(caller.hops), "0"),
    )
    claims = tuple((header, value) for header, value, usual in said if value is not None and value != usual)
    for header, value in claims:
        if not value.isascii() or not value.isprintable():
            raise ValidationError("expected printable ASCII, for metadata carries no other", field=header)
    return (*claims, *trace_headers())
