"""Settings of extraction, chunking and entity recognition."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import Field, field_validator, model_validator

from astrocyte.config.loading.section import Seconds, Section
from astrocyte.config.loading.source import KeyPath

if TYPE_CHECKING:
    from astrocyte.config import Settings

# Those of the core.
Language = Literal[
    "english", "danish", "dutch", "finnish", "french", "german", "hungarian", "italian", "norwegian", "portuguese",
    "romanian", "spanish", "swedish", "turkish", "none",
]  # fmt: skip
Chunking = Literal["sentence", "paragraph", "dialogue", "fixed", "custom"]
EntityMode = Literal["rules", "metadata", "llm", "custom", "disabled"]
# A metadata key, a tag or a label, within the default limits of requests.
Key = Annotated[str, Field(min_length=1, max_length=128)]
Label = Annotated[str, Field(min_length=1, max_length=64)]
ProfileKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# Smaller chunks would be single phrases.
ChunkChars = Annotated[int, Field(ge=64, le=100_000)]
# Keys separated by full stops, each with optional list indexes: $.issue.labels[0].name
JSON_PATH = re.compile(r"\$(?:\.[^.\[\]]+(?:\[\d{1,6}\])*)+")
PATH_START = "$."
# A key, or a place in a list.
_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,6})\]")


def value_at(document: object, path: str) -> tuple[bool, object]:
    """True if the path, such as ``$.a.b[0]``, exists in a value of JSON, and the value there."""
    for name, place in _STEP.findall(path.removeprefix("$")):
        if name and isinstance(document, dict) and name in document:
            document = document[name]
        elif place and isinstance(document, list) and int(place) < len(document):
            document = document[int(place)]
        else:
            return False, None
    return True, document


class TagRule(Section):
    """Tags for content that contains a text, ignoring case."""

    contains: str | None = Field(None, min_length=1, description="Text to find.")
    match: str | None = Field(None, min_length=1, description="Alias of contains.")
    tags: tuple[Key, ...] = Field(min_length=1, description="Tags to add.")

    @model_validator(mode="after")
    def _check_text(self) -> TagRule:
        if (self.contains is None) == (self.match is None):
            raise ValueError("set exactly one of contains and match")
        return self

    @property
    def text(self) -> str:
        """The text to find."""
        return self.contains or self.match or ""


class ExtractionProfileSettings(Section):
    """Processing of one kind of content. Defaults come from the content type and the other settings."""

    content_type: Label | None = Field(
        None, description="Content type for normalisation and chunking; overrides that of the item."
    )
    chunking_strategy: Chunking | None = Field(None, description="Chunking strategy.")
    chunk_size: ChunkChars | None = Field(None, description="Maximum chunk size in characters.")
    entity_extraction: bool | EntityMode | None = Field(
        None, description="Entity recognition mode. true uses pipeline.entity_extraction, false disables it."
    )
    metadata_mapping: dict[Key, str | int | float | bool] = Field(
        default_factory=dict,
        description="Metadata by key. $.a.b[0] is a path into JSON content; other values are literals. Metadata of "
        "the item has precedence.",
    )
    tag_rules: tuple[TagRule, ...] = Field((), description="Tags in addition to those of the item.")
    fact_type: Label | None = Field(None, description="Default fact type.")
    authority_tier: Label | None = Field(
        None, description="Default of the metadata key authority_tier, for recall_authority."
    )

    @field_validator("metadata_mapping")
    @classmethod
    def _check_paths(cls, mapping: dict[str, Any]) -> dict[str, Any]:
        for key, value in mapping.items():
            if key.startswith("_"):
                raise ValueError(f"{key!r}: keys with the prefix _ are reserved for the server")
            if isinstance(value, str) and value.startswith(PATH_START) and not JSON_PATH.fullmatch(value):
                raise ValueError(f"{key!r}: expected a path such as $.a.b[0], got {value!r}")
        return mapping


class ExtractionSettings(Section):
    """Default extraction profile, and language of the words in keyword search."""

    language: Language = Field(
        "english",
        description="Language by which Latin words are stemmed in keyword search; none compares words as they are. "
        "A bank's index is built anew after a change.",
    )
    profile: ProfileKey | None = Field(None, description="Profile of extraction_profiles, or a built-in profile.")


class ChunkingSettings(Section):
    """Chunking. Defaults come from retain.chunking and retain.chunk_tokens."""

    strategy: Chunking | None = Field(
        None, description="Strategy of text, and of content types without their own. custom uses custom_chunker."
    )
    max_chunk_size: ChunkChars | None = Field(None, description="Maximum chunk size in characters.")
    custom_chunker: str | None = Field(
        None,
        min_length=1,
        description="Entry point of astrocyte.chunkers, or package.module:name. For strategy custom.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Options of custom_chunker, which validates them."
    )
    timeout_seconds: Seconds = Field(
        1.0, description="Timeout of custom_chunker. On timeout, content is split by sentence."
    )


class EntityExtractionSettings(Section):
    """Entity recognition: names of people, things and places, stored with the memory.

    rules finds capitalised names, dates, mail addresses, hashtags and code identifiers. metadata reads metadata keys.
    llm uses the language model, with rules as fallback. custom uses custom_extractor.
    """

    mode: EntityMode = Field(
        "disabled", description="Mode, unless a profile sets one. With a `graph_store` the default is rules."
    )
    custom_extractor: str | None = Field(
        None,
        min_length=1,
        description="package.module:Class, or an entry point of astrocyte.entity_extractors. For mode custom.",
    )
    max_entities: Annotated[int, Field(ge=1, le=1_000)] = Field(
        50, description="Maximum number of entities of a memory; the first ones are kept."
    )
    metadata_keys: dict[Key, str] = Field(
        default_factory=lambda: {
            "entities": "",
            "people": "PERSON",
            "person": "PERSON",
            "organization": "ORG",
            "organizations": "ORG",
            "project": "PROJECT",
            "projects": "PROJECT",
            "place": "PLACE",
            "places": "PLACE",
        },
        description="Metadata keys that list entities, separated by commas, and the entity type of each.",
    )
    deadline_seconds: Seconds = Field(4.0, description="Timeout of the language model or custom extractor.")

    @model_validator(mode="after")
    def _check_custom(self) -> EntityExtractionSettings:
        if self.mode == "custom" and self.custom_extractor is None:
            raise ValueError("mode custom needs custom_extractor")
        return self


class PipelineEmbeddingSettings(Section):
    """Embedding stage."""

    model: str | None = Field(None, min_length=1, description="Alias of the option model of embedding.provider.")


@cache
def builtin_profiles() -> Mapping[str, ExtractionProfileSettings]:
    """Return the built-in profiles by name."""
    text = files("astrocyte").joinpath("profiles", "extraction", "builtin.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return {name: ExtractionProfileSettings.model_validate(value) for name, value in values.items()}


def merged_profiles(own: Mapping[str, ExtractionProfileSettings]) -> dict[str, ExtractionProfileSettings]:
    """Merge the built-in profiles with those of the settings, which win."""
    return {**builtin_profiles(), **own}


def check_profiles(settings: Settings) -> None:
    """Check that named profiles exist, and that a custom extractor is named exactly if it is used.

    Raises:
        ConfigError: The combination is invalid; the message has the key and its line.
    """
    known = merged_profiles(settings.extraction_profiles)
    blocks: dict[KeyPath, str | None] = {("extraction", "profile"): settings.extraction.profile}
    blocks |= {("banks", bank, "extraction", "profile"): own.extraction.profile for bank, own in settings.banks.items()}
    for path, name in blocks.items():
        if name is not None and name not in known:
            raise settings.refusal(path, f"unknown profile {name!r}; expected one of {', '.join(sorted(known))}")
    entities = settings.pipeline.entity_extraction
    asking = [name for name, one in settings.extraction_profiles.items() if one.entity_extraction == "custom"]
    if entities.custom_extractor is None and asking:
        needing = ("extraction_profiles", asking[0], "entity_extraction")
        raise settings.refusal(needing, "needs pipeline.entity_extraction.custom_extractor")
    if entities.custom_extractor is not None and entities.mode != "custom" and not asking:
        unasked = ("pipeline", "entity_extraction", "custom_extractor")
        raise settings.refusal(unasked, "has no effect: neither the mode nor a profile is custom")


def check_embedding_model(settings: Settings) -> None:
    """Check that the embedding model is not set to two different values.

    Raises:
        ConfigError: The values differ; the message has the key and its line.
    """
    model, other = settings.pipeline.embedding.model, settings.embedding.options.get("model")
    if model is not None and other not in (None, model):
        raise settings.refusal(
            ("pipeline", "embedding", "model"),
            f"embedding.options has the different model {other!r}; set only one of them",
        )
