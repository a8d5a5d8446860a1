"""Requests to one other service, bounded in where they go, in bytes and in time.

The host is resolved once for each request. Every address that comes of it must be allowed, and the connection is made
to one of these addresses, so that another answer of the name server cannot lead elsewhere; certificates are verified
for the name. Redirects are not followed, and proxies of the environment are not used.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path

import httpx

from astrocyte.errors import DeadlineExceeded, ProviderUnavailable
from astrocyte.providers.proxy.addresses import Network, Resolve, is_allowed, parsed, resolve

# gzip and zlib by their headers.
_ANY_ZLIB = zlib.MAX_WBITS | 32
# Names of systems that are not this one's to reveal.
_USER_AGENT = "astrocyte"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of requests.

    Attributes:
        networks: What may be reached besides public addresses.
        most_bytes: Of a body, compressed and decompressed.
        seconds: Of a request, from the look-up of the name to the last byte.
        parallel: Requests in progress.
    """

    networks: Sequence[Network]
    most_bytes: int
    seconds: float
    parallel: int


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and decompressed body of a response, and its headers by lower-case name."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)


class Egress:
    """Makes requests to the host of one address.

    Args:
        name: What errors call the service.
        bounds: Of each request.
        accept: Media types that are asked for.
        roots: PEM root certificates; None for those of the package certifi.
        resolver: Addresses of a host.
        transport: Replaces the network, beyond the choice of the address.
    """

    def __init__(
        self,
        name: str,
        bounds: Bounds,
        *,
        accept: str = "application/json",
        roots: Path | None = None,
        resolver: Resolve = resolve,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.name = name
        self._bounds = bounds
        self._accept = accept
        self._resolve = resolver
        self._slots = asyncio.Semaphore(bounds.parallel)
        self._client = httpx.AsyncClient(
            verify=True if roots is None else ssl.create_default_context(cafile=roots),
            # What one answer sets must not be sent with the question of another caller.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            timeout=bounds.seconds,
            follow_redirects=False,
            trust_env=False,
            transport=transport,
            limits=httpx.Limits(max_connections=bounds.parallel, max_keepalive_connections=bounds.parallel),
        )

    async def send(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None) -> Reply:
        """Send a request and return the response, whatever its status.

        Raises:
            ProviderUnavailable: The host has no allowed address, does not answer, or not within the bounds of size.
            DeadlineExceeded: It does not answer in time.
        """
        try:
            async with asyncio.timeout(self._bounds.seconds), self._slots:
                return await self._sent(method, httpx.URL(url), headers, content)
        except (TimeoutError, httpx.TimeoutException) as error:
            raise DeadlineExceeded(f"{self.name} did not answer in {self._bounds.seconds:g} s") from error
        except httpx.InvalidURL as error:
            raise self.failure("has no valid address") from error
        except httpx.HTTPError as error:
            raise self.failure(f"did not answer ({type(error).__name__})") from error

    def failure(self, problem: str) -> ProviderUnavailable:
        """The error for a problem of this service; addresses and bodies are never repeated."""
        return ProviderUnavailable(f"{self.name} {problem}")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _sent(self, method: str, url: httpx.URL, headers: Mapping[str, str], content: bytes | None) -> Reply:
        port = url.port or {"http": 80, "https": 443}[url.scheme]
        addresses = await self._addresses(url.host, port)
        for left, address in reversed(list(enumerate(reversed(addresses)))):
            request = self._client.build_request(
                method,
                url.copy_with(host=address),
                content=content,
                headers={
                    **headers,
                    "Host": url.netloc.decode("ascii"),
                    "User-Agent": _USER_AGENT,
                    "Accept": self._accept,
                    "Accept-Encoding": "gzip",
                },
                # The certificate is that of the name, not of the address.
                extensions={"sni_hostname": url.host},
            )
            try:
                response = await self._client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if not left:
                    raise
                continue
            try:
                return Reply(response.status_code, await self._body(response), dict(response.headers))
            finally:
                await response.aclose()
        raise self.failure("has no address")

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise self.failure("has no address") from error
        addresses = [parsed(text) for text in found]
        if not addresses or not all(one is not None and is_allowed(one, self._bounds.networks) for one in addresses):
            # One that is not allowed is enough: a name with mixed answers is no accident.
            raise self.failure("has an address that is not allowed; see allow_networks")
        return [str(one) for one in addresses]

    async def _body(self, response: httpx.Response) -> bytes:
        """The body, decompressed as far as the bound allows."""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in {"identity", "gzip", "deflate"}:
            raise self.failure("sent an encoding that was not asked for")
        unpack = None if encoding == "identity" else zlib.decompressobj(_ANY_ZLIB)
        received, body = 0, bytearray()
        async for chunk in response.aiter_raw():
            received += len(chunk)
            if received > self._bounds.most_bytes:
                raise self._too_large()
            try:
                body += chunk if unpack is None else unpack.decompress(chunk, self._bounds.most_bytes + 1 - len(body))
            except zlib.error as error:
                raise self.failure("sent what cannot be decompressed") from error
            if len(body) > self._bounds.most_bytes:
                raise self._too_large()
        if unpack is not None and not unpack.eof:
            raise self.failure("sent what cannot be decompressed")
        return bytes(body)

    def _too_large(self) -> ProviderUnavailable:
        return self.failure(f"sent more than {self._bounds.most_bytes} bytes")
