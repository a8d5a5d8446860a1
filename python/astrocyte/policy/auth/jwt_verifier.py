"""Verification of JWT access tokens.

The order is fixed: size, form, header, key, signature, claims. A token does not choose how it is verified: the settings
list the accepted algorithms, the issuer's key set has the keys, and a key verifies its own algorithms only. The
metadata of each refusal names its cause.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from jwt import PyJWK, PyJWT
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAudienceError,
    InvalidIssuerError,
    InvalidKeyError,
    MissingRequiredClaimError,
    PyJWTError,
)

from astrocyte.config import JwtSettings
from astrocyte.errors import AuthorizationError
from astrocyte.model import DEFAULT_PRINCIPAL, Caller
from astrocyte.policy.auth.jwks import KeySet, unreachable
from astrocyte.policy.requests.field_checks import MOST_NAME_CHARS, UNPRINTABLE

# Verification takes far longer than a look-up; the bound keeps the table small.
KEPT_TOKENS = 4_096
MOST_KID_CHARS = 256
# Three dot-separated parts of base64url without padding.
COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
# Headers by which a token brings or points to its own key, or changes the meaning of its parts.
REFUSED_HEADERS = ("crit", "jku", "jwk", "x5u", "x5c", "b64", "zip", "enc", "epk")
TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
# Seconds since the epoch up to the year 33658; also refuses NaN and infinity.
MOST_SECONDS = 1e12


@dataclass(frozen=True, slots=True)
class _Verified:
    """The caller of a verified token, until when it holds (exclusive), and the generation of keys that verified it."""

    caller: Caller
    until: float
    generation: int


class _StrictJWT(PyJWT):
    """PyJWT with strict JSON: no duplicate keys, and times must be numbers."""

    def _decode_payload(self, decoded: dict[str, Any]) -> dict[str, Any]:
        claims = _object(decoded["payload"], "claims")
        for name in ("exp", "nbf", "iat"):
            value = claims.get(name, 0)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < MOST_SECONDS:
                raise _refusal(f"{name}_malformed", f"token claim '{name}' must be a number of seconds since 1970")
        return claims


class Tokens:
    """Verifies the tokens of one issuer.

    Args:
        settings: What is accepted.
        keys: The issuer's keys.
    """

    def __init__(self, settings: JwtSettings, keys: KeySet) -> None:
        self._settings = settings
        self._keys = keys
        self._known: dict[bytes, _Verified] = {}
        # `iat` has a cause of its own; names are checked in `_name`.
        self._jwt = _StrictJWT(
            {
                "require": ["exp"],
                "enforce_minimum_key_length": True,
                "verify_iat": False,
                "verify_sub": False,
                "verify_jti": False,
            }
        )

    def caller(self, token: str) -> Caller | Coroutine[Any, Any, Caller]:
        """Return the caller that a token names; a coroutine where keys must be fetched first.

        Raises:
            AuthorizationError: The token is refused; the metadata has the cause.
        """
        if len(token) > self._settings.max_token_bytes:
            raise _refusal("too_large", f"the token exceeds {self._settings.max_token_bytes} bytes")
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        if not self._keys.usable:
            return self._after_refresh(token, digest)
        known = self._known.get(digest)
        if known is not None and known.generation == self._keys.generation:
            if time.time() < known.until:
                return known.caller
            raise _expired()
        algorithm, kid = self._header(token)
        if not self._keys.find(kid) and self._keys.refreshable:
            return self._after_refresh(token, digest)
        return self._verified(token, digest, algorithm, kid)

    async def _after_refresh(self, token: str, digest: bytes) -> Caller:
        # Only a well-formed token may cause a fetch.
        algorithm, kid = self._header(token)
        await self._keys.refresh()
        if not self._keys.usable:
            raise unreachable()
        return self._verified(token, digest, algorithm, kid)

    def _header(self, token: str) -> tuple[str, str | None]:
        """Return the algorithm and the ID of the key."""
        if not COMPACT.fullmatch(token):
            raise _refusal("malformed", "the token must have the form header.claims.signature")
        header = _object(_decode(token.split(".", 1)[0]), "header")
        algorithm = header.get("alg")
        if algorithm not in self._settings.algorithms:
            accepted = ", ".join(self._settings.algorithms)
            raise _refusal("algorithm", f"token header 'alg' must be one of {accepted}")
        for name in REFUSED_HEADERS:
            if name in header:
                raise _refusal(f"header_{name}", f"token header '{name}' is not accepted")
        kind = header.get("typ")
        if kind is not None and (not isinstance(kind, str) or kind.lower() not in TYPES):
            raise _refusal("type", "token header 'typ' must be JWT or at+jwt")
        kid = header.get("kid")
        if kid is not None and (not isinstance(kid, str) or not kid or len(kid) > MOST_KID_CHARS):
            raise _refusal(
                "kid_malformed", f"token header 'kid' must be a string of at most {MOST_KID_CHARS} characters"
            )
        return str(algorithm), kid

    def _verified(self, token: str, digest: bytes, algorithm: str, kid: str | None) -> Caller:
        found = self._keys.find(kid)
        if not found:
            raise _refusal("kid_unknown", "token header 'kid' names no signing key of the issuer")
        key = next((key for key in found if key.algorithm_name == algorithm), None)
        if key is None:
            raise _refusal("key_mismatch", "token header 'alg' is not an algorithm of the key that 'kid' names")
        claims = self._claims(token, key)
        caller = self._named(claims)
        if len(self._known) >= KEPT_TOKENS:
            self._known.clear()
        until = claims["exp"] + self._settings.leeway_seconds
        self._known[digest] = _Verified(caller, until, self._keys.generation)
        return caller

    def _claims(self, token: str, key: PyJWK) -> dict[str, Any]:
        """Return the claims of a token whose signature, times, issuer and audience are valid."""
        settings = self._settings
        try:
            claims = self._jwt.decode(
                token, key, audience=settings.audience, issuer=settings.issuer, leeway=settings.leeway_seconds
            )
        except ExpiredSignatureError:
            raise _expired() from None
        except ImmatureSignatureError:
            raise _refusal("not_yet_valid", "token claim 'nbf' is in the future") from None
        except MissingRequiredClaimError as error:
            cause = {"iss": "issuer", "aud": "audience"}.get(error.claim, f"{error.claim}_missing")
            raise _refusal(cause, f"token claim '{error.claim}' is missing") from None
        except InvalidIssuerError:
            raise _refusal("issuer", "token claim 'iss' is not the configured issuer") from None
        except InvalidAudienceError:
            raise _refusal("audience", "token claim 'aud' names none of the configured audiences") from None
        except InvalidKeyError:
            raise _refusal("key_weak", "the issuer's key is too short, or on another curve than 'alg' says") from None
        except PyJWTError:
            raise _refusal("signature", "the token's signature is not valid") from None
        if claims.get("iat", 0) > time.time() + settings.leeway_seconds:
            raise _refusal("issued_in_future", "token claim 'iat' is in the future")
        return claims

    def _named(self, claims: dict[str, Any]) -> Caller:
        """Return tenant and principal; with an ``act`` claim the actor is the principal and acts for the subject."""
        settings = self._settings
        tenant = settings.tenant if settings.tenant_claim is None else _name(claims, settings.tenant_claim)
        subject = self._principal(claims)
        if "act" not in claims:
            return Caller(tenant, subject)
        if not isinstance(claims["act"], dict):
            raise _refusal("act", "token claim 'act' must be an object")
        return Caller(tenant, self._principal(claims["act"]), subject)

    def _principal(self, claims: dict[str, Any]) -> str:
        principal = self._settings.principal_prefix + _name(claims, self._settings.principal_claim)
        if principal == DEFAULT_PRINCIPAL or len(principal) > MOST_NAME_CHARS:
            raise _refusal(
                "principal",
                f"the token's principal must have at most {MOST_NAME_CHARS} characters and not be "
                f"'{DEFAULT_PRINCIPAL}', the name of callers without one",
            )
        return principal


def _decode(part: str) -> bytes:
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _refusal("malformed", "the token has a part that is not base64url") from None


def _object(raw: bytes, part: str) -> dict[str, Any]:
    """Return a JSON object without duplicate keys at any depth."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise _refusal(f"{part}_duplicate", f"the token's {part} has a duplicate key")
        return found

    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=unique)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _refusal("malformed", f"the token's {part} must be a JSON object")
    return value


def _name(claims: dict[str, Any], claim: str) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not value or len(value) > MOST_NAME_CHARS or UNPRINTABLE.search(value):
        raise _refusal(
            f"{claim}_malformed",
            f"token claim '{claim}' must be a printable string of at most {MOST_NAME_CHARS} characters",
        )
    return value


def _refusal(cause: str, message: str) -> AuthorizationError:
    return AuthorizationError(message, metadata={"cause": f"token_{cause}"})


def _expired() -> AuthorizationError:
    return _refusal("expired", "the token has expired; get a new one")
