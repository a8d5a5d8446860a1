"""Settings that sources of all types have: the caller, the bank, and the fields of the memories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, field_validator, model_validator

from astrocyte.config.extraction import JSON_PATH, PATH_START, Key, Label, ProfileKey, merged_profiles
from astrocyte.config.loading.section import Section

if TYPE_CHECKING:
    from astrocyte.config import Settings

# In paths of URLs, in metrics, and in names of consumers.
SourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
JsonPath = Annotated[str, Field(max_length=512, pattern=JSON_PATH.pattern)]
TargetBank = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,254}$")]
PRINCIPAL = "{principal}"
Scalar = str | int | float | bool


class MappingSettings(Section):
    """Fields of a memory, each by its path in a JSON message, such as $.issue.title. Other fields are not read."""

    content: JsonPath = Field(description="Path of the content, a text.")
    principal: JsonPath | None = Field(None, description="Path of the principal.")
    content_type: JsonPath | None = Field(None, description="Path of the content type.")
    occurred_at: JsonPath | None = Field(
        None, description="Path of the time: ISO 8601 with a time zone, or seconds since 1970."
    )
    session_id: JsonPath | None = Field(None, description="Path of the session.")
    speaker: JsonPath | None = Field(None, description="Path of the speaker.")
    source: JsonPath | None = Field(None, description="Path of the source, such as a URL.")
    fact_type: JsonPath | None = Field(None, description="Path of the fact type.")
    tags: tuple[Key, ...] = Field((), description="Tags: texts, or paths of a text or of a list of texts.")
    metadata: dict[Key, Scalar] = Field(default_factory=dict, description="Metadata by key: values, or paths of them.")

    @field_validator("tags", "metadata")
    @classmethod
    def _check_paths(cls, values: tuple[str, ...] | dict[str, Scalar]) -> tuple[str, ...] | dict[str, Scalar]:
        for value in values.values() if isinstance(values, dict) else values:
            if isinstance(value, str) and value.startswith(PATH_START) and not JSON_PATH.fullmatch(value):
                raise ValueError(f"expected a path such as $.a.b[0], got {value!r}")
        return values


class SourceSettings(Section):
    """Base of all types of sources that store memories."""

    tenant: str = Field("default", min_length=1, description="Tenant of the banks.")
    principal: str | None = Field(
        None, min_length=1, max_length=256, description="Principal that retains; its grants apply."
    )
    target_bank: TargetBank | None = Field(None, description="Bank of the memories.")
    target_bank_template: str | None = Field(
        None, max_length=255, description="Bank by principal, such as user-{principal}; the message names it."
    )
    extraction_profile: ProfileKey | None = Field(None, description="Extraction profile of the memories.")
    content_type: Label = Field("text", description="Content type of messages that name none.")
    tags: tuple[Key, ...] = Field((), description="Tags of all memories, besides those of the message.")
    metadata: dict[Key, Scalar] = Field(
        default_factory=dict, description="Metadata of all memories; that of the message has precedence."
    )
    mapping: MappingSettings | None = Field(
        None, description="Fields of messages of another form. Without it, messages have the fields of a retain."
    )

    @model_validator(mode="after")
    def _check_bank(self) -> SourceSettings:
        if (self.target_bank is None) == (self.target_bank_template is None):
            raise ValueError("set exactly one of target_bank and target_bank_template")
        template = self.target_bank_template
        if template is not None and template.count(PRINCIPAL) != 1:
            raise ValueError(f"target_bank_template needs {PRINCIPAL} once; use target_bank for a fixed bank")
        if template is not None and set("{}") & set(template.replace(PRINCIPAL, "")):
            raise ValueError(f"target_bank_template has no other placeholder than {PRINCIPAL}")
        return self

    @property
    def target(self) -> str:
        """The bank, or its template."""
        return self.target_bank or self.target_bank_template or ""


def check_sources(settings: Settings) -> None:
    """Check that the extraction profiles of sources exist.

    Raises:
        ConfigError: One does not; the message has the key and its line.
    """
    known = merged_profiles(settings.extraction_profiles)
    for name, source in settings.sources.items():
        profile = source.extraction_profile if isinstance(source, SourceSettings) else None
        if profile is not None and profile not in known:
            path = ("sources", name, "extraction_profile")
            raise settings.refusal(path, f"unknown profile {profile!r}; expected one of {', '.join(sorted(known))}")
