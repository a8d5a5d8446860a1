"""Settings of poll sources: a driver that asks for new and changed items at intervals."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, SecretStr, Tag, field_validator, model_validator

from astrocyte.config.loading.section import Count, Section
from astrocyte.config.sources.common import SourceSettings
from astrocyte.config.sources.proxies import ApiKeyAuth, BearerAuth, ClientCredentialsAuth

# GitHub asks integrations to poll no more often.
LEAST_GITHUB_SECONDS = 60.0
WEEK_SECONDS = 604_800.0


class TokenAuth(BearerAuth):
    """A fixed token in the header Authorization; the type of a credential that names none."""

    type: Literal["bearer"] = "bearer"


class BasicAuth(Section):
    """User name and password."""

    type: Literal["basic"]
    username: str = Field(min_length=1, max_length=1_024, description="User name.")
    password: SecretStr = Field(min_length=1, description="Password.")

    @field_validator("username")
    @classmethod
    def _check_username(cls, username: str) -> str:
        # It ends the name in the header of RFC 7617.
        if ":" in username or not username.isprintable():
            raise ValueError("expected printable characters without a colon")
        return username


def _type_of(auth: object) -> str:
    """The type of a credential, which the settings may leave out."""
    found = auth.get("type", "bearer") if isinstance(auth, dict) else getattr(auth, "type", "bearer")
    return str(found)


PollAuth = Annotated[
    Annotated[TokenAuth, Tag("bearer")]
    | Annotated[ApiKeyAuth, Tag("api_key")]
    | Annotated[BasicAuth, Tag("basic")]
    | Annotated[ClientCredentialsAuth, Tag("oauth2_client_credentials")],
    Discriminator(_type_of),
]


class PollSource(SourceSettings):
    """Items that are asked for at intervals: new ones become memories, changed ones new versions of them."""

    type: Literal["poll", "api_poll"]
    driver: str = Field(
        min_length=1,
        description="folder, github, imap, json, rss, or another entry point of astrocyte.ingest_poll_drivers.",
    )
    path: str | None = Field(
        None, min_length=1, max_length=4_096, description="What is read: a repository, a folder or a mailbox."
    )
    url: SecretStr | None = Field(None, min_length=1, description="Address of the service.")
    auth: PollAuth | None = Field(None, description="Credential of this server.")
    interval_seconds: float = Field(
        300.0, ge=1.0, le=WEEK_SECONDS, description="Seconds between the end of a poll and the next one."
    )
    batch_size: Annotated[int, Field(ge=1, le=10_000)] = Field(100, description="Items that are stored together.")
    max_tries: Count = Field(5, description="Attempts at an item that fails for no known reason, before it is refused.")
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of the driver, which validates them."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, values: Any) -> Any:  # noqa: ANN401 - as it comes
        if isinstance(values, dict) and values.get("type") == "api_poll":
            return {**values, "type": "poll"}
        return values

    @model_validator(mode="after")
    def _check_driver(self) -> PollSource:
        if self.driver == "github" and self.interval_seconds < LEAST_GITHUB_SECONDS:
            raise ValueError(f"interval_seconds: expected at least {LEAST_GITHUB_SECONDS:g} for github")
        double = sorted({"path", "url", "auth"} & self.options.keys())
        if double:
            raise ValueError(f"{double[0]} is a key of the source; move it out of options")
        return self

    @property
    def driver_options(self) -> dict[str, Any]:
        """All that the driver is made of. A key that is not set is left to the driver's default."""
        own = {"path": self.path, "url": self.url, "auth": self.auth}
        return {**{name: value for name, value in own.items() if value is not None}, **self.options}
