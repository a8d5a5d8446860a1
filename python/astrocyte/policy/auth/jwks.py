"""An issuer's public keys: read from a file or fetched, kept for a while, and never fetched because a token says so.

A token may name any key it likes. One that is not known makes the keys be fetched again only when they have not been
for `jwks_min_refresh_seconds`; until then it is refused at once, however many such tokens come.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPMessage
from typing import IO, Any
from urllib.parse import urlsplit

import structlog
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from astrocyte.config import JwtSettings
from astrocyte.errors import ConfigError, Unavailable

# An issuer has a few keys; a hundred of the largest kind are less.
MOST_BYTES = 262_144
MOST_KEYS = 100
# What each signature needs of its key.
KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
# Shorter moduli can be broken.
LEAST_RSA_BITS = 2_048

Clock = Callable[[], float]
log = structlog.get_logger(__name__)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow none: the keys are where the configuration says."""


class KeySet:
    """The keys of one issuer.

    Args:
        settings: Where they are, and how long they are good for.
        clock: Seconds that never go back.
        fetch: Bytes of a URL; tests bring their own.

    Raises:
        ConfigError: The address is not a safe one, or the file holds no keys.
    """

    def __init__(
        self,
        settings: JwtSettings,
        *,
        clock: Clock = time.monotonic,
        fetch: Callable[[str, float], bytes] | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._fetch = fetch or _fetch
        self._keys: dict[str | None, PyJWK] = {}
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._refreshing: asyncio.Task[None] | None = None
        # Counts the times that the keys changed: what was verified with earlier ones is verified anew.
        self.generation = 0
        if settings.jwks_url is not None:
            _check_url(settings.jwks_url)
        elif settings.jwks_file is not None:
            try:
                self._take(settings.jwks_file.read_bytes())
            except (OSError, ValueError) as error:
                raise ConfigError(
                    f"{settings.jwks_file}: no keys can be read from it: {error}",
                    metadata={"file": str(settings.jwks_file)},
                ) from error

    def find(self, kid: str | None) -> PyJWK | None:
        """The key of that id; without an id the only key there is."""
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid)

    @property
    def usable(self) -> bool:
        """Whether the keys are there and not too old. Begins to fetch new ones where they are getting old."""
        if self._settings.jwks_url is None:
            return True
        if self._fetched_at is None:
            return False
        age = self._clock() - self._fetched_at
        if age > self._settings.jwks_max_age_seconds / 2:
            self._begin()
        return age <= self._settings.jwks_max_age_seconds

    @property
    def refreshable(self) -> bool:
        """Whether the keys may be fetched now: they have not been lately, or are being fetched."""
        if self._settings.jwks_url is None:
            return False
        waited = self._tried_at is None or self._clock() - self._tried_at >= self._settings.jwks_min_refresh_seconds
        return waited or self._refreshing is not None

    async def refresh(self) -> None:
        """Fetch the keys; calls that come meanwhile wait for the same answer."""
        self._begin()
        if self._refreshing is not None:
            await asyncio.shield(self._refreshing)

    def _begin(self) -> None:
        if self._refreshing is None and self.refreshable:
            self._tried_at = self._clock()
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh(), name="astrocyte-jwks")

    async def _refresh(self) -> None:
        url = self._settings.jwks_url or ""
        try:
            raw = await asyncio.to_thread(self._fetch, url, self._settings.jwks_timeout_seconds)
            self._take(raw)
            self._fetched_at = self._clock()
        except (OSError, ValueError) as error:
            # The keys that are there stay good for their time.
            log.warning("jwks_failed", error=type(error).__name__)
        finally:
            self._refreshing = None

    def _take(self, raw: bytes) -> None:
        """Replace the keys by those of a document.

        Raises:
            ValueError: It is no key set.
        """
        document = json.loads(raw)
        entries = document.get("keys") if isinstance(document, dict) else None
        keys: dict[str | None, PyJWK] = {}
        for entry in entries[:MOST_KEYS] if isinstance(entries, list) else ():
            key = _key(entry)
            if key is not None:
                keys[key.key_id] = key
        if not keys:
            raise ValueError("it is no list of keys with one for signatures that are known")
        self._keys = keys
        self.generation += 1


def fits(key: PyJWK, entry_algorithm: str | None, algorithm: str) -> bool:
    """Whether a key may verify signatures of an algorithm: by its own kind, not by what a token says."""
    if entry_algorithm is not None and entry_algorithm != algorithm:
        return False
    data: dict[str, Any] = key._jwk_data  # noqa: SLF001 - PyJWT keeps the entry, and shows no other part of it
    if data.get("kty") != KEY_TYPES[algorithm[:2]]:
        return False
    return algorithm not in CURVES or data.get("crv") == CURVES[algorithm]


def declared_algorithm(key: PyJWK) -> str | None:
    """The algorithm that the key itself says it is for."""
    algorithm = key._jwk_data.get("alg")  # noqa: SLF001 - as in `fits`
    return algorithm if isinstance(algorithm, str) else None


def unreachable() -> Unavailable:
    """What a call gets while there are no keys to verify its token with."""
    return Unavailable("the keys of the token issuer cannot be fetched at the moment; try again")


def _key(entry: object) -> PyJWK | None:
    """A key for signatures, or None for one of another use or kind."""
    if not isinstance(entry, dict) or entry.get("use", "sig") != "sig":
        return None
    if "key_ops" in entry and "verify" not in entry["key_ops"]:
        return None
    if entry.get("kty") not in set(KEY_TYPES.values()):
        return None
    try:
        key = PyJWK(entry)
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    if entry["kty"] == "RSA" and key.key.key_size < LEAST_RSA_BITS:
        return None
    return key


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not host or parts.scheme not in {"http", "https"} or (parts.scheme == "http" and not local):
        raise ConfigError(
            f"auth.jwt.jwks_url: expected an https address, got {url!r}; over http others could put in keys of theirs",
            metadata={"key": "auth.jwt.jwks_url"},
        )


def _fetch(url: str, timeout: float) -> bytes:
    opener = urllib.request.build_opener(_NoRedirects())
    request = urllib.request.Request(url, headers={"Accept": "application/json"})  # noqa: S310 - `_check_url` was there
    with opener.open(request, timeout=timeout) as response:
        raw: bytes = response.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ValueError(f"the keys have more than {MOST_BYTES} bytes")
    return raw
