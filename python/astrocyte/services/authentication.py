"""Identity of callers: tenant and principal come from the credential, never from a request.

Metadata may say who the caller thinks it is, and is refused where the credential says otherwise. It may name another
for whom the call is made, which can only narrow what the call may do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any, Protocol

from astrocyte.config import Settings
from astrocyte.errors import AuthorizationError, ConfigError, ValidationError
from astrocyte.model import DEFAULT_PRINCIPAL, DEFAULT_TENANT, Caller
from astrocyte.policy.requests import field_checks

HEADER = "authorization"
SCHEME = "bearer "
TENANT_HEADER = "x-astrocyte-tenant"
PRINCIPAL_HEADER = "x-astrocyte-principal"
BEHALF_HEADER = "x-astrocyte-on-behalf-of"
# How many servers a call has passed; see `Caller.hops`.
HOPS_HEADER = "x-astrocyte-hops"
CLAIMS = frozenset({TENANT_HEADER, PRINCIPAL_HEADER, BEHALF_HEADER, HOPS_HEADER})
# Two digits: no chain of servers is longer.
HOPS = re.compile(r"[0-9]{1,2}")
# Where grpc puts what a verified client certificate says, the alternative names before the common one.
CERTIFICATE_NAMES = ("x509_subject_alternative_name", "x509_common_name")

Metadata = Iterable[tuple[str, str | bytes]]


class Peer(Protocol):
    """The other side of a connection."""

    def auth_context(self) -> dict[str, list[bytes]]:
        """The names in its verified certificate, under gRPC's keys; empty without one."""


# To be awaited where the keys of an issuer must be fetched first.
Authenticate = Callable[[Metadata, Peer], Caller | Coroutine[Any, Any, Caller]]
Bearer = Callable[[str], Caller | Coroutine[Any, Any, Caller]]


def authenticator(settings: Settings, keys: Callable[[str], Caller | None] | None = None) -> Authenticate:
    """The check that the settings ask for: bearer credentials, client certificates, or none.

    ``keys`` knows the keys that were made by call, and says None to what is no such key.

    Raises:
        ConfigError: Tokens are to be accepted, and what verifies them is not installed, or has no keys.
    """
    bearer = Bearers(settings, keys)
    certificate = _certificates(settings)
    local = None if settings.auth.demanded else Caller()

    def authenticate(metadata: Metadata, peer: Peer) -> Caller | Coroutine[Any, Any, Caller]:
        credential: str | bytes | None = None
        claims: dict[str, str | bytes] | None = None
        for key, value in metadata:
            if key == HEADER:
                if credential is not None:
                    raise AuthorizationError("there are two credentials; send one")
                credential = value
            elif key in CLAIMS:
                claims = _added(claims or {}, key, value)
        if credential is not None:
            caller = bearer(credential)
        elif certificate is not None:
            caller = certificate(peer)
        elif local is not None:
            caller = local
        else:
            raise AuthorizationError("no credential; send the metadata 'authorization: Bearer <key or token>'")
        if claims is None:
            return caller
        return _claimed(caller, claims) if isinstance(caller, Caller) else _claimed_later(caller, claims)

    return authenticate


class Bearers:
    """Keys and tokens: a credential is verified as the kind that its form declares."""

    def __init__(self, settings: Settings, keys: Callable[[str], Caller | None] | None) -> None:
        self._keys = keys
        self._callers = {key.sha256: Caller(key.tenant, key.principal) for key in settings.auth.api_keys}
        self._token = _tokens(settings) if settings.auth.jwt.issuer is not None else None

    def __call__(self, value: str | bytes) -> Caller | Coroutine[Any, Any, Caller]:
        """The caller that the value of an authorization header names.

        Raises:
            AuthorizationError: The credential is of another kind, or not known.
        """
        if not isinstance(value, str) or value[: len(SCHEME)].lower() != SCHEME:
            raise AuthorizationError("the credential is of another kind; send 'authorization: Bearer <key or token>'")
        secret = value[len(SCHEME) :].strip()
        caller = None if self._keys is None else self._keys(secret)
        if caller is not None:
            return caller
        # Keys are looked up by their hash, so that how long the look-up takes tells nothing about a key.
        caller = self._callers.get(hashlib.sha256(secret.encode()).hexdigest())
        if caller is not None:
            return caller
        if self._token is not None and secret.count(".") == 2:  # noqa: PLR2004 - header.claims.signature
            return self._token(secret)
        raise AuthorizationError("the key is not known to this server; check it, or ask for a new one")


