"""Settings of proxy sources: a request to another service at each recall, and the way to read its response."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from astrocyte.config.engines import BankPattern, HybridSettings
from astrocyte.config.extraction import JSON_PATH, PATH_START, Key
from astrocyte.config.loading.section import Count, Seconds, Section, Weight
from astrocyte.config.sources.common import TargetBank

# Before the id of a source, where engines are named: in traces, metrics and hits.
PREFIX = "proxy:"
# Placeholders in texts of a request.
QUERY, BANK, RESULTS = "query", "bank_id", "max_results"
PLACEHOLDERS = (QUERY, BANK, RESULTS)
IN_URL = re.compile(r"\{([^{}]*)\}")
IN_BODY = re.compile(r"__astrocyte\.([a-z_]+)__")
# Longest JSON of a body in the settings that any service needs, in levels.
MOST_DEPTH = 16
ROOT = "$"
RowPath = Annotated[str, Field(max_length=512, pattern=JSON_PATH.pattern)]
HitsPath = Annotated[str, Field(max_length=512, pattern=rf"^(\$|{JSON_PATH.pattern})$")]
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]{0,63}$")]
# These are the transport's own: another value would say something else about the message than what is sent.
OWN_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# It is the value of a header.
Principal = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[\x20-\x7e]+$")]
VISIBLE = re.compile(r"[\x20-\x7e]*")


def check_url(url: str, *, placeholders: bool) -> str:
    """Return an address that a request may be made to.

    Raises:
        ValueError: It is another scheme, has no host, has credentials or a fragment, or a placeholder in a wrong place.
    """
    if not VISIBLE.fullmatch(url) or " " in url or "\\" in url:
        raise ValueError("expected visible ASCII characters without spaces and backslashes")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("expected an address with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("expected no credentials in the address; set auth")
    if parts.fragment:
        raise ValueError("expected no fragment in the address")
    _ = parts.port  # raises ValueError beyond 65535
    if "{" in parts.netloc or "}" in parts.netloc:
        raise ValueError("expected no placeholder in the host")
    names = IN_URL.findall(url)
    unknown = sorted(set(names) - set(PLACEHOLDERS)) if placeholders else names
    if unknown or "{" in IN_URL.sub("", url) or "}" in IN_URL.sub("", url):
        known = " and ".join(f"{{{name}}}" for name in PLACEHOLDERS) if placeholders else "none"
        raise ValueError(f"unknown placeholder in the address; known: {known}")
    return url


class BearerAuth(Section):
    """A fixed token in the header Authorization."""

    type: Literal["bearer"]
    token: SecretStr = Field(min_length=1, description="Token.")


class ApiKeyAuth(Section):
    """A fixed key in a header."""

    type: Literal["api_key"]
    header: HeaderName = Field("X-Api-Key", description="Header of the key.")
    key: SecretStr = Field(min_length=1, description="Key.")


class OAuthSettings(Section):
    """Keys of both OAuth 2.0 grants."""

    token_url: str = Field(min_length=1, max_length=2_048, description="Token endpoint.")
    client_id: str = Field(min_length=1, max_length=1_024, description="Client id.")
    client_secret: SecretStr | None = Field(None, min_length=1, description="Client secret; none for a public client.")
    client_authentication: Literal["basic", "body"] = Field(
        "basic", description="Place of client id and secret: header Authorization, or body."
    )
    scope: str | None = Field(None, min_length=1, max_length=4_096, description="Scopes, separated by spaces.")

    @field_validator("token_url")
    @classmethod
    def _check_token_url(cls, url: str) -> str:
        return check_url(url, placeholders=False)


class ClientCredentialsAuth(OAuthSettings):
    """OAuth 2.0 client credentials: an access token for this server."""

    type: Literal["oauth2_client_credentials"]
    client_secret: SecretStr = Field(min_length=1, description="Client secret.")


class RefreshTokenAuth(OAuthSettings):
    """OAuth 2.0 refresh token: an access token for a user who has consented.

    A refresh token that the endpoint replaces is kept in the data directory.
    """

    type: Literal["oauth2_refresh_token"]
    refresh_token: SecretStr = Field(
        min_length=1, description="First refresh token. Another value here replaces a kept one."
    )


ProxyAuth = Annotated[BearerAuth | ApiKeyAuth | ClientCredentialsAuth | RefreshTokenAuth, Field(discriminator="type")]


class ProxyMapping(Section):
    """Fields of a hit, each by its path in the JSON of the response, such as $.fields.title."""

    hits: HitsPath | None = Field(
        None, description="Path of the list of hits; $ if the response is the list. None: $.hits, else $.results."
    )
    text: RowPath = Field(f"{PATH_START}text", description="Path of the text in a hit.")
    memory_id: RowPath | None = Field(f"{PATH_START}memory_id", description="Path of the id.")
    score: RowPath | None = Field(f"{PATH_START}score", description="Path of the score; without one, the order counts.")
    tags: RowPath | None = Field(f"{PATH_START}tags", description="Path of a list of tags.")
    fact_type: RowPath | None = Field(f"{PATH_START}fact_type", description="Path of the fact type.")
    occurred_at: RowPath | None = Field(
        f"{PATH_START}occurred_at", description="Path of the time: ISO 8601 with a time zone, or seconds since 1970."
    )
    retained_at: RowPath | None = Field(f"{PATH_START}retained_at", description="Path of the time of storage.")
    session_id: RowPath | None = Field(f"{PATH_START}session_id", description="Path of the session.")
    speaker: RowPath | None = Field(f"{PATH_START}speaker", description="Path of the speaker.")
    source: RowPath | None = Field(f"{PATH_START}source", description="Path of the source, such as a URL.")
    metadata: RowPath | dict[Key, RowPath] | None = Field(
        f"{PATH_START}metadata", description="Path of an object of metadata, or paths by key."
    )


class ProxySource(Section):
    """Recall from another service over HTTP: its hits are fused with those of the banks."""

    type: Literal["proxy"]
    tenant: str = Field(
        "default", min_length=1, description="Tenant of the banks. Other tenants never reach the source."
    )
    banks: tuple[BankPattern, ...] = Field(
        ("*",), min_length=1, description="Banks of the source: ids, or patterns with * and ?."
    )
    target_bank: TargetBank | None = Field(None, description="The one bank of the source, in place of `banks`.")
    principal: Principal | None = Field(
        None, description="Principal to send in x-astrocyte-on-behalf-of, in place of the caller's."
    )
    url: str = Field(
        min_length=1,
        max_length=2_048,
        description="Address; {query}, {bank_id}, {max_results} are replaced, encoded. A GET without {query} sends the "
        "query as the parameter q.",
    )
    recall_method: Literal["GET", "POST"] = Field("POST", description="Method of the request.")
    recall_body: dict[str, Any] | None = Field(
        None,
        description="JSON of a POST. `__astrocyte.query__`, `__astrocyte.bank_id__` and `__astrocyte.max_results__` "
        "are replaced. Default: an object with query, bank_id and max_results.",
    )
    headers: dict[HeaderName, SecretStr] = Field(default_factory=dict, description="Further headers.")
    auth: ProxyAuth | None = Field(None, description="Credential of this server.")
    mapping: ProxyMapping = Field(ProxyMapping(), description="Fields of the response.")
    forward_principal: bool = Field(False, description="Send the principal of the call in x-astrocyte-on-behalf-of.")
    weight: Weight = Field(1.0, description="Weight of its hits in the fusion; 0 disables the source.")
    recall_timeout_seconds: Seconds = Field(
        0.8, le=60.0, description="Timeout of the request. On timeout, the recall continues without the source."
    )
    cache_seconds: float = Field(
        0.0, ge=0.0, le=3_600.0, description="Seconds for which an answer is used again for the same call; 0: never."
    )
    max_response_bytes: int = Field(
        1_048_576, ge=1_024, le=16_777_216, description="Maximum size of a response, compressed and decompressed."
    )
    max_requests: Count = Field(16, le=256, description="Maximum number of requests in progress.")
    most_hops: Count = Field(
        1, le=16, description="Maximum number of servers in the path of a call, including this one."
    )
    allow_networks: tuple[IPv4Network | IPv6Network, ...] = Field(
        (), description="Networks that may be reached besides public addresses, such as 10.1.0.0/16."
    )
    tls_roots_file: Path | None = Field(
        None, description="PEM root certificates, instead of those of the package certifi."
    )

    @field_validator("url")
    @classmethod
    def _check_address(cls, url: str) -> str:
        return check_url(url, placeholders=True)

    @field_validator("headers")
    @classmethod
    def _check_headers(cls, headers: dict[str, SecretStr]) -> dict[str, SecretStr]:
        for name, value in headers.items():
            if name.lower() in OWN_HEADERS:
                raise ValueError(f"{name} is set by the server; leave it out")
            if not VISIBLE.fullmatch(value.get_secret_value()):
                raise ValueError(f"{name}: expected visible ASCII characters")
        return headers

    @field_validator("recall_body")
    @classmethod
    def _check_body(cls, body: dict[str, Any] | None) -> dict[str, Any] | None:
        _check_part(body, MOST_DEPTH)
        return body

    @model_validator(mode="after")
    def _check_whole(self) -> ProxySource:
        if self.recall_method == "GET" and self.recall_body is not None:
            raise ValueError("recall_body has no effect with recall_method GET; set POST, or leave it out")
        if self.target_bank is not None and "banks" in self.model_fields_set:
            raise ValueError("target_bank is the one bank of the source, and banks are several; set one of the two")
        if self.principal is not None and self.forward_principal:
            raise ValueError("principal has no effect with forward_principal; set one of the two")
        if self.auth is not None and self.url.startswith("http:") and not self.allow_networks:
            raise ValueError("a credential must not be sent unencrypted over public networks; use https")
        return self


def as_engine(source: ProxySource) -> HybridSettings:
    """The use of a source in terms of engines: it is asked in recalls, and never written to."""
    return HybridSettings(
        banks=source.banks if source.target_bank is None else (source.target_bank,),
        tenant=source.tenant,
        engine_recall_weight=source.weight,
        read_only=True,
        timeout_seconds=source.recall_timeout_seconds,
        most_hops=source.most_hops,
    )


def _check_part(part: object, depth: int) -> None:
    """Refuse placeholders that do not exist, and values that are no JSON."""
    if depth < 0:
        raise ValueError(f"expected at most {MOST_DEPTH} levels")
    match part:
        case dict():
            for name, value in part.items():
                if not isinstance(name, str):
                    raise ValueError("expected texts as keys")  # noqa: TRY004 - pydantic takes this one
                _check_part(value, depth - 1)
        case list():
            for value in part:
                _check_part(value, depth - 1)
        case str():
            unknown = sorted(set(IN_BODY.findall(part)) - set(PLACEHOLDERS))
            if unknown:
                known = ", ".join(f"__astrocyte.{name}__" for name in PLACEHOLDERS)
                raise ValueError(f"unknown placeholder __astrocyte.{unknown[0]}__; known: {known}")
        case None | bool() | int() | float():
            pass
        case _:
            raise ValueError(f"expected JSON, got a {type(part).__name__}")
