"""Builds what answers for this server from elsewhere: embedders, the language model, external stores and engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from astrocyte.config import Settings
from astrocyte.config.sources.proxies import PREFIX, ProxySource, as_engine
from astrocyte.pipelines.external_stores.adapters import Documents, Graph, Guarded, Kind, Vectors
from astrocyte.pipelines.graph.named_entities import named_entities
from astrocyte.pipelines.index.embedding_spaces import EmbeddingSpaces
from astrocyte.policy.engines.registry import Engines
from astrocyte.policy.observability.telemetry import Telemetry
from astrocyte.providers.circuit_breaker import Breaker
from astrocyte.providers.guarded import GuardedEmbedder, GuardedModel
from astrocyte.providers.protocols import Embedder, LanguageModel
from astrocyte.providers.registry import (
    IN_MEMORY,
    create_document_store,
    create_embedder,
    create_engine,
    create_graph_store,
    create_language_model,
    create_proxy,
    create_vector_store,
)
from astrocyte.stores.sqlite.engine.data_directory import SOURCE_TOKENS


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """The providers of one application.

    Attributes:
        spaces: The embedders: that of banks which name no model, and the others.
        language_model: None where the settings name none.
        external_stores: Vector, document and graph stores that follow this server's store.
        engines: Memory engines beside the pipeline.
        breakers: The circuit breaker of each provider that is not part of this process, but of engines.
    """

    spaces: EmbeddingSpaces
    language_model: LanguageModel | None
    external_stores: list[Guarded]
    engines: Engines
    breakers: list[Breaker]

    async def close(self) -> None:
        """Release the connections of embedders, language model and engines."""
        await self.spaces.close()
        if self.language_model is not None:
            await self.language_model.close()
        await self.engines.close()


def build_providers(settings: Settings, telemetry: Telemetry) -> Providers:
    """The providers that the settings name.

    Raises:
        ConfigError: One does not exist, cannot be made, or has an option without effect.
    """
    breakers: list[Breaker] = []
    return Providers(
        spaces=_spaces(settings, telemetry, breakers),
        language_model=_language_model(settings, telemetry, breakers),
        external_stores=_external_stores(settings, breakers),
        engines=_engines(settings, telemetry),
        breakers=breakers,
    )


def _breaker(settings: Settings, name: str, breakers: list[Breaker]) -> Breaker:
    breaker = Breaker(name, settings.escalation.circuit_breaker)
    breakers.append(breaker)
    return breaker


def _spaces(settings: Settings, telemetry: Telemetry, breakers: list[Breaker]) -> EmbeddingSpaces:
    model = settings.pipeline.embedding.model
    options = {**settings.embedding.options, **({} if model is None else {"model": model})}
    given = [(settings.embedding.provider, options)]
    given += [(block.provider, block.options) for block in settings.embedders.values()]
    default, *others = [
        telemetry.embedder(_embedder(settings, provider, options, breakers), provider) for provider, options in given
    ]
    return EmbeddingSpaces(default, others)


def _embedder(settings: Settings, provider: str, options: Mapping[str, Any], breakers: list[Breaker]) -> Embedder:
    embedder = create_embedder(provider, options)
    if embedder.local:
        return embedder
    timeout = settings.escalation.circuit_breaker.call_timeout_seconds
    return GuardedEmbedder(embedder, _breaker(settings, provider, breakers), timeout)


def _language_model(settings: Settings, telemetry: Telemetry, breakers: list[Breaker]) -> LanguageModel | None:
    model = create_language_model(settings.llm_provider, settings.llm_provider_config)
    if model is None:
        return None
    return telemetry.language_model(GuardedModel(model, _breaker(settings, settings.llm_provider, breakers)))


def _external_stores(settings: Settings, breakers: list[Breaker]) -> list[Guarded]:
    given = settings.outside_stores
    kinds: list[Kind] = []
    vectors = create_vector_store(settings.vector_store, settings.vector_store_config)
    if vectors is not None:
        kinds.append(Vectors(vectors, given.vector_weight))
    documents = create_document_store(settings.document_store, settings.document_store_config)
    if documents is not None:
        kinds.append(Documents(documents, given.document_weight))
    graph = create_graph_store(settings.graph_store, settings.graph_store_config)
    if graph is not None:
        retrieval = settings.pipeline.retrieval
        bounds = (retrieval.graph_max_depth, retrieval.graph_max_results)
        kinds.append(Graph(graph, given.graph_weight, named_entities, *bounds))
    if kinds and settings.recall.cache_bytes:
        raise settings.refusal(
            ("recall", "cache_bytes"), "the answer cache cannot be used with an external store; set it to 0"
        )
    return [Guarded(kind, _breaker(settings, kind.name, breakers)) for kind in kinds]


def _engines(settings: Settings, telemetry: Telemetry) -> Engines:
    engines = Engines(settings, telemetry.engine)
    for name, block in settings.engines.items():
        engine = create_engine(f"engines.{name}.provider", block.provider, block.options)
        engines.add(name, block.provider, block, engine)
    if settings.provider is not None:
        engines.replace_pipeline(
            settings.provider, create_engine("provider", settings.provider, settings.provider_config)
        )
    elif settings.provider_config:
        raise settings.refusal(("provider_config",), "has no effect without provider; name one")
    _add_sources(settings, engines)
    return engines


def _add_sources(settings: Settings, engines: Engines) -> None:
    in_memory = settings.vector_store == IN_MEMORY
    directory = None if in_memory else settings.data_dir.expanduser() / SOURCE_TOKENS
    for name, source in settings.sources.items():
        if isinstance(source, ProxySource):
            engine = create_proxy(name, source, directory)
            engines.add(f"{PREFIX}{name}", source.type, as_engine(source), engine, is_source=True)
