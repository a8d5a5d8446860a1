"""The signing keys of a token issuer, read from a file or fetched from a URL.

A token cannot make the server fetch keys at will: a key that is not known triggers a fetch only if the last attempt is
at least `jwks_min_refresh_seconds` old. Until then the token is refused at once.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
import structlog
from jwt import PyJWK, PyJWKClient
from jwt.exceptions import PyJWTError

from astrocyte.config import JwtSettings
from astrocyte.errors import ConfigError, Unavailable
from astrocyte.providers.http import response_body

# A hundred RSA keys of the largest common size fit.
MOST_BYTES = 262_144
MOST_KEYS = 100
# Members of a key that are strings where they are present; PyJWT does not check their types.
STRINGS = ("kty", "use", "alg", "kid", "crv", "n", "e", "x", "y")

log = structlog.get_logger(__name__)


class KeySet(PyJWKClient):
    """The signing keys of one issuer, cached for `jwks_max_age_seconds`.

    Args:
        settings: Where the keys are and how long they are valid.
        fetch: Returns the bytes of a URL within a time limit.

    Raises:
        ConfigError: The URL is not safe, or the file contains no usable key.
    """

    def __init__(self, settings: JwtSettings, *, fetch: Callable[[str, float], Awaitable[bytes]] | None = None) -> None:
        if settings.jwks_url is not None:
            _check_url(settings.jwks_url)
        # The base class demands a URL even where the keys come from a file; its own `fetch_data` is never called.
        lifespan = math.inf if settings.jwks_url is None else settings.jwks_max_age_seconds
        super().__init__(settings.jwks_url or "https://localhost", lifespan=lifespan)
        self._settings = settings
        self._fetch = fetch or _fetch
        self._document: object = None
        self._tried_at = -math.inf
        self._refreshing: asyncio.Task[None] | None = None
        # Increases with each new set of keys, so that tokens verified with an older set are verified again.
        self.generation = 0
        if settings.jwks_file is not None:
            try:
                self._replace(settings.jwks_file.read_bytes())
            except (OSError, ValueError, RecursionError, PyJWTError) as error:
                raise ConfigError(
                    f"{settings.jwks_file}: contains no usable signing key ({type(error).__name__}); "
                    "expected a JSON Web Key Set",
                    metadata={"file": str(settings.jwks_file)},
                ) from error

    def find(self, kid: str | None) -> list[PyJWK]:
        """Return the key with an ID, once for each algorithm it may verify; without an ID the only key of the set."""
        keys = self._cached()
        if kid is None:
            return keys if len({key.key_id for key in keys}) == 1 else []
        return [key for key in keys if key.key_id == kid]

    @property
    def usable(self) -> bool:
        """True if keys are present and not expired. Starts a refresh when half of their lifetime is over."""
        half = self._settings.jwks_max_age_seconds / 2
        if self._settings.jwks_url is not None and self._cached() and time.monotonic() - self._tried_at > half:
            self._begin()
        return bool(self._cached())

    @property
    def refreshable(self) -> bool:
        """True if a refresh is running, or the last attempt is old enough for another."""
        if self._settings.jwks_url is None:
            return False
        waited = time.monotonic() - self._tried_at >= self._settings.jwks_min_refresh_seconds
        return waited or self._refreshing is not None

    async def refresh(self) -> None:
        """Fetch the keys; concurrent calls share one request."""
        self._begin()
        if self._refreshing is not None:
            await asyncio.shield(self._refreshing)

    def fetch_data(self) -> dict[str, Any]:
        """Return the usable entries of the last document; called by the base class.

        An entry without ``alg`` is listed once for each accepted algorithm; PyJWT drops those that its key type does
        not support. A key therefore verifies its own algorithms only, whatever a token's header says.
        """
        entries = self._document.get("keys") if isinstance(self._document, dict) else None
        usable = [entry for entry in entries[:MOST_KEYS] if _verifies(entry)] if isinstance(entries, list) else []
        accepted = self._settings.algorithms
        named = [(entry, [entry["alg"]] if "alg" in entry else accepted) for entry in usable]
        return {"keys": [{**entry, "alg": name} for entry, names in named for name in names]}

    def _cached(self) -> list[PyJWK]:
        keys = None if self.jwk_set_cache is None else self.jwk_set_cache.get()
        return [] if keys is None else keys.keys

    def _begin(self) -> None:
        if self._refreshing is None and self.refreshable:
            self._tried_at = time.monotonic()
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh(), name="astrocyte-jwks")

    async def _refresh(self) -> None:
        try:
            self._replace(await self._fetch(self._settings.jwks_url or "", self._settings.jwks_timeout_seconds))
        except (OSError, ValueError, RecursionError, PyJWTError, httpx.HTTPError) as error:
            # The present keys stay valid for the rest of their lifetime.
            log.warning("jwks_failed", error=type(error).__name__)
        finally:
            self._refreshing = None

    def _replace(self, raw: bytes) -> None:
        self._document = json.loads(raw)
        self.get_jwk_set(refresh=True)
        self.generation += 1


def unreachable() -> Unavailable:
    """The error of a call whose token cannot be verified for want of keys."""
    return Unavailable("the token issuer's keys cannot be fetched at the moment; retry later")


def _verifies(entry: object) -> bool:
    """True if an entry of a key set is a public key for signatures."""
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name, ""), str) for name in STRINGS):
        return False
    if entry.get("use", "sig") != "sig" or entry.get("kty") == "oct":
        return False
    operations = entry.get("key_ops", ["verify"])
    return isinstance(operations, list) and "verify" in operations


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not host or parts.scheme not in {"http", "https"} or (parts.scheme == "http" and not local):
        raise ConfigError(
            f"auth.jwt.jwks_url: expected an https address, got {url!r}; plain http is accepted for loopback only",
            metadata={"key": "auth.jwt.jwks_url"},
        )


async def _fetch(url: str, seconds: float) -> bytes:
    # The limit holds for the whole exchange: httpx bounds each read only. Redirects are not followed.
    async with (
        asyncio.timeout(seconds),
        httpx.AsyncClient(timeout=seconds) as client,
        client.stream("GET", url, headers={"Accept": "application/json"}) as response,
    ):
        response.raise_for_status()
        return await response_body.read(response, most_bytes=MOST_BYTES, seconds=seconds)
