"""Settings of authentication: API keys, JWTs, client certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from astrocyte.config.loading.section import Count, Seconds, Section

# Public-key algorithms only: with a shared secret, anyone who can read the settings could issue tokens.
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


class ApiKey(Section):
    """Static bearer key, stored as SHA-256, never in plain text."""

    name: str = Field(min_length=1, description="Name in logs.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Lower-case hex SHA-256 of the key.")
    tenant: str = Field("default", min_length=1, description="Tenant of calls with this key.")
    principal: str = Field(min_length=1, description="Principal of calls with this key.")


class JwtSettings(Section):
    """JWTs of an OpenID Connect or other issuer. Without an issuer, JWTs are not accepted."""

    issuer: str | None = Field(
        None, min_length=1, description="Required value of the claim iss. Without it, JWTs are refused."
    )
    audience: tuple[str, ...] = Field((), description="The claim aud must contain one of these.")
    jwks_url: str | None = Field(None, description="URL of the issuer's keys: https, or http on loopback.")
    jwks_file: Path | None = Field(None, description="File with the issuer's keys, as an alternative to jwks_url.")
    algorithms: tuple[Algorithm, ...] = Field(
        ("RS256", "ES256"), min_length=1, description="Accepted signature algorithms."
    )
    principal_claim: str = Field("sub", min_length=1, description="Claim of the principal.")
    principal_prefix: str = Field("user:", description="Prefix of the principal.")
    tenant_claim: str | None = Field(
        None, min_length=1, description="Claim of the tenant. Without it, `tenant` applies."
    )
    tenant: str = Field("default", min_length=1, description="Tenant of all tokens without tenant_claim.")
    leeway_seconds: float = Field(30.0, ge=0.0, le=300.0, description="Tolerated clock skew.")
    max_token_bytes: Count = Field(
        8_192, description="Maximum token length; longer tokens are refused without parsing."
    )
    jwks_max_age_seconds: Seconds = Field(
        3_600.0, description="Lifetime of fetched keys. They are refreshed after half of it."
    )
    jwks_min_refresh_seconds: Seconds = Field(
        30.0, description="Minimum interval between fetches, also for tokens with unknown keys."
    )
    jwks_timeout_seconds: Seconds = Field(5.0, description="Timeout of a fetch.")

    @model_validator(mode="after")
    def _check_complete(self) -> JwtSettings:
        given = (self.audience, self.jwks_url, self.jwks_file)
        if self.issuer is None:
            if any(given):
                raise ValueError("audience, jwks_url and jwks_file need an issuer")
            return self
        if not self.audience:
            raise ValueError("audience is required, so that tokens for other services are refused")
        if (self.jwks_url is None) == (self.jwks_file is None):
            raise ValueError("set exactly one of jwks_url and jwks_file")
        return self


class CertificateSettings(Section):
    """Identity of a client certificate."""

    identity: str = Field(
        min_length=1,
        description="Subject alternative name or common name of the certificate.",
    )
    tenant: str = Field("default", min_length=1, description="Tenant of calls with this certificate.")
    principal: str = Field(min_length=1, description="Principal of calls with this certificate.")


class AuthSettings(Section):
    """Accepted credentials. Without any, only loopback addresses are served, without authentication."""

    required: bool = Field(
        False, description="Refuse calls without a credential, even if no credential is configured below."
    )
    api_keys: tuple[ApiKey, ...] = Field((), description="Configured API keys.")
    jwt: JwtSettings = JwtSettings()
    certificates: tuple[CertificateSettings, ...] = Field(
        (), description="Accepted client certificates. If empty, all are accepted, with the common name as principal."
    )

    @property
    def demanded(self) -> bool:
        """True if calls need a credential."""
        return self.required or bool(self.api_keys) or self.jwt.issuer is not None
