"""Page tokens: opaque to clients, bound to the call that made them.

A token names the kind of list, a digest of its filter, and where the next page starts. One that was made for another
filter, bank or tenant, or is damaged, is refused rather than answered from a wrong place.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from astrocyte.errors import ValidationError

# Enough to tell any two filters of one client apart.
DIGEST_CHARS = 16
# No token of ours is longer: a digest, two numbers or a bank id, and their frame.
LONGEST_TOKEN = 1_024
# SQLite and the wire hold signed 64-bit integers.
LARGEST_POSITION = 2**63 - 1
NOT_OURS = "is not a page token of this server; request the first page again"


def encode_token(scope: tuple[object, ...], place: list[int] | list[str]) -> str:
    """A token for the page that starts after ``place`` in the list named by ``scope``."""
    text = json.dumps([_digest(scope), *place], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_token(token: str, scope: tuple[object, ...], kind: type, parts: int) -> list[Any]:
    """The place that `encode_token` wrote.

    Raises:
        ValidationError: The token is not of this server, or belongs to another list.
    """
    digest, *place = _read(token)
    if len(place) != parts or not all(type(part) is kind for part in place):
        raise ValidationError(NOT_OURS, field="page_token")
    if digest != _digest(scope):
        raise ValidationError(
            "belongs to another list; send the bank and filter of the first page, or request the first page again",
            field="page_token",
        )
    return place


def decode_place(token: str, scope: tuple[object, ...], *, newest_first: bool = False) -> int:
    """The number after which a page begins; for the first page, which has no token, 0 or the largest.

    Raises:
        ValidationError: The token is not of this server, belongs to another list, or names an impossible number.
    """
    place = int(decode_token(token, scope, int, 1)[0]) if token else LARGEST_POSITION if newest_first else 0
    if not 0 <= place <= LARGEST_POSITION:
        raise ValidationError(NOT_OURS, field="page_token")
    return place


def _read(token: str) -> list[Any]:
    if len(token) > LONGEST_TOKEN:
        raise ValidationError(NOT_OURS, field="page_token")
    try:
        parts = json.loads(base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list) or not parts:
        raise ValidationError(NOT_OURS, field="page_token")
    return parts


def _digest(scope: tuple[object, ...]) -> str:
    return hashlib.blake2b(repr(scope).encode()).hexdigest()[:DIGEST_CHARS]
