"""Senders of webhooks for tests: deliveries signed by both schemes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass, field, replace
from typing import Any

SECRET = "a secret of the sender"
KEY = b"0123456789abcdef01234567"
STANDARD_SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
PLAIN_AUTH = {"type": "hmac", "secret": SECRET, "timestamp_header": "X-Time"}
STANDARD_AUTH = {"type": "standard_webhooks", "secret": STANDARD_SECRET}


@dataclass(frozen=True)
class Sent:
    """A delivery: a body and headers by lower-case name."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def with_header(self, name: str, value: str) -> Sent:
        return replace(self, headers={**self.headers, name: value})

    def without(self, name: str) -> Sent:
        return replace(self, headers={key: value for key, value in self.headers.items() if key != name})


def body_of(content: str, **fields: Any) -> bytes:
    return json.dumps({"content": content, **fields}).encode()


def plain(body: bytes, at: float | None = None, secret: str = SECRET) -> Sent:
    """Signed with HMAC; with a time, over it as well."""
    signed = body if at is None else f"{at:.0f}.".encode() + body
    headers = {"x-astrocyte-signature": f"sha256={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"}
    return Sent(body, headers if at is None else {**headers, "x-time": f"{at:.0f}"})


def standard(body: bytes, at: float, delivery_id: str = "msg_1", key: bytes = KEY) -> Sent:
    """Signed by the scheme of Standard Webhooks."""
    signed = f"{delivery_id}.{at:.0f}.".encode() + body
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return Sent(
        body, {"webhook-id": delivery_id, "webhook-timestamp": f"{at:.0f}", "webhook-signature": f"v1,{digest}"}
    )
