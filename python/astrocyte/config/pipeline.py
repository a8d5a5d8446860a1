"""The steps of the pipelines, each with a block of its own."""

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

# Names of the pipeline for what is set elsewhere; what one says holds for both.
OTHER_NAMES: tuple[tuple[KeyPath, KeyPath], ...] = (
    (("pipeline", "retrieval", "semantic_overfetch_multiplier"), ("recall", "overfetch")),
    (("pipeline", "fusion", "rrf_k"), ("recall", "rank_constant")),
)


class PipelineSettings(Section):
    """The steps of the pipelines."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "consolidation": "memories are not consolidated on a schedule: what repeats another is kept out when it comes "
        "(signal_quality.dedup), entities of one name are one, and nothing is archived by its age; leave it out"
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
    """Values in which what has another name in the pipeline is said under its own name too.

    Raises:
        ConfigError: The two say different things.
    """
    spelled = dict(values)
    for other, own in OTHER_NAMES:
        said, known = at(spelled, other), at(spelled, own)
        if said is None or not isinstance(values.get(own[0], {}), Mapping):
            continue
        if known is not None and known != said:
            raise ConfigError(
                f"{source.place(other)}: {'.'.join(own)} says {known!r}; say it once",
                metadata={"key": ".".join(other), **line_of(source, other)},
            )
        spelled = merge(spelled, nested(own, said))
    return spelled
