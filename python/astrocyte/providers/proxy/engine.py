"""A proxy source as an engine that can only be recalled from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import httpx

from astrocyte.config.sources.proxies import (
    BANK,
    QUERY,
    RESULTS,
    ClientCredentialsAuth,
    ProxySource,
    RefreshTokenAuth,
)
from astrocyte.errors import CapabilityNotSupported, ConfigError, FailedPrecondition
from astrocyte.model import ForgetResult, ForgetSelector, RecallQuery, ReflectQuery, RetainResult
from astrocyte.providers.engines import (
    EngineAnswer,
    EngineCall,
    EngineCapabilities,
    EngineHealth,
    EngineItem,
    EngineReflection,
)
from astrocyte.providers.proxy import requests, rows
from astrocyte.providers.proxy.addresses import Resolve, resolve
from astrocyte.providers.proxy.answers import Answers, Sized
from astrocyte.providers.proxy.credentials import Credentials, FixedCredentials, OAuthCredentials
from astrocyte.providers.proxy.egress import Bounds, Egress, Reply
from astrocyte.providers.proxy.token_file import TokenFile

# A response that is late is of use to the next recall for so many timeouts; then it is given up.
LATE = 10.0
# For the responses of token endpoints.
TOKEN_BYTES = 262_144
# As other servers of this kind know them; any other service ignores them.
BEHALF_HEADER, HOPS_HEADER = "x-astrocyte-on-behalf-of", "x-astrocyte-hops"


class ProxyEngine:
    """`EngineProvider` over HTTP.

    Args:
        name: Id of the source.
        source: Its settings.
        directory: Where a replaced refresh token is kept; None keeps it in this process only.
        resolver: Addresses of a host.
        transport: Replaces the network, beyond the choice of the address.

    Raises:
        ConfigError: The file of root certificates cannot be used.
    """

    def __init__(
        self,
        name: str,
        source: ProxySource,
        directory: Path | None,
        *,
        resolver: Resolve = resolve,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._source = source
        late = source.recall_timeout_seconds * (LATE if source.cache_seconds else 1.0)

        def egress(what: str, most_bytes: int, seconds: float) -> Egress:
            bounds = Bounds(source.allow_networks, most_bytes, seconds, source.max_requests)
            try:
                return Egress(what, bounds, roots=source.tls_roots_file, resolver=resolver, transport=transport)
            except OSError as error:
                raise ConfigError(
                    f"sources.{name}.tls_roots_file: cannot be used ({type(error).__name__})",
                    metadata={"key": f"sources.{name}.tls_roots_file"},
                ) from error

        self._egress = egress(f"source {name!r}", source.max_response_bytes, late)
        self._credentials: Credentials
        match source.auth:
            case ClientCredentialsAuth() | RefreshTokenAuth() as auth:
                kept = None
                if isinstance(auth, RefreshTokenAuth):
                    path = None if directory is None else directory / f"{name}.token"
                    kept = TokenFile(path, auth.refresh_token.get_secret_value())
                # At most of the length of a recall from any source.
                endpoint = egress(f"token endpoint of source {name!r}", TOKEN_BYTES, 60.0)
                self._credentials = OAuthCredentials(auth, endpoint, kept)
            case fixed:
                self._credentials = FixedCredentials(fixed)
        self._answers = Answers(source.cache_seconds, source.max_requests)
        self._headers = {key: value.get_secret_value() for key, value in source.headers.items()}

    def capabilities(self) -> EngineCapabilities:
        """Recalls of the present."""
        return EngineCapabilities(retain=False, forget=False)

    async def health(self) -> EngineHealth:
        """Healthy: without a question there is nothing to ask. The circuit says how recalls went."""
        return EngineHealth(healthy=True, detail="state of the circuit")

    async def recall(self, call: EngineCall, query: RecallQuery) -> EngineAnswer:
        """The hits of the response.

        Raises:
            ProviderUnavailable: The service failed, or answered with something else.
        """
        # The parts of a question that change the request or the answer; who asks is one of them.
        key = (call.tenant, call.principal, call.bank_id, call.hops, query.query, query.max_results)
        return await self._answers.of(key, lambda: self._asked(call, query))

    async def retain(self, call: EngineCall, items: Sequence[EngineItem]) -> Sequence[RetainResult]:
        """Not supported."""
        raise _only_read(call, items)

    async def reflect(self, call: EngineCall, query: ReflectQuery) -> EngineReflection:
        """Not supported."""
        raise _only_read(call, query)

    async def forget(
        self, call: EngineCall, selector: ForgetSelector, *, compliance: bool, reason: str | None
    ) -> ForgetResult:
        """Not supported."""
        raise _only_read(call, selector, compliance, reason)

    async def close(self) -> None:
        """Close the connections."""
        await self._answers.close()
        await self._credentials.close()
        await self._egress.close()

    async def _asked(self, call: EngineCall, query: RecallQuery) -> Sized:
        reply = await self._sent(call, query)
        if httpx.codes.is_client_error(reply.status):
            # It is about the question, or about who asks: nothing that would concern other calls.
            raise FailedPrecondition(f"{self._egress.name} refused: status {reply.status}")
        if reply.status != httpx.codes.OK:
            redirected = "; redirects are not followed" if httpx.codes.is_redirect(reply.status) else ""
            raise self._egress.failure(f"answered {reply.status}{redirected}")
        found = rows.hits(self._source.mapping, reply.body, query.max_results)
        if found is None:
            raise self._egress.failure("answered without a list of hits; see mapping.hits")
        return Sized(EngineAnswer(found), len(reply.body))

    async def _sent(self, call: EngineCall, query: RecallQuery) -> Reply:
        values: dict[str, str | int] = {QUERY: query.query, BANK: call.bank_id, RESULTS: query.max_results}
        url, body = requests.address(self._source, values), requests.body(self._source, values)
        headers = {**self._headers, HOPS_HEADER: str(call.hops)}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._source.principal is not None:
            headers[BEHALF_HEADER] = self._source.principal
        elif self._source.forward_principal and call.principal:
            if not (call.principal.isascii() and call.principal.isprintable()):
                raise FailedPrecondition(f"{self._egress.name} cannot be told a principal that is not printable ASCII")
            headers[BEHALF_HEADER] = call.principal
        credential = await self._credentials.headers()
        reply = await self._egress.send(self._source.recall_method, url, {**headers, **credential}, body)
        if reply.status == httpx.codes.UNAUTHORIZED and self._credentials.refused(credential):
            credential = await self._credentials.headers()
            reply = await self._egress.send(self._source.recall_method, url, {**headers, **credential}, body)
        return reply


def _only_read(*_: object) -> CapabilityNotSupported:
    return CapabilityNotSupported("a proxy source is only read")
