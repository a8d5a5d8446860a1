"""Settings of the pipeline stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from astrocyte.config.banks import at, nested
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


class PipelineSettings(Section):
    """Pipeline stages."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "consolidation": "scheduled consolidation is not supported: duplicates are detected on retain "
        "(signal_quality.dedup), entities with the same name are one, and memories are not archived; remove this key"
    }

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
