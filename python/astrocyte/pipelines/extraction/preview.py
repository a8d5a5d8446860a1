"""Previews a retain without storing: for programs that feed a server, and to try profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError as PydanticError

from astrocyte.config import ExtractionProfileSettings, LimitSettings
from astrocyte.config.extraction import merged_profiles
from astrocyte.config.loading.key_checks import check_keys, refuse
from astrocyte.config.loading.source import SourceLines
from astrocyte.errors import NotFound, ValidationError
from astrocyte.model import Metadata, RetainItem
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.pipelines.text import mail
from astrocyte.pipelines.text.normalisation import normalise

OwnProfiles = Mapping[str, ExtractionProfileSettings | Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class PreparedRetainInput:
    """Content as a retain would store it.

    ``content_type`` is the one that chooses normaliser and cut; None elsewhere means that the server's settings say.
    """

    content: str
    content_type: str
    metadata: Metadata
    tags: tuple[str, ...]
    fact_type: str | None
    chunking_strategy: str | None
    chunk_size: int | None
    entity_extraction: bool | str | None
    warnings: tuple[str, ...]


def merged_extraction_profiles(own: OwnProfiles | None = None) -> dict[str, ExtractionProfileSettings]:
    """The built-in extraction profiles and one's own, which win; these may be mappings, as in a configuration.

    Raises:
        ConfigError: A mapping is no profile; it says which key is wrong.
    """
    return merged_profiles({name: _profile(name, value) for name, value in (own or {}).items()})


def prepare_retain_input(
    content: str,
    *,
    content_type: str = "text",
    extraction_profile: str | None = None,
    metadata: Metadata | None = None,
    tags: Sequence[str] = (),
    profiles: OwnProfiles | None = None,
) -> PreparedRetainInput:
    """The item that a retain with these arguments would store, before barriers and chunking.

    Raises:
        ValidationError: There is no such profile, or nothing is left of the content.
        ConfigError: One of the profiles is none.
    """
    merged = merged_extraction_profiles(profiles)
    if extraction_profile is not None and extraction_profile not in merged:
        raise ValidationError(
            f"there is no profile {ascii(extraction_profile)[:64]}; expected one of {', '.join(sorted(merged))}",
            field="extraction_profile",
        )
    chosen = Profiles(merged, lambda _: None, LimitSettings().metadata_value_bytes)
    item = RetainItem(content, content_type, metadata or {}, tuple(tags), extraction_profile=extraction_profile)
    profile = chosen.of("", item)
    applied, told = chosen.applied("", item)
    kind = profile.content_type or content_type
    text = normalise(mail.decoded(content) if kind == mail.CONTENT_TYPE else content, kind)
    if not text:
        raise ValidationError("is empty; send text to store", field="content")
    return PreparedRetainInput(
        content=text,
        content_type=kind,
        metadata=applied.metadata,
        tags=applied.tags,
        fact_type=profile.fact_type,
        chunking_strategy=profile.chunking_strategy,
        chunk_size=profile.chunk_size,
        entity_extraction=profile.entity_extraction,
        warnings=told,
    )


def extraction_profile_for_source(source_id: str, sources: Mapping[str, Any]) -> str | None:
    """The profile that a source names, in a mapping or as an attribute; None if it names none.

    Raises:
        NotFound: There is no such source.
    """
    if source_id not in sources:
        raise NotFound(f"there is no source {source_id!r}; expected one of {', '.join(sorted(sources)) or 'none'}")
    source = sources[source_id]
    found = source.get("extraction_profile") if isinstance(source, Mapping) else source.extraction_profile
    return None if found is None else str(found)


def _profile(name: str, value: ExtractionProfileSettings | Mapping[str, Any]) -> ExtractionProfileSettings:
    if isinstance(value, ExtractionProfileSettings):
        return value
    source = SourceLines(f"profile {name!r}")
    check_keys(ExtractionProfileSettings, value, source)
    try:
        return ExtractionProfileSettings.model_validate(dict(value))
    except PydanticError as error:
        raise refuse(error, source) from error
