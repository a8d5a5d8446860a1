"""Look-up of providers by their names in the settings: built-in ones, or those that other distributions register.

A distribution registers a function of the options under the entry point group ``astrocyte.embedders``, where it returns
an `Embedder`, ``astrocyte.language_models`` (a `LanguageModel`), ``astrocyte.vector_stores`` (a `VectorStore`),
``astrocyte.document_stores`` (a `DocumentStore`), ``astrocyte.engine_providers`` (an `EngineProvider`),
``astrocyte.ingest_stream_drivers`` (a `StreamDriver`) or ``astrocyte.ingest_poll_drivers`` (a `PollDriver`).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from astrocyte.config.sources.proxies import ProxySource
from astrocyte.errors import ConfigError
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.engines import GROUP as ENGINES
from astrocyte.providers.engines import EngineProvider
from astrocyte.providers.ingest.protocols import POLL_DRIVERS, STREAM_DRIVERS, PollDriver, StreamDriver
from astrocyte.providers.protocols import Embedder, LanguageModel, Reranker
from astrocyte.providers.storage import GRAPH_SPI_VERSION, SPI_VERSION, DocumentStore, GraphStore, VectorStore

GROUP = "astrocyte.embedders"
LANGUAGE_MODELS = "astrocyte.language_models"
# The name of no language model at all.
NONE = "none"
# Names of a vector store that say where the truth is: its index in the core is then the only one.
SQLITE, IN_MEMORY = TRUTHS = ("sqlite", "in_memory")
# Of `store.backend`.
POSTGRES = "postgres"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of provider: the setting that names one, its entry points, and the built-in ones.

    Ours are listed so that they are found in a source tree too; the second part is the extra that each needs.
    """

    setting: str
    group: str
    built_in: Mapping[str, tuple[str, str]]
    factory: str = "create"
    spi_version: int = SPI_VERSION


_EMBEDDER = _Kind(
    "embedding.provider",
    GROUP,
    {
        "static": ("astrocyte.providers.static", ""),
        "openai": ("astrocyte.providers.openai", "openai"),
        "fastembed": ("astrocyte.providers.fastembed", "fastembed"),
    },
)
_LANGUAGE_MODEL = _Kind(
    "llm_provider",
    LANGUAGE_MODELS,
    {
        "mock": ("astrocyte.providers.mock", ""),
        "openai": ("astrocyte.providers.openai_chat", "openai"),
        "anthropic": ("astrocyte.providers.anthropic", "anthropic"),
    },
)

_RERANKER = _Kind(
    "pipeline.reranking.mode",
    "astrocyte.rerankers",
    {"cross_encoder": ("astrocyte.providers.cross_encoder", "fastembed")},
)

_STREAM_DRIVERS = {
    "kafka": ("astrocyte.providers.ingest.kafka", "kafka"),
    "redis": ("astrocyte.providers.ingest.redis", "redis"),
}

_POLL_DRIVERS = {
    "folder": ("astrocyte.providers.ingest.folder", ""),
    "github": ("astrocyte.providers.ingest.github", "poll"),
    "imap": ("astrocyte.providers.ingest.imap", ""),
    "json": ("astrocyte.providers.ingest.json_endpoint", "poll"),
    "rss": ("astrocyte.providers.ingest.feed", "poll"),
}

# Another server is called as any client calls it, so its module stands above the layers of this one.
_ENGINES = {"astrocyte": ("astrocyte.federation", "")}


_STORES = {
    "reference": ("astrocyte.providers.storage.in_memory", ""),
    "postgres": ("astrocyte.providers.storage.postgres", "postgres"),
}
# pgvector is the extension that the store of PostgreSQL searches with; both names mean this store.
_PGVECTOR = {"pgvector": _STORES["postgres"]}
_VECTOR_STORES = {**_STORES, **_PGVECTOR, "qdrant": ("astrocyte.providers.storage.qdrant", "qdrant")}
_GRAPH_STORES = {**_STORES, "neo4j": ("astrocyte.providers.storage.neo4j", "neo4j")}
_VECTOR_STORE = _Kind("vector_store", "astrocyte.vector_stores", _VECTOR_STORES, "create_vector_store")
_GRAPH_STORE = _Kind("graph_store", "astrocyte.graph_stores", _GRAPH_STORES, "create_graph_store", GRAPH_SPI_VERSION)
_ELASTICSEARCH = ("astrocyte.providers.storage.elasticsearch", "elasticsearch")
_DOCUMENT_STORES = {**_STORES, "elasticsearch": _ELASTICSEARCH, "opensearch": _ELASTICSEARCH}
_DOCUMENT_STORE = _Kind("document_store", "astrocyte.document_stores", _DOCUMENT_STORES, "create_document_store")


def create_embedder(name: str, options: Mapping[str, Any]) -> Embedder:
    """The embedder of that name, with its options.

    Raises:
        ConfigError: There is none of that name, it cannot be imported, or it refuses its options.
    """
    return cast("Embedder", _find(_EMBEDDER, name)(options))


def create_language_model(name: str, options: Mapping[str, Any]) -> LanguageModel | None:
    """The language model of that name, with its options, bounded; None for ``none``.

    Raises:
        ConfigError: There is none of that name, it cannot be imported, or it refuses its options.
    """
    if name == NONE:
        if options:
            raise ConfigError(
                "llm_provider_config has no effect while llm_provider is none; name a provider",
                metadata={"key": "llm_provider_config"},
            )
        return None
    return BoundedModel(cast("LanguageModel", _find(_LANGUAGE_MODEL, name)(options)))


