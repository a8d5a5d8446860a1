"""JWTs: what a token must be before it stands for anybody.

The order is fixed: size, form, header, key, signature, claims. Nothing in a token chooses how it is verified: the
algorithms come from the settings, keys from the issuer's set, and a key is used for its own kind of signature only.
Each refusal names its cause in the metadata.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError

from astrocyte.config import JwtSettings
from astrocyte.errors import AuthorizationError
from astrocyte.model import DEFAULT_PRINCIPAL, Caller
from astrocyte.policy.auth.jwks import KeySet, declared_algorithm, fits, unreachable
from astrocyte.policy.requests.field_checks import MOST_NAME_CHARS, UNPRINTABLE

# Tokens whose verification is remembered; one takes about 0.1 ms.
KEPT_TOKENS = 4_096
MOST_KID_CHARS = 256
# A dot-separated triple of base64url without padding.
COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Headers by which a token would bring or point to its own key, or change what its parts mean.
REFUSED_HEADERS = ("crit", "jku", "jwk", "x5u", "x5c", "b64", "zip", "enc", "epk")
TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})


@dataclass(frozen=True, slots=True)
class _Known:
    """Whom a verified token stands for, until when (exclusive), and with which keys it was verified."""

    caller: Caller
    until: float
    generation: int


class Tokens:
    """Verifies the tokens of one issuer.

    Args:
        settings: What is accepted.
        keys: The issuer's keys.
        clock: Seconds since the epoch.
    """

    def __init__(self, settings: JwtSettings, keys: KeySet, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._keys = keys
        self._clock = clock
        self._known: dict[bytes, _Known] = {}
        self._jws = PyJWS(algorithms=list(settings.algorithms))

    def caller(self, token: str) -> Caller | Coroutine[Any, Any, Caller]:
        """Whom a token stands for; to be awaited where keys must be fetched first.

        Raises:
            AuthorizationError: It is refused; the metadata has the cause.
        """
        if len(token) > self._settings.max_token_bytes:
            raise _refusal("too_large", f"the token has more than {self._settings.max_token_bytes} bytes")
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if not self._keys.usable:
            return self._after_refresh(token, digest)
        known = self._known.get(digest)
        if known is not None and known.generation == self._keys.generation:
            if self._clock() < known.until:
                return known.caller
            raise _refusal("expired", "the token has expired; get a new one")
        header, payload = _parts(token)
        algorithm, kid = self._header(header)
        if self._keys.find(kid) is None and self._keys.refreshable:
            return self._after_refresh(token, digest)
        return self._verified(token, digest, algorithm, kid, payload)

    async def _after_refresh(self, token: str, digest: bytes) -> Caller:
        # What is no token of ours must not make anybody fetch anything.
        header, payload = _parts(token)
        algorithm, kid = self._header(header)
        await self._keys.refresh()
        if not self._keys.usable:
            raise unreachable()
        return self._verified(token, digest, algorithm, kid, payload)

    def _header(self, header: dict[str, Any]) -> tuple[str, str | None]:
        """The algorithm and the key's id."""
        algorithm = header.get("alg")
        if algorithm not in self._settings.algorithms:
            raise _refusal("algorithm", f"the token's algorithm is none of {', '.join(self._settings.algorithms)}")
        for name in REFUSED_HEADERS:
            if name in header:
                raise _refusal(f"header_{name}", f"the token has the header {name}, which is not accepted")
        kind = header.get("typ")
        if kind is not None and (not isinstance(kind, str) or kind.lower() not in TYPES):
            raise _refusal("type", "the token's typ is not that of an access token")
        kid = header.get("kid")
        if kid is not None and (not isinstance(kid, str) or not kid or len(kid) > MOST_KID_CHARS):
            raise _refusal("kid_malformed", "the token's kid is no short text")
        return str(algorithm), kid

    def _verified(self, token: str, digest: bytes, algorithm: str, kid: str | None, payload: bytes) -> Caller:
        key = self._keys.find(kid)
        if key is None:
            raise _refusal("kid_unknown", "the token was signed with a key that its issuer does not have")
        if not fits(key, declared_algorithm(key), algorithm):
            raise _refusal("key_mismatch", "the token's algorithm is not that of its key")
        try:
            self._jws.decode(token, key.key, algorithms=[algorithm])
        except PyJWTError:
            raise _refusal("signature", "the token's signature is wrong") from None
        claims = _object(payload, "claims")
        until = self._times(claims)
        self._audience(claims)
        caller = self._named(claims)
        if len(self._known) >= KEPT_TOKENS:
            self._known.clear()
        self._known[digest] = _Known(caller, until, self._keys.generation)
        return caller

    def _times(self, claims: dict[str, Any]) -> float:
        """Until when the token is good."""
        now, leeway = self._clock(), self._settings.leeway_seconds
        expires = _instant(claims, "exp")
        if expires is None:
            raise _refusal("exp_missing", "the token has no exp: it would be good for ever")
        if now >= expires + leeway:
            raise _refusal("expired", "the token has expired; get a new one")
        begins, issued = _instant(claims, "nbf"), _instant(claims, "iat")
        if begins is not None and now < begins - leeway:
            raise _refusal("not_yet_valid", "the token is not good yet")
        if issued is not None and now < issued - leeway:
            raise _refusal("issued_in_future", "the token was issued in the future")
        return expires + leeway

    def _audience(self, claims: dict[str, Any]) -> None:
        if claims.get("iss") != self._settings.issuer:
            raise _refusal("issuer", "the token is of another issuer")
        named = claims.get("aud")
        audience = [named] if isinstance(named, str) else named
        if not isinstance(audience, list) or not any(name in self._settings.audience for name in audience):
            raise _refusal("audience", "the token was made for others")

    def _named(self, claims: dict[str, Any]) -> Caller:
        """Tenant and principal; with an ``act`` claim the actor is the principal, and acts for the subject."""
        settings = self._settings
        tenant = settings.tenant if settings.tenant_claim is None else _name(claims, settings.tenant_claim)
        subject = self._principal(claims)
        if "act" not in claims:
            return Caller(tenant, subject)
        if not isinstance(claims["act"], dict):
            raise _refusal("act", "the token's act is no object")
        return Caller(tenant, self._principal(claims["act"]), subject)

    def _principal(self, claims: dict[str, Any]) -> str:
        principal = self._settings.principal_prefix + _name(claims, self._settings.principal_claim)
        if principal == DEFAULT_PRINCIPAL or len(principal) > MOST_NAME_CHARS:
            raise _refusal("principal", "the token's principal is too long, or the name of callers without one")
        return principal


