"""Observers of an application as configured: spans, metrics, hooks. A disabled observer has no cost.

Spans and metrics come with the extra ``telemetry``, whose packages are imported only where they are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from astrocyte.api import Backend
from astrocyte.config import Settings
from astrocyte.model import EngineOutbox, ServerInfo, SourceInfo
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.policy import events
from astrocyte.policy.gate import Gate
from astrocyte.policy.observability.hooks import Hooks, load
from astrocyte.policy.observability.hooks_middleware import HooksMiddleware
from astrocyte.policy.observability.middleware import MiddlewareBackend
from astrocyte.policy.operations.parts import Pipelines
from astrocyte.policy.quality.bank_activity import BankActivity
from astrocyte.providers.engines import EngineProvider
from astrocyte.providers.protocols import Embedder, LanguageModel
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.queue import RetryQueue

if TYPE_CHECKING:
    # They come with the extra.
    from astrocyte.policy.observability.gauges import Levels
    from astrocyte.policy.observability.metrics import Metrics
    from astrocyte.policy.observability.tracing import Tracing


class Telemetry:
    """The wrappers around the parts of an application, and around its gate.

    Args:
        settings: What is wanted.

    Raises:
        ConfigError: The extra is missing, the environment names an exporter of spans that there is not, or a hook
            cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        events.set_provider(settings.vector_store)
        self.metrics: Metrics | None = None
        self.tracing: Tracing | None = None
        self._levels: Levels | None = None
        self._hooks: Hooks | None = None
        with ExitStack() as undo:
            undo.callback(self.close)
            if settings.observability.prometheus_enabled:
                with self._extra("prometheus_enabled"):
                    from astrocyte.policy.observability.metrics import Metrics  # noqa: PLC0415 - not everybody has the extra
                self.metrics = Metrics(settings.observability, settings.vector_store)
            if settings.observability.otel_enabled:
                with self._extra("otel_enabled"):
                    from astrocyte.policy.observability.tracing import Tracing  # noqa: PLC0415 - as above
                self.tracing = Tracing(settings.vector_store)
            if settings.hooks.enabled:
                self._hooks = Hooks(settings.hooks)
                load(self._hooks, settings.hooks.enabled)
            undo.pop_all()

    def embedder(self, embedder: Embedder, provider: str) -> Embedder:
        """The embedder of a provider as it is to be used."""
        if self.tracing is None:
            return embedder
        from astrocyte.policy.observability.tracing_middleware import traced_embedder  # noqa: PLC0415 - as above

        return traced_embedder(embedder, provider, self.tracing)

    def language_model(self, model: LanguageModel) -> LanguageModel:
        """The language model as it is to be used."""
        if self.tracing is None:
            return model
        from astrocyte.policy.observability.tracing_middleware import traced_model  # noqa: PLC0415 - as above

        return traced_model(model, self._settings.llm_provider, self.tracing)

    def engine(self, name: str, engine: EngineProvider) -> EngineProvider:
        """The engine as it is to be used."""
        if self.metrics is not None:
            from astrocyte.policy.observability.metrics_middleware import measured_engine  # noqa: PLC0415 - as above

            engine = measured_engine(name, engine, self.metrics)
        if self.tracing is None:
            return engine
        from astrocyte.policy.observability.tracing_middleware import traced_engine  # noqa: PLC0415 - as above

        return traced_engine(name, engine, self.tracing)

    def pipelines(self, pipelines: Pipelines) -> Pipelines:
        """The pipelines as the gate is to use them."""
        if self.tracing is None:
            return pipelines
        from astrocyte.policy.observability.tracing_middleware import traced_pipelines  # noqa: PLC0415 - as above

        return traced_pipelines(pipelines, self.tracing)

    def watch(
        self,
        queue: RetryQueue,
        store: MemoryStore,
        registry: IndexRegistry,
        outboxes: Callable[[], Mapping[str, EngineOutbox]],
    ) -> None:
        """Report the queues of these, if metrics are on."""
        if self.metrics is not None:
            from astrocyte.policy.observability.gauges import Levels  # noqa: PLC0415 - as above
            from astrocyte.policy.observability.index_levels import IndexLevels  # noqa: PLC0415 - as above

            self.metrics.watch(IndexLevels(registry))
            self._levels = Levels(queue, store, registry, self._settings.index, outboxes)
            self.metrics.watch(self._levels)

    def watch_banks(self, activity: BankActivity, clock: Callable[[], int]) -> None:
        """Report the health of the banks, if metrics are on."""
        if self.metrics is not None:
            self.metrics.watch_banks(activity, clock)

    def watch_sources(self, sources: Callable[[], list[SourceInfo]]) -> None:
        """Report the state of the ingest sources, if metrics are on."""
        if self.metrics is not None:
            from astrocyte.policy.observability.source_levels import SourceLevels  # noqa: PLC0415 - as above

            self.metrics.watch(SourceLevels(sources))

    def watch_vocabulary(self, count_proposed: Callable[[], int], count_topics: Callable[[], tuple[int, int]]) -> None:
        """Report the drift of agents' memories from the vocabulary, if metrics are on."""
        if self.metrics is not None:
            from astrocyte.policy.observability.vocabulary_levels import VocabularyLevels  # noqa: PLC0415 - as above

            self.metrics.watch(VocabularyLevels(count_proposed, count_topics))

    def watch_queues(self, queues: Mapping[str, Callable[[], int]]) -> None:
        """Report the lengths of these queues by name, if metrics are on."""
        if self._levels is not None:
            self._levels.add(queues)

    def backend(self, gate: Gate, info: ServerInfo) -> Backend:
        """The gate with the middlewares that are switched on: metrics, around them spans, around these hooks."""
        backend: Backend = gate
        if self.metrics is not None:
            from astrocyte.policy.observability.metrics_middleware import MetricsMiddleware  # noqa: PLC0415 - as above

            self.metrics.describe(info)
            backend = MiddlewareBackend(backend, MetricsMiddleware(self.metrics))
        if self.tracing is not None:
            from astrocyte.policy.observability.tracing_middleware import TracingMiddleware  # noqa: PLC0415 - as above

            backend = MiddlewareBackend(backend, TracingMiddleware(self.tracing))
        if self._hooks is not None:
            backend = MiddlewareBackend(backend, HooksMiddleware(self._hooks))
        return backend

    def close(self) -> None:
        """Call no hooks, serve no more metrics, and send the spans that wait. A second call does nothing."""
        if self._hooks is not None:
            self._hooks.close()
        if self.metrics is not None:
            self.metrics.close()
        if self.tracing is not None:
            self.tracing.close()

    @contextmanager
    def _extra(self, name: str) -> Iterator[None]:
        """Import the packages that a setting needs."""
        try:
            yield
        except ModuleNotFoundError as error:
            raise self._settings.refusal(
                ("observability", name), f"needs {error.name}: pip install 'astrocyte-grpc[telemetry]'"
            ) from error