def _tokens(settings: Settings) -> Bearer:
    try:
        from astrocyte.policy.auth.jwks import KeySet  # noqa: PLC0415 - PyJWT is an extra
        from astrocyte.policy.auth.jwt_verifier import Tokens  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"auth.jwt needs {error.name}, which is not installed; install astrocyte-grpc[jwt]",
            metadata={"key": "auth.jwt"},
        ) from error
    return Tokens(settings.auth.jwt, KeySet(settings.auth.jwt)).caller


def _certificates(settings: Settings) -> Callable[[Peer], Caller] | None:
    """By the names of a verified client certificate: those that are listed, or any by its common name."""
    if settings.server.tls_client_ca_file is None:
        if settings.auth.certificates:
            raise ConfigError(
                "auth.certificates needs server.tls_client_ca_file, by which clients show a certificate",
                metadata={"key": "auth.certificates"},
            )
        return None
    listed = {one.identity: Caller(one.tenant, one.principal) for one in settings.auth.certificates}

    def authenticate(peer: Peer) -> Caller:
        found = peer.auth_context()
        names = [name.decode("utf-8", "replace") for kind in CERTIFICATE_NAMES for name in found.get(kind, ())]
        if listed:
            caller = next((listed[name] for name in names if name in listed), None)
            if caller is None:
                raise AuthorizationError("the client certificate is not known to this server")
            return caller
        common = next(iter(found.get("x509_common_name", ())), b"").decode("utf-8", "replace")
        if not common or common == DEFAULT_PRINCIPAL:
            raise AuthorizationError("the client certificate has no common name, which would be the principal")
        return Caller(DEFAULT_TENANT, common)

    return authenticate


def _added(claims: dict[str, str | bytes], key: str, value: str | bytes) -> dict[str, str | bytes]:
    """The claims with one more.

    Raises:
        ValidationError: It is among them; proxies between would decide which value holds.
    """
    if key in claims:
        raise ValidationError("is more than once in the metadata of the call, expected once; send one value", field=key)
    claims[key] = value
    return claims


def _claimed(caller: Caller, claims: dict[str, str | bytes]) -> Caller:
    """The caller, where the metadata says the same of it; with the one for whom it acts.

    Raises:
        AuthorizationError: The metadata says something else.
        ValidationError: The number of servers is none.
    """
    for header, name in ((TENANT_HEADER, caller.tenant), (PRINCIPAL_HEADER, caller.principal)):
        if claims.get(header, name) != name:
            raise AuthorizationError(f"the metadata {header} is not what the credential says; leave it out")
    hops = claims.get(HOPS_HEADER)
    if hops is not None:
        if not isinstance(hops, str) or not HOPS.fullmatch(hops):
            raise ValidationError("expected a number from 0 to 99", field=HOPS_HEADER)
        caller = replace(caller, hops=int(hops))
    behalf = claims.get(BEHALF_HEADER)
    if behalf is None:
        return caller
    if caller.on_behalf_of not in {None, behalf}:
        raise AuthorizationError(f"the metadata {BEHALF_HEADER} is not what the credential says; leave it out")
    field_checks.name(behalf, BEHALF_HEADER)
    return replace(caller, on_behalf_of=str(behalf))


async def _claimed_later(caller: Coroutine[Any, Any, Caller], claims: dict[str, str | bytes]) -> Caller:
    return _claimed(await caller, claims)