def _parts(token: str) -> tuple[dict[str, Any], bytes]:
    """The header, and the bytes of the claims, which nobody reads before the signature was found right."""
    if not COMPACT.fullmatch(token):
        raise _refusal("malformed", "the token is not of the form header.claims.signature")
    header, claims, _ = token.split(".")
    return _object(_decode(header), "header"), _decode(claims)


def _decode(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _refusal("malformed", "a part of the token is not base64url") from None


def _object(raw: bytes, part: str) -> dict[str, Any]:
    """A JSON object that says no key twice, at any depth."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _refusal(f"{part}_duplicate", f"the token's {part} says a key twice")
        return found

    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _refusal("malformed", f"the token's {part} is no JSON object")
    return value


def _instant(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None and name not in claims:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e12:  # noqa: PLR2004 - NaN and the year 33658
        raise _refusal(f"{name}_malformed", f"the token's {name} is no time")
    return float(value)


def _name(claims: dict[str, Any], claim: str) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not value or len(value) > MOST_NAME_CHARS or UNPRINTABLE.search(value):
        raise _refusal(f"{claim}_malformed", f"the token's {claim} is missing, or no short printable text")
    return value


def _refusal(cause: str, message: str) -> AuthorizationError:
    return AuthorizationError(message, metadata={"cause": f"token_{cause}"})
