"""Which credentials the server accepts, and whom they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from astrocyte.config.section import Count, Seconds, Section

# Those with a public key: a secret that the server shares with an issuer would let the server's readers issue tokens.
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]


class ApiKey(Section):
    """A static bearer key: its SHA-256 in hex, never the key itself."""

    name: str = Field(min_length=1, description="What logs call it.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Lower-case hex SHA-256 of the key.")
    tenant: str = Field("default", min_length=1, description="Tenant of every call made with it.")
    principal: str = Field(min_length=1, description="Principal of every call made with it.")


class JwtSettings(Section):
    """Tokens of an OpenID Connect issuer, or of any other that signs JWTs; none are accepted without an issuer."""

    issuer: str | None = Field(None, min_length=1, description="The iss that a token must have; none: no tokens.")
    audience: tuple[str, ...] = Field((), description="A token's aud must name one of these.")
    jwks_url: str | None = Field(None, description="Where the issuer's keys are: https, or http on this machine.")
    jwks_file: Path | None = Field(None, description="A file with the issuer's keys, instead of jwks_url.")
    algorithms: tuple[Algorithm, ...] = Field(("RS256", "ES256"), min_length=1, description="Signatures accepted.")
    principal_claim: str = Field("sub", min_length=1, description="The claim that names the principal.")
    principal_prefix: str = Field("user:", description="Put before that name.")
    tenant_claim: str | None = Field(None, min_length=1, description="The claim that names the tenant; none: `tenant`.")
    tenant: str = Field("default", min_length=1, description="Tenant of all tokens where tenant_claim is none.")
    leeway_seconds: float = Field(30.0, ge=0.0, le=300.0, description="How far clocks may disagree.")
    max_token_bytes: Count = Field(8_192, description="Longer tokens are refused unread.")
    jwks_max_age_seconds: Seconds = Field(
        3_600.0, description="How long keys are good for; they are fetched again after half of it."
    )
    jwks_min_refresh_seconds: Seconds = Field(30.0, description="Keys are not fetched more often, whatever tokens say.")
    jwks_timeout_seconds: Seconds = Field(5.0, description="How long to wait for them.")

    @model_validator(mode="after")
    def _check_complete(self) -> JwtSettings:
        given = (self.audience, self.jwks_url, self.jwks_file)
        if self.issuer is None:
            if any(given):
                raise ValueError("audience, jwks_url and jwks_file need an issuer")
            return self
        if not self.audience:
            raise ValueError("audience is missing; tokens that were made for others would be accepted")
        if (self.jwks_url is None) == (self.jwks_file is None):
            raise ValueError("set one of jwks_url and jwks_file")
        return self


class CertificateSettings(Section):
    """Whom a client certificate stands for."""

    identity: str = Field(
        min_length=1,
        description="A subject alternative name, or the common name, as the certificate has it.",
    )
    tenant: str = Field("default", min_length=1, description="Tenant of every call made with it.")
    principal: str = Field(min_length=1, description="Principal of every call made with it.")


class AuthSettings(Section):
    """Credentials that the server accepts; none means loopback only, without credentials."""

    required: bool = Field(False, description="Refuse calls without a credential, even where none is set up below.")
    api_keys: tuple[ApiKey, ...] = Field((), description="Keys that stand in the configuration.")
    jwt: JwtSettings = JwtSettings()
    certificates: tuple[CertificateSettings, ...] = Field(
        (), description="Client certificates that are accepted; none: all, and their common name is the principal."
    )

    @property
    def demanded(self) -> bool:
        """Whether a call needs a credential."""
        return self.required or bool(self.api_keys) or self.jwt.issuer is not None