def create_reranker(name: str, options: Mapping[str, Any]) -> Reranker:
    """The reranker of that name, with its options.

    Raises:
        ConfigError: There is none of that name, it cannot be imported or made, or it refuses its options.
    """
    made = _find(_RERANKER, name)(options)
    if not callable(getattr(made, "score", None)):
        raise ConfigError(
            f"{_RERANKER.setting} {name!r} made a {type(made).__name__}, which has no method score",
            metadata={"provider": name},
        )
    return cast("Reranker", made)


def create_vector_store(name: str, options: Mapping[str, Any]) -> VectorStore | None:
    """The vector store of that name, with its options; None where the name is that of the primary store.

    Raises:
        ConfigError: There is none of that name, it cannot be imported, refuses its options, or is of another version.
    """
    return cast("VectorStore | None", _store(_VECTOR_STORE, name, options, TRUTHS))


def create_document_store(name: str, options: Mapping[str, Any]) -> DocumentStore | None:
    """The document store of that name, with its options; None for ``none``. Raises what `create_vector_store` does."""
    return cast("DocumentStore | None", _store(_DOCUMENT_STORE, name, options, (NONE,)))


def create_engine(setting: str, provider: str, options: Mapping[str, Any]) -> EngineProvider:
    """The engine whose provider a setting names, with its options.

    Raises:
        ConfigError: There is no such provider, it cannot be imported, it refuses its options, or makes no engine.
    """
    kind = _Kind(setting, ENGINES, _ENGINES)
    engine = _find(kind, provider)(options)
    if not isinstance(engine, EngineProvider):
        raise ConfigError(
            f"{kind.setting} {provider!r} made a {type(engine).__name__}, which lacks methods of an EngineProvider",
            metadata={"provider": provider},
        )
    return engine


def create_stream_driver(setting: str, driver: str, options: Mapping[str, Any]) -> StreamDriver:
    """The driver of a stream that a setting names, with its options.

    Raises:
        ConfigError: There is no such driver, it cannot be imported, it refuses its options, or makes no driver.
    """
    made = _find(_Kind(setting, STREAM_DRIVERS, _STREAM_DRIVERS), driver)(options)
    if not isinstance(made, StreamDriver):
        raise ConfigError(
            f"{setting} {driver!r} made a {type(made).__name__}, which lacks methods of a StreamDriver",
            metadata={"provider": driver},
        )
    return made


def create_poll_driver(setting: str, driver: str, options: Mapping[str, Any]) -> PollDriver:
    """The driver of a poll source that a setting names, with its options.

    Raises:
        ConfigError: There is no such driver, it cannot be imported, it refuses its options, or makes no driver.
    """
    made = _find(_Kind(setting, POLL_DRIVERS, _POLL_DRIVERS), driver)(options)
    if not isinstance(made, PollDriver):
        raise ConfigError(
            f"{setting} {driver!r} made a {type(made).__name__}, which lacks methods of a PollDriver",
            metadata={"provider": driver},
        )
    return made


def create_proxy(name: str, source: ProxySource, directory: Path | None) -> EngineProvider:
    """The proxy source of that id, as an engine; ``directory`` is where it keeps replaced refresh tokens.

    Raises:
        ConfigError: The extra is missing, or a file of the settings cannot be used.
    """
    try:
        engine = import_module("astrocyte.providers.proxy.engine").ProxyEngine
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"sources.{name}.type 'proxy' needs {error.name}: pip install 'astrocyte-grpc[proxy]'",
            metadata={"key": f"sources.{name}.type", "extra": "proxy"},
        ) from error
    return cast("EngineProvider", engine(name, source, directory))


def create_graph_store(name: str, options: Mapping[str, Any]) -> GraphStore | None:
    """The graph store of that name, with its options; None for ``none``. Raises what `create_vector_store` does."""
    return cast("GraphStore | None", _store(_GRAPH_STORE, name, options, (NONE,)))


def _store(kind: _Kind, name: str, options: Mapping[str, Any], nothing: Sequence[str]) -> object | None:
    if name in nothing:
        if options:
            raise ConfigError(
                f"{kind.setting}_config has no effect while {kind.setting} is {name}; name an external store",
                metadata={"key": f"{kind.setting}_config"},
            )
        return None
    store = _find(kind, name, nothing)(options)
    version = getattr(store, "SPI_VERSION", None)
    if version != kind.spi_version:
        raise ConfigError(
            f"{kind.setting} {name!r} implements version {version} of the protocol; expected {kind.spi_version}; "
            "install a matching version",
            metadata={"provider": name},
        )
    return store


def _find(kind: _Kind, name: str, others: Sequence[str] = ()) -> Callable[[Mapping[str, Any]], object]:
    if name in kind.built_in:
        module, extra = kind.built_in[name]
        try:
            return cast("Callable[[Mapping[str, Any]], object]", getattr(import_module(module), kind.factory))
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{kind.setting} {name!r} needs {error.name}: pip install 'astrocyte-grpc[{extra}]'",
                metadata={"provider": name, "extra": extra},
            ) from error
    registered = {point.name: point for point in entry_points(group=kind.group)}
    if name not in registered:
        known = sorted({*others, *kind.built_in, *registered})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"{kind.setting}: there is no provider {name!r}; {hint}", metadata={"provider": name})
    try:
        return cast("Callable[[Mapping[str, Any]], object]", registered[name].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{kind.setting} {name!r} ({registered[name].value}) cannot be loaded: {error}",
            metadata={"provider": name},
        ) from error
