"""Who calls: tenant and principal come from the credential, never from a request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from grpc.aio import ServicerContext

from astrocyte.config import Settings
from astrocyte.errors import AuthorizationError
from astrocyte.model import DEFAULT_TENANT, Caller

HEADER = "authorization"
SCHEME = "bearer "

Metadata = Iterable[tuple[str, str | bytes]]
Authenticate = Callable[[Metadata, ServicerContext[Any, Any]], Caller]


def authenticator(settings: Settings) -> Authenticate:
    """The check that the settings ask for: API keys, else client certificates, else none."""
    if settings.auth.api_keys:
        callers = {key.sha256: Caller(key.tenant, key.principal) for key in settings.auth.api_keys}
        return lambda metadata, _: _by_key(callers, metadata)
    if settings.server.tls_client_ca_file is not None:
        return lambda _, context: _by_certificate(context)
    # Without credentials the server listens on loopback only (or was told to be insecure): everybody is the local user.
    local = Caller()
    return lambda _metadata, _context: local


def _by_key(callers: dict[str, Caller], metadata: Metadata) -> Caller:
    """The caller that a bearer key stands for.

    Keys are looked up by their hash, so that how long the look-up takes tells nothing about a key.
    """
    value = next((value for key, value in metadata if key == HEADER), None)
    if value is None:
        raise AuthorizationError("no credential; send the metadata 'authorization: Bearer <api key>'")
    if not isinstance(value, str) or not value.lower().startswith(SCHEME):
        raise AuthorizationError("the credential is of another kind; send 'authorization: Bearer <api key>'")
    digest = hashlib.sha256(value[len(SCHEME) :].strip().encode()).hexdigest()
    caller = callers.get(digest)
    if caller is None:
        raise AuthorizationError("the API key is not known to this server; check it, or ask for a new one")
    return caller


def _by_certificate(context: ServicerContext[Any, Any]) -> Caller:
    """The caller that a verified client certificate names: its subject's common name."""
    names = context.auth_context().get("x509_common_name", ())
    name = next(iter(names), b"").decode("utf-8", "replace")
    if not name:
        raise AuthorizationError("the client certificate has no common name, which would be the principal")
    return Caller(DEFAULT_TENANT, name)
