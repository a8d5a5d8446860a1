"""Settings of the pipeline stages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from astrocyte.config.banks import at, nested, without
from astrocyte.config.derived.lifecycle import PipelineConsolidationSettings
from astrocyte.config.extraction import ChunkingSettings, EntityExtractionSettings, PipelineEmbeddingSettings
from astrocyte.config.loading.section import Section
from astrocyte.config.loading.source import KeyPath, SourceLines, line_of, merge
from astrocyte.config.recall import RerankingSettings
from astrocyte.config.reflect import ReflectSettings
from astrocyte.config.retain import MultimodalSettings
from astrocyte.config.stages import PipelineFusionSettings, QueryAnalysisSettings, RetrievalSettings
from astrocyte.errors import ConfigError

if TYPE_CHECKING:
    from astrocyte.config import Settings

# Aliases in the block pipeline, and their canonical keys.
OTHER_NAMES: tuple[tuple[KeyPath, KeyPath], ...] = (
    (("pipeline", "retrieval", "semantic_overfetch_multiplier"), ("recall", "overfetch")),
    (("pipeline", "fusion", "rrf_k"), ("recall", "rank_constant")),
    (("pipeline", "consolidation", "dedup_similarity_threshold"), ("lifecycle", "similarity_threshold")),
    (("pipeline", "consolidation", "archive_unretrieved_after_days"), ("lifecycle", "archive_after_days")),
    (("pipeline", "consolidation", "entity_dedup_enabled"), ("entity_resolution", "enabled")),
    (("pipeline", "consolidation", "schedule"), ("lifecycle", "schedule")),
)
# Keys of pipeline.consolidation with which its runs merge near duplicates, unless lifecycle says otherwise.
MERGING = ("dedup_similarity_threshold", "schedule")

# Keys of features that this version does not have. They may be there as long as they turn nothing on.
UNBUILT: tuple[tuple[KeyPath, str], ...] = (
    (("mental_model_store",), "mental models are stored with the memories, in no other store; leave it out"),
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
    consolidation: PipelineConsolidationSettings = PipelineConsolidationSettings()
    reranking: RerankingSettings = RerankingSettings()
    reflect: ReflectSettings = ReflectSettings()


def name_once(values: Mapping[str, Any], source: SourceLines) -> dict[str, Any]:
    """Copy values given under a pipeline alias to their canonical key.

    Raises:
        ConfigError: Alias and canonical key have different values.
    """
    spelled = dict(values)
    for other, own in OTHER_NAMES:
        said, block = at(spelled, other), spelled.get(own[0], {})
        if said is None or not isinstance(block, Mapping):
            continue
        known = block.get(own[1], said)
        if known != said:
            raise ConfigError(
                f"{source.place(other)}: {'.'.join(own)} has the different value {known!r}; set only one of them",
                metadata={"key": ".".join(other), **line_of(source, other)},
            )
        spelled = merge(spelled, nested(own, said))
    return _merging(spelled)


def _merging(values: dict[str, Any]) -> dict[str, Any]:
    """Turn on the merging of near duplicates where a key of pipeline.consolidation asks for it."""
    asked = any(at(values, ("pipeline", "consolidation", key)) is not None for key in MERGING)
    if not asked or not isinstance(values.get("lifecycle"), Mapping):
        return values
    return merge(nested(("lifecycle", "merge_duplicates"), value=True), values)


def check_consolidation(settings: Settings) -> None:
    """Check that every key of pipeline.consolidation has an effect.

    Raises:
        ConfigError: The entity graph, or the lifecycle, is off; the message has the key and its line.
    """
    for key in ("archive_unretrieved_after_days", "schedule"):
        if getattr(settings.pipeline.consolidation, key) is not None and not settings.lifecycle.enabled:
            raise settings.refusal(
                ("pipeline", "consolidation", key), "has no effect: lifecycle.enabled is false; expected null"
            )
    if settings.pipeline.consolidation.entity_dedup_enabled and not settings.entity_graph.enabled:
        raise settings.refusal(
            ("pipeline", "consolidation", "entity_dedup_enabled"),
            "true has no effect without the entity graph; expected false, or entity_graph.enabled true",
        )
