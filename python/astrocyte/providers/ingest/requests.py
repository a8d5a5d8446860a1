"""Requests of poll drivers over HTTP: bounded, to checked addresses only, with the service's wishes to wait."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from astrocyte.config.sources.polls import BasicAuth, PollAuth
from astrocyte.config.sources.proxies import OWN_HEADERS, VISIBLE, ClientCredentialsAuth, HeaderName, check_url
from astrocyte.errors import ConfigError, FailedPrecondition, ProviderUnavailable, RateLimited
from astrocyte.providers.proxy.addresses import Resolve, resolve
from astrocyte.providers.proxy.credentials import Credentials, FixedCredentials, OAuthCredentials
from astrocyte.providers.proxy.egress import Bounds, Egress, Reply

# What errors call any of them; the log and the state of the source have its id.
NAME = "the polled service"
# As common clients; more are a loop.
MOST_REDIRECTS = 5
# Of a limit whose answer does not say how long: GitHub asks for at least a minute.
DEFAULT_WAIT_SECONDS = 60.0
# For the responses of token endpoints.
TOKEN_BYTES = 262_144
# A driver asks one thing after the other.
PARALLEL = 1
LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[\w*-]+\s*=\s*(?:\"[^\"]*\"|[^\s\",;]+))*)")
NEXT = re.compile(r";\s*rel\s*=\s*(?:\"(?:[^\"]*\s)?next(?:\s[^\"]*)?\"|next(?![\w-]))", re.IGNORECASE)
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class HttpOptions(BaseModel):
    """Options of all drivers that ask over HTTP."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: SecretStr
    auth: PollAuth | None = None
    headers: dict[HeaderName, SecretStr] = Field(default_factory=dict)
    allow_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    tls_roots_file: Path | None = None
    timeout_seconds: float = Field(30.0, gt=0.0, le=600.0)
    max_response_bytes: int = Field(8_388_608, ge=1_024, le=67_108_864)

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: SecretStr) -> SecretStr:
        check_url(url.get_secret_value(), placeholders=False)
        return url

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if name.lower() in OWN_HEADERS | {"accept", "user-agent"}:
                raise ValueError(f"{name} is set by the server; leave it out")
            if not VISIBLE.fullmatch(value.get_secret_value()):
                raise ValueError(f"{name}: expected visible ASCII characters")
        return headers

    @property
    def address(self) -> str:
        """The address as text."""
        return self.url.get_secret_value()


