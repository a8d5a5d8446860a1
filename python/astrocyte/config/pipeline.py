"""The steps of the pipelines, each with a block of its own."""

from __future__ import annotations

from astrocyte.config.extraction import ChunkingSettings, EntityExtractionSettings, PipelineEmbeddingSettings
from astrocyte.config.multimodal import MultimodalSettings
from astrocyte.config.reflect import ReflectSettings
from astrocyte.config.reranking import RerankingSettings
from astrocyte.config.section import Section


class PipelineSettings(Section):
    """The steps of the pipelines."""

    chunking: ChunkingSettings = ChunkingSettings()
    entity_extraction: EntityExtractionSettings = EntityExtractionSettings()
    multimodal: MultimodalSettings = MultimodalSettings()
    embedding: PipelineEmbeddingSettings = PipelineEmbeddingSettings()
    reranking: RerankingSettings = RerankingSettings()
    reflect: ReflectSettings = ReflectSettings()
