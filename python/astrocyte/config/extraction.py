"""How content becomes memories: extraction profiles, what is cut how, and how names are found in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import Field, field_validator, model_validator

from astrocyte.config.section import Seconds, Section
from astrocyte.config.source import KeyPath

if TYPE_CHECKING:
    from astrocyte.config import Settings

Chunking = Literal["sentence", "paragraph", "dialogue", "fixed", "custom"]
EntityMode = Literal["rules", "metadata", "llm", "custom", "disabled"]
# A metadata key, a tag or a label, within the default limits of requests.
Key = Annotated[str, Field(min_length=1, max_length=128)]
Label = Annotated[str, Field(min_length=1, max_length=64)]
ProfileKey = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# Below this a chunk is a phrase.
ChunkChars = Annotated[int, Field(ge=64, le=100_000)]
# Keys joined by full stops, each with places in lists behind it: $.issue.labels[0].name
JSON_PATH = re.compile(r"\$(?:\.[^.\[\]]+(?:\[\d{1,6}\])*)+")
PATH_START = "$."


class TagRule(Section):
    """Tags for contents that hold a text, whatever its case."""

    contains: str | None = Field(None, min_length=1, description="The text to look for.")
    match: str | None = Field(None, min_length=1, description="Another name of contains.")
    tags: tuple[Key, ...] = Field(min_length=1, description="What such contents are tagged with.")

    @model_validator(mode="after")
    def _check_text(self) -> TagRule:
        if (self.contains is None) == (self.match is None):
            raise ValueError("say contains or match, one of them")
        return self

    @property
    def text(self) -> str:
        """What is looked for."""
        return self.contains or self.match or ""


class ExtractionProfileSettings(Section):
    """How contents of one kind are taken in; what is left out, the content's type and the other settings say."""

    content_type: Label | None = Field(None, description="Normalise and cut as this type, whatever the item says.")
    chunking_strategy: Chunking | None = Field(None, description="Where long contents are cut.")
    chunk_size: ChunkChars | None = Field(None, description="Largest chunk, in characters.")
    entity_extraction: bool | EntityMode | None = Field(
        None, description="How names are found; true: as pipeline.entity_extraction says, false: not at all."
    )
    metadata_mapping: dict[Key, str | int | float | bool] = Field(
        default_factory=dict,
        description="Metadata by key: $.a.b[0] is read from a content that is JSON, anything else is the value. "
        "What the item says itself wins.",
    )
    tag_rules: tuple[TagRule, ...] = Field((), description="Tags beside the item's own.")
    fact_type: Label | None = Field(None, description="Kind of fact, where the item says none.")
    authority_tier: Label | None = Field(
        None, description="Metadata authority_tier, where the item says none: how far recalls may rely on it."
    )

    @field_validator("metadata_mapping")
    @classmethod
    def _check_paths(cls, mapping: dict[str, Any]) -> dict[str, Any]:
        for key, value in mapping.items():
            if key.startswith("_"):
                raise ValueError(f"{key!r}: keys that begin with _ are the server's own")
            if isinstance(value, str) and value.startswith(PATH_START) and not JSON_PATH.fullmatch(value):
                raise ValueError(f"{key!r}: expected a path such as $.a.b[0], got {value!r}")
        return mapping


class ExtractionSettings(Section):
    """Which profile holds where a retain names none."""

    profile: ProfileKey | None = Field(None, description="A profile of extraction_profiles, or a built-in one.")


class ChunkingSettings(Section):
    """How long contents are cut; what is left out, retain.chunking and retain.chunk_tokens say."""

    strategy: Chunking | None = Field(
        None, description="Strategy of text, and of types that have none of their own; custom asks custom_chunker."
    )
    max_chunk_size: ChunkChars | None = Field(None, description="Largest chunk, in characters.")
    custom_chunker: str | None = Field(
        None,
        min_length=1,
        description="Who cuts where a strategy is custom: an entry point of astrocyte.chunkers or package.module:name.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, repr=False, description="Handed to custom_chunker, which checks them."
    )
    timeout_seconds: Seconds = Field(
        1.0, description="How long to wait for custom_chunker; then contents are cut by sentence."
    )


class EntityExtractionSettings(Section):
    """How names of people, things and places are found in contents, and kept with the memory.

    rules: capitalised names, dates, mail addresses, hashtags and code identifiers; metadata: what the metadata say;
    llm: the language model, rules where it fails; custom: custom_extractor.
    """

    mode: EntityMode = Field("disabled", description="How they are found, where a profile does not say.")
    custom_extractor: str | None = Field(
        None,
        min_length=1,
        description="What mode custom asks: package.module:Class, or a name of the entry points "
        "astrocyte.entity_extractors.",
    )
    max_entities: Annotated[int, Field(ge=1, le=1_000)] = Field(
        50, description="Entities of one memory; the first ones are kept."
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
        description="Metadata keys that name entities, several with commas between, and their type.",
    )
    deadline_seconds: Seconds = Field(4.0, description="How long a language model, or a custom extractor, may take.")

    @model_validator(mode="after")
    def _check_custom(self) -> EntityExtractionSettings:
        if self.mode == "custom" and self.custom_extractor is None:
            raise ValueError("mode custom needs custom_extractor")
        return self


class PipelineEmbeddingSettings(Section):
    """The embedding step."""

    model: str | None = Field(None, min_length=1, description="Option model of embedding.provider, in its place.")


@cache
def builtin_profiles() -> Mapping[str, ExtractionProfileSettings]:
    """The profiles that come with the product, by name."""
    text = files("astrocyte").joinpath("profiles", "extraction", "builtin.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return {name: ExtractionProfileSettings.model_validate(value) for name, value in values.items()}


def merged_profiles(own: Mapping[str, ExtractionProfileSettings]) -> dict[str, ExtractionProfileSettings]:
    """The built-in profiles and those of the settings, which win."""
    return {**builtin_profiles(), **own}


def check_profiles(settings: Settings) -> None:
    """Refuse a profile that is not there, and a custom extractor that is wanted and not named, or named and not wanted.

    Raises:
        ConfigError: Names the key and its line.
    """
    known = merged_profiles(settings.extraction_profiles)
    blocks: dict[KeyPath, str | None] = {("extraction", "profile"): settings.extraction.profile}
    blocks |= {("banks", bank, "extraction", "profile"): own.extraction.profile for bank, own in settings.banks.items()}
    for path, name in blocks.items():
        if name is not None and name not in known:
            raise settings.refusal(path, f"there is no profile {name!r}; there are {', '.join(sorted(known))}")
    entities = settings.pipeline.entity_extraction
    asking = [name for name, one in settings.extraction_profiles.items() if one.entity_extraction == "custom"]
    if entities.custom_extractor is None and asking:
        needing = ("extraction_profiles", asking[0], "entity_extraction")
        raise settings.refusal(needing, "needs pipeline.entity_extraction.custom_extractor")
    if entities.custom_extractor is not None and entities.mode != "custom" and not asking:
        unasked = ("pipeline", "entity_extraction", "custom_extractor")
        raise settings.refusal(unasked, "has no effect: neither the mode nor a profile is custom")


def check_embedding_model(settings: Settings) -> None:
    """Refuse an embedding model that is named twice, differently.

    Raises:
        ConfigError: Names the key and its line.
    """
    model, other = settings.pipeline.embedding.model, settings.embedding.options.get("model")
    if model is not None and other not in (None, model):
        raise settings.refusal(("pipeline", "embedding", "model"), f"embedding.options says {other!r}; say it once")