class PollClient:
    """Asks one service.

    Redirects are followed, each to an address that is checked like the first. The credential and the headers of the
    settings are sent to the origin of the settings' address only.

    Args:
        options: Of the driver.
        accept: Media types that are asked for.
        clock: Seconds since 1970, for limits that name a time.
        resolver: Addresses of a host.
        transport: Replaces the network, beyond the choice of the address.

    Raises:
        ConfigError: A credential would be sent unencrypted, or the file of root certificates cannot be used.
    """

    def __init__(
        self,
        options: HttpOptions,
        accept: str,
        clock: Callable[[], float] = time.time,
        *,
        resolver: Resolve = resolve,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if options.auth is not None and options.address.startswith("http:") and not options.allow_networks:
            raise ConfigError(
                "sources.auth: a credential must not be sent unencrypted over public networks; use https",
                metadata={"key": "sources.auth"},
            )
        self._origin = _origin(options.address)
        self._clock = clock
        self._headers = {name: value.get_secret_value() for name, value in options.headers.items()}

        def egress(name: str, most_bytes: int, accept: str) -> Egress:
            bounds = Bounds(options.allow_networks, most_bytes, options.timeout_seconds, PARALLEL)
            roots = options.tls_roots_file
            try:
                return Egress(name, bounds, accept=accept, roots=roots, resolver=resolver, transport=transport)
            except OSError as error:
                raise ConfigError(
                    f"sources.options.tls_roots_file: cannot be used ({type(error).__name__})",
                    metadata={"key": "sources.options.tls_roots_file"},
                ) from error

        self._egress = egress(NAME, options.max_response_bytes, accept)
        self._credentials: Credentials
        match options.auth:
            case ClientCredentialsAuth() as auth:
                endpoint = egress(f"the token endpoint of {NAME}", TOKEN_BYTES, "application/json")
                self._credentials = OAuthCredentials(auth, endpoint, None)
            case BasicAuth() as auth:
                self._credentials = FixedCredentials(None)
                pair = f"{auth.username}:{auth.password.get_secret_value()}".encode()
                self._headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
            case fixed:
                self._credentials = FixedCredentials(fixed)

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Reply:
        """The response with status 200 or 304.

        Raises:
            RateLimited: The service asks to wait.
            FailedPrecondition: It refused; the metadata has the status.
            ProviderUnavailable, DeadlineExceeded: It failed, or its answer is beyond a bound.
        """
        reply = await self._followed(url, headers or {})
        wait = wait_of(reply, self._clock())
        if wait is not None:
            raise RateLimited(f"{NAME} asks to wait", retry_after=wait)
        if reply.status in {httpx.codes.OK, httpx.codes.NOT_MODIFIED}:
            return reply
        if httpx.codes.is_client_error(reply.status):
            raise FailedPrecondition(f"{NAME} refused: status {reply.status}", metadata={"status": str(reply.status)})
        raise self._egress.failure(f"answered {reply.status}")

    def failure(self, problem: str) -> ProviderUnavailable:
        """The error for an answer that is something else than expected."""
        return self._egress.failure(problem)

    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock()

    async def close(self) -> None:
        """Close the connections."""
        await self._credentials.close()
        await self._egress.close()

    async def _followed(self, url: str, headers: Mapping[str, str]) -> Reply:
        for _ in range(MOST_REDIRECTS + 1):
            reply = await self._sent(url, headers)
            target = reply.headers.get("location")
            if reply.status not in REDIRECTS or target is None:
                return reply
            url = self.joined(url, target)
        raise self._egress.failure(f"redirects more than {MOST_REDIRECTS} times")

    def joined(self, url: str, target: str) -> str:
        """The address that an answer of ``url`` names.

        Raises:
            ProviderUnavailable: It is no address for requests, or unencrypted where the first one is not.
        """
        try:
            joined = check_url(urljoin(url, target).partition("#")[0], placeholders=False)
        except ValueError:
            raise self._egress.failure("names an address that is not valid") from None
        if url.startswith("https:") and not joined.startswith("https:"):
            raise self._egress.failure("leads from https to http")
        return joined

    async def _sent(self, url: str, headers: Mapping[str, str]) -> Reply:
        if _origin(url) != self._origin:
            return await self._egress.send("GET", url, headers)
        credential = await self._credentials.headers()
        reply = await self._egress.send("GET", url, {**self._headers, **headers, **credential})
        if reply.status == httpx.codes.UNAUTHORIZED and self._credentials.refused(credential):
            credential = await self._credentials.headers()
            reply = await self._egress.send("GET", url, {**self._headers, **headers, **credential})
        return reply


def next_link(headers: Mapping[str, str]) -> str | None:
    """The address of the next page in a header Link (RFC 8288); None if there is none."""
    for target, parameters in LINK.findall(headers.get("link", "")):
        if NEXT.search(parameters):
            return str(target)
    return None


def wait_of(reply: Reply, now: float) -> float | None:
    """Seconds that a response asks to wait; None if it is no refusal for a limit.

    Limits are told by 429, by 503 with a time, and by 403 as GitHub answers: with a time, with a used up
    ``x-ratelimit-remaining``, or with the limit in the text.
    """
    headers = reply.headers
    told = _seconds(headers.get("retry-after"), now)
    used_up = headers.get("x-ratelimit-remaining", "").strip() == "0"
    match reply.status:
        case httpx.codes.TOO_MANY_REQUESTS:
            pass
        case httpx.codes.SERVICE_UNAVAILABLE if told is not None:
            pass
        case httpx.codes.FORBIDDEN if told is not None or used_up or b"rate limit" in reply.body.lower():
            pass
        case _:
            return None
    if told is None and used_up:
        told = reset_of(headers, now)
    return DEFAULT_WAIT_SECONDS if told is None else told


def reset_of(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds until ``x-ratelimit-reset``, by the clock of the service where it tells its time; None if it is none."""
    text = headers.get("x-ratelimit-reset", "").strip()
    # Fifteen digits are beyond any time.
    if not text.isascii() or not text.isdigit() or len(text) > 15:  # noqa: PLR2004
        return None
    date = _date(headers.get("date"))
    return max(0.0, float(text) - (now if date is None else date))


def _seconds(text: str | None, now: float) -> float | None:
    """The seconds of a header Retry-After: a number, or a date."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        # More digits than a float tells apart say the same: very long.
        return float(text[:15])
    date = _date(text)
    return None if date is None else max(0.0, date - now)


def _date(text: str | None) -> float | None:
    try:
        return None if text is None else parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None


def _origin(url: str) -> tuple[str, Any, Any]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
