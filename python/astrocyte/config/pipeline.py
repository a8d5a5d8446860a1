"""Settings of the pipeline stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrocyte.config.banks import at, nested, without
from astrocyte.config.extraction import ChunkingSettings, EntityExtractionSettings, PipelineEmbeddingSettings
from astrocyte.config.recall import RerankingSettings
from astrocyte.config.reflect import ReflectSettings
from astrocyte.config.retain import MultimodalSettings
from astrocyte.config.section import Section
from astrocyte.config.source import KeyPath, SourceLines, line_of, merge
from astrocyte.config.stages import PipelineFusionSettings, QueryAnalysisSettings, RetrievalSettings
from astrocyte.errors import ConfigError

# Aliases in the block pipeline, and their canonical keys.
OTHER_NAMES: tuple[tuple[KeyPath, KeyPath], ...] = (
    (("pipeline", "retrieval", "semantic_overfetch_multiplier"), ("recall", "overfetch")),
    (("pipeline", "fusion", "rrf_k"), ("recall", "rank_constant")),
)


# Keys of features that this version does not have. They may be there as long as they turn nothing on.
UNBUILT: tuple[tuple[KeyPath, str], ...] = (
    (
        ("pipeline", "consolidation"),
        (
            "scheduled consolidation is not supported: duplicates are detected on retain (signal_quality.dedup), "
            "entities with the same name are one, and memories are not archived; remove this key"
        ),
    ),
    (("entity_resolution",), "this version has no entity resolution: entities are matched by name; leave it out"),
    (("mental_model_store",), "this version has no mental models; leave it out"),
    (("sources",), "this version has no ingest sources; call retain or `astrocyte import`, and leave it out"),
)


def without_unbuilt(values: Mapping[str, Any], source: SourceLines) -> dict[str, Any]:
    """Return values without the keys of features that this version does not have.

    Raises:
        ConfigError: One of them is turned on.
    """
    kept = dict(values)
    for path, missing in UNBUILT:
        above = at(kept, path[:-1])
        if not isinstance(above, Mapping) or path[-1] not in above:
            continue
        if _turned_on(above[path[-1]]):
            raise ConfigError(
                f"{source.place(path)}: {missing}", metadata={"key": ".".join(path), **line_of(source, path)}
            )
        kept = without(kept, path)
    return kept


def _turned_on(value: object) -> bool:
    if isinstance(value, Mapping):
        return bool(value["enabled"]) if "enabled" in value else any(map(_turned_on, value.values()))
    return bool(value) and value not in {"none", "disabled"} if not isinstance(value, list) else bool(value)


class PipelineSettings(Section):
    """Pipeline stages."""

    chunking: ChunkingSettings = ChunkingSettings()
    entity_extraction: EntityExtractionSettings = EntityExtractionSettings()
    multimodal: MultimodalSettings = MultimodalSettings()
    embedding: PipelineEmbeddingSettings = PipelineEmbeddingSettings()
    query_analysis: QueryAnalysisSettings = QueryAnalysisSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    fusion: PipelineFusionSettings = PipelineFusionSettings()
    reranking: RerankingSettings = RerankingSettings()
    reflect: ReflectSettings = ReflectSettings()


def name_once(values: Mapping[str, Any], source: SourceLines) -> dict[str, Any]:
    """Copy values given under a pipeline alias to their canonical key.

    Raises:
        ConfigError: Alias and canonical key have different values.
    """
    spelled = dict(values)
    for other, own in OTHER_NAMES:
        said, known = at(spelled, other), at(spelled, own)
        if said is None or not isinstance(values.get(own[0], {}), Mapping):
            continue
        if known is not None and known != said:
            raise ConfigError(
                f"{source.place(other)}: {'.'.join(own)} has the different value {known!r}; set only one of them",
                metadata={"key": ".".join(other), **line_of(source, other)},
            )
        spelled = merge(spelled, nested(own, said))
    return spelled
