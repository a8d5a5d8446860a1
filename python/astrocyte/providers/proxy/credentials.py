"""The headers that authenticate a request: fixed ones, or an access token of OAuth 2.0 that is renewed in time."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable
from typing import Protocol
from urllib.parse import quote, urlencode

import httpx
import structlog

from astrocyte.config.sources.proxies import ApiKeyAuth, BearerAuth, ClientCredentialsAuth, RefreshTokenAuth
from astrocyte.providers.proxy.egress import Egress
from astrocyte.providers.proxy.token_file import TokenFile

# Clocks differ, and a request takes a while.
LEEWAY_SECONDS = 30.0
# Of tokens whose endpoint says nothing: the shortest life that is common.
DEFAULT_SECONDS = 300.0
MOST_SECONDS = 86_400.0

log = structlog.get_logger(__name__)


class Credentials(Protocol):
    """Authenticates requests."""

    async def headers(self) -> dict[str, str]:
        """The headers of a request. Raises `ProviderUnavailable` where there can be none now."""

    def refused(self, headers: dict[str, str]) -> bool:
        """Note that a request with these headers was refused; true if another try may have others."""

    async def close(self) -> None:
        """Release connections."""


class FixedCredentials:
    """Credentials that never change.

    Args:
        auth: The settings; None for no credential.
    """

    def __init__(self, auth: BearerAuth | ApiKeyAuth | None) -> None:
        match auth:
            case BearerAuth():
                self._headers = {"Authorization": f"Bearer {auth.token.get_secret_value()}"}
            case ApiKeyAuth():
                self._headers = {auth.header: auth.key.get_secret_value()}
            case None:
                self._headers = {}

    async def headers(self) -> dict[str, str]:
        """The headers of a request."""
        return self._headers

    def refused(self, headers: dict[str, str]) -> bool:
        """False: there is nothing else to try."""
        del headers
        return False

    async def close(self) -> None:
        """Nothing to release."""


class OAuthCredentials:
    """An access token, requested when it is needed, once for all who wait for it.

    Args:
        auth: The settings.
        egress: Reaches the token endpoint.
        kept: The refresh token of that grant; None for client credentials.
        clock: Seconds that never go back.
    """

    def __init__(
        self,
        auth: ClientCredentialsAuth | RefreshTokenAuth,
        egress: Egress,
        kept: TokenFile | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._auth = auth
        self._egress = egress
        self._kept = kept
        self._clock = clock
        self._access = ""
        self._valid_until = 0.0
        self._renewing: asyncio.Task[None] | None = None

    async def headers(self) -> dict[str, str]:
        """The headers of a request.

        Raises:
            ProviderUnavailable: The endpoint gives no token.
        """
        if not self._access or self._clock() >= self._valid_until:
            await self._renewed()
        return {"Authorization": f"Bearer {self._access}"}

    def refused(self, headers: dict[str, str]) -> bool:
        """True: the token may have been revoked. One that was renewed since is kept."""
        if headers.get("Authorization") == f"Bearer {self._access}":
            self._access = ""
        return True

    async def close(self) -> None:
        """Release connections, after a token that is on its way was kept."""
        if self._renewing is not None:
            await asyncio.gather(self._renewing, return_exceptions=True)
        await self._egress.close()

    async def _renewed(self) -> None:
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew(), name="astrocyte-proxy-token")
            self._renewing.add_done_callback(self._done)
        # A caller who gives up must not stop it: a refresh token that was replaced and not kept is lost.
        await asyncio.shield(self._renewing)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._renewing = None
        if not task.cancelled():
            # Seen, even where nobody waits for it any more.
            task.exception()

    async def _renew(self) -> None:
        reply = await self._egress.send("POST", self._auth.token_url, self._head(), self._form())
        try:
            answer = json.loads(reply.body)
        except (ValueError, RecursionError):
            answer = None
        access = answer.get("access_token") if isinstance(answer, dict) else None
        if reply.status != httpx.codes.OK or not _is_token(access):
            raise self._egress.failure(f"gave no access token (status {reply.status})")
        assert isinstance(answer, dict)  # noqa: S101 - it had a token
        replaced = answer.get("refresh_token")
        if self._kept is not None and _is_token(replaced) and replaced != self._kept.token:
            try:
                await asyncio.to_thread(self._kept.replace, str(replaced))
            except OSError as error:
                log.critical("proxy_token_not_kept", error=type(error).__name__)
        self._access = str(access)
        self._valid_until = self._clock() + _life(answer.get("expires_in"))

    def _form(self) -> bytes:
        auth = self._auth
        fields = {"grant_type": "client_credentials"}
        if self._kept is not None:
            fields = {"grant_type": "refresh_token", "refresh_token": self._kept.token}
        if auth.scope is not None:
            fields["scope"] = auth.scope
        if auth.client_authentication == "body" or auth.client_secret is None:
            fields["client_id"] = auth.client_id
            if auth.client_secret is not None:
                fields["client_secret"] = auth.client_secret.get_secret_value()
        return urlencode(fields).encode()

    def _head(self) -> dict[str, str]:
        auth = self._auth
        head = {"Content-Type": "application/x-www-form-urlencoded"}
        if auth.client_authentication == "basic" and auth.client_secret is not None:
            # RFC 6749, 2.3.1: both are encoded as in a form before they are joined.
            pair = f"{quote(auth.client_id, safe='')}:{quote(auth.client_secret.get_secret_value(), safe='')}"
            head["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return head


def _is_token(value: object) -> bool:
    """True for a text that a header can hold."""
    return isinstance(value, str) and value.isascii() and value.isprintable() and 0 < len(value) <= 16_384  # noqa: PLR2004 - the largest header of common servers


def _life(said: object) -> float:
    """Seconds for which a token is used."""
    whole = isinstance(said, int | float) and not isinstance(said, bool) and said > 0
    seconds = min(float(said), MOST_SECONDS) if whole else DEFAULT_SECONDS  # type: ignore[arg-type]  # just looked at
    # Of a token with a short life at least a half is used, else each request would need its own.
    return max(seconds - LEEWAY_SECONDS, seconds / 2)
