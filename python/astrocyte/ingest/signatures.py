"""Signatures of webhooks: plain HMAC-SHA256, and the Standard Webhooks scheme."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping

from astrocyte.config.sources.signatures import STANDARD_HEADERS, HmacAuth, StandardWebhooksAuth
from astrocyte.errors import AuthorizationError
from astrocyte.stores.ingest import Delivery

ID, TIMESTAMP, SIGNATURE = STANDARD_HEADERS
PREFIX = "sha256="
VERSION = "v1,"
# Until the year 33658; more digits are no time.
SECONDS = re.compile(r"[0-9]{1,12}")
# A sender that changes its secret signs with two; more than these are not compared.
MOST_SIGNATURES = 16
MOST_ID_CHARS = 256
HEX_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


def verified(auth: HmacAuth | StandardWebhooksAuth, headers: Mapping[str, str], body: bytes, now: float) -> Delivery:
    """The delivery that a signature proves.

    Args:
        auth: The scheme and its keys.
        headers: Headers by lower-case name.
        body: The body as it came.
        now: Seconds since 1970.

    Raises:
        AuthorizationError: A header is missing or malformed, no key fits the signature, or its time is too far off.
    """
    if isinstance(auth, HmacAuth):
        return _plain(auth, headers, body, now)
    return _standard(auth, headers, body, now)


def _plain(auth: HmacAuth, headers: Mapping[str, str], body: bytes, now: float) -> Delivery:
    given = _header(headers, auth.header).removeprefix(PREFIX)
    if not HEX_DIGEST.fullmatch(given):
        raise AuthorizationError(f"header {auth.header}: expected 64 hexadecimal digits, with or without {PREFIX}")
    signed, seconds = body, 0
    if auth.timestamp_header is not None:
        stamp = _header(headers, auth.timestamp_header)
        seconds = _seconds(stamp, auth.timestamp_header)
        signed = stamp.encode() + b"." + body
    key = _key_of(auth.keys, signed, [bytes.fromhex(given)])
    _check_time(auth.timestamp_header, seconds, auth.tolerance_seconds, now)
    # The signature is the identity: the same bytes are the same delivery.
    return Delivery(_digest(key, b"delivery", signed), _digest(key, b"body", body), seconds)


def _standard(auth: StandardWebhooksAuth, headers: Mapping[str, str], body: bytes, now: float) -> Delivery:
    delivery_id = _header(headers, ID)
    if len(delivery_id) > MOST_ID_CHARS:
        raise AuthorizationError(f"header {ID}: expected at most {MOST_ID_CHARS} characters, got {len(delivery_id)}")
    stamp = _header(headers, TIMESTAMP)
    seconds = _seconds(stamp, TIMESTAMP)
    name = delivery_id.encode("latin-1", "replace")
    signed = b"%b.%b.%b" % (name, stamp.encode(), body)
    key = _key_of(auth.keys, signed, _standard_digests(_header(headers, SIGNATURE)))
    _check_time(TIMESTAMP, seconds, auth.tolerance_seconds, now)
    # The id without a key: a delivery stays the same while the sender changes its secret.
    return Delivery(hashlib.sha256(name).digest(), _digest(key, b"body", body), seconds)


def _standard_digests(given: str) -> list[bytes]:
    """The decoded signatures of version 1; other versions are passed over."""
    found = []
    for one in given.split(" ")[:MOST_SIGNATURES]:
        if one.startswith(VERSION):
            try:
                found.append(base64.b64decode(one.removeprefix(VERSION), validate=True))
            except (binascii.Error, ValueError):
                continue
    if not found:
        raise AuthorizationError(f"header {SIGNATURE}: expected {VERSION} and base64, separated by spaces")
    return found


def _key_of(keys: tuple[bytes, ...], signed: bytes, given: list[bytes]) -> bytes:
    """The key that made one of the given signatures.

    Every pair is compared, each in constant time, so that the time tells nothing of a signature.
    """
    fitting: bytes | None = None
    for key in keys:
        expected = hmac.digest(key, signed, "sha256")
        for one in given:
            if hmac.compare_digest(expected, one):
                fitting = key
    if fitting is None:
        raise AuthorizationError("the signature does not fit the body and the secret of the source")
    return fitting


def _header(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name.lower())
    if not value:
        raise AuthorizationError(f"header {name} is missing; the source expects a signed delivery")
    return value


def _seconds(stamp: str, header: str) -> int:
    if not SECONDS.fullmatch(stamp):
        raise AuthorizationError(f"header {header}: expected seconds since 1970")
    return int(stamp)


def _check_time(header: str | None, seconds: int, tolerance: float, now: float) -> None:
    if header is not None and abs(now - seconds) > tolerance:
        side = "before" if seconds < now else "after"
        raise AuthorizationError(
            f"header {header} is {abs(now - seconds):.0f} s {side} the clock of the server; expected at most "
            f"{tolerance:g} s"
        )


def _digest(key: bytes, purpose: bytes, data: bytes) -> bytes:
    """A keyed digest, from which neither the data nor a signature follows."""
    return hmac.digest(key, purpose + b"\x00" + data, "sha256")
