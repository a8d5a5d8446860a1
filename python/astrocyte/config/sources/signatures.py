"""Settings of the signatures of webhooks."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from astrocyte.config.loading.section import Section

HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,63}$")]
# A clock may be off by minutes; a window of an hour would keep every captured delivery fresh for an hour.
Tolerance = Annotated[float, Field(ge=1.0, le=3_600.0)]
# Shorter ones can be guessed from one signed delivery.
LEAST_SECRET_CHARS = 16
# Those of the Standard Webhooks specification.
LEAST_KEY_BYTES, MOST_KEY_BYTES = 24, 64
KEY_PREFIX = "whsec_"
STANDARD_HEADERS = ("webhook-id", "webhook-timestamp", "webhook-signature")


class HmacAuth(Section):
    """Hexadecimal HMAC-SHA256 of the body, in a header, with the optional prefix ``sha256=``.

    With ``timestamp_header``, the signature is over the timestamp, a full stop and the body.
    """

    type: Literal["hmac"]
    secret: SecretStr = Field(min_length=LEAST_SECRET_CHARS, description="Shared secret.")
    previous_secret: SecretStr | None = Field(
        None, min_length=LEAST_SECRET_CHARS, description="Former secret, also accepted while senders change."
    )
    header: HeaderName = Field("X-Astrocyte-Signature", description="Header of the signature.")
    timestamp_header: HeaderName | None = Field(
        None, description="Header of the time of sending, in seconds since 1970. Without it, signatures have no time."
    )
    tolerance_seconds: Tolerance = Field(300.0, description="Maximum difference between that time and the clock.")

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that a delivery needs."""
        return tuple(filter(None, (self.header, self.timestamp_header)))

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys that verify, the current one first."""
        secrets = (self.secret, self.previous_secret)
        return tuple(secret.get_secret_value().encode() for secret in secrets if secret is not None)


class StandardWebhooksAuth(Section):
    """The Standard Webhooks scheme: headers webhook-id, webhook-timestamp and webhook-signature."""

    type: Literal["standard_webhooks"]
    secret: SecretStr = Field(description="Secret as the sender shows it: whsec_ and base64.")
    previous_secret: SecretStr | None = Field(None, description="Former secret, also accepted while senders change.")
    tolerance_seconds: Tolerance = Field(300.0, description="Maximum difference between webhook-timestamp and clock.")

    @field_validator("secret", "previous_secret")
    @classmethod
    def _check_key(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and not LEAST_KEY_BYTES <= len(_decoded(secret)) <= MOST_KEY_BYTES:
            raise ValueError(f"expected {KEY_PREFIX} and base64 of {LEAST_KEY_BYTES} to {MOST_KEY_BYTES} bytes")
        return secret

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers that a delivery needs."""
        return STANDARD_HEADERS

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The keys that verify, the current one first."""
        return tuple(_decoded(secret) for secret in (self.secret, self.previous_secret) if secret is not None)


WebhookAuth = Annotated[HmacAuth | StandardWebhooksAuth, Field(discriminator="type")]


def _decoded(secret: SecretStr) -> bytes:
    """The bytes of a secret; none where it is no base64."""
    try:
        return base64.b64decode(secret.get_secret_value().removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""
