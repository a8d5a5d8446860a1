"""The composition root: from settings to a gate. Nothing else builds stores, providers or pipelines."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import apsw
import structlog

from astrocyte.config import Settings
from astrocyte.config.extraction import merged_profiles
from astrocyte.config.source import memory_limit
from astrocyte.core import Core, build_info
from astrocyte.errors import AstrocyteError, ConfigError, frames
from astrocyte.model import EngineOutbox, IndexMemory, ServerInfo
from astrocyte.pipelines.explain.pipeline import ExplainPipeline
from astrocyte.pipelines.external_stores.adapters import Documents, Graph, Guarded, Kind, Vectors
from astrocyte.pipelines.external_stores.stores import OutsideStores
from astrocyte.pipelines.extraction.entities import create_extraction
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.pipelines.forget import ForgetPipeline
from astrocyte.pipelines.index.checkpoints import Checkpoints, remove_directory
from astrocyte.pipelines.index.embedding_spaces import Spaces
from astrocyte.pipelines.index.registry import IndexRegistry
from astrocyte.pipelines.multi_bank.pipeline import MultiBankPipeline
from astrocyte.pipelines.recall.pipeline import RecallPipeline
from astrocyte.pipelines.recall.reranking import RerankedRecall
from astrocyte.pipelines.recall.tiered import TieredRecall, check_tiers
from astrocyte.pipelines.reflect.pipeline import ReflectPipeline, check_models
from astrocyte.pipelines.reindex.pipeline import Reindexer
from astrocyte.pipelines.retain.drafts import Preparer
from astrocyte.pipelines.retain.multimodal import Describer
from astrocyte.pipelines.retain.pipeline import RetainPipeline
from astrocyte.pipelines.retain.update import UpdatePipeline
from astrocyte.policy.engines.outbox_relay import Deliveries
from astrocyte.policy.engines.registry import Engines
from astrocyte.policy.gate import Pipelines
from astrocyte.policy.governance.recall_authority import Authority
from astrocyte.policy.limits.daily_quotas import Quotas
from astrocyte.policy.limits.rate_limits import Limits
from astrocyte.policy.limits.storage_quota import StorageQuota
from astrocyte.policy.observability.telemetry import Telemetry
from astrocyte.policy.operations.curation import check_curation
from astrocyte.policy.policies import Policies
from astrocyte.policy.privacy.barriers import Barriers
from astrocyte.policy.quality.content_scoring import ModelScorer
from astrocyte.policy.quality.noisy_banks import Noise
from astrocyte.policy.quality.signal_quality import SignalQuality
from astrocyte.policy.resilience.degraded_mode import Escalation
from astrocyte.policy.resilience.retry_queue import Retries
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.breaker import Breaker
from astrocyte.providers.guarded import GuardedEmbedder, GuardedModel
from astrocyte.providers.protocols import Embedder, LanguageModel
from astrocyte.providers.registry import (
    IN_MEMORY,
    SQLITE,
    create_document_store,
    create_embedder,
    create_engine,
    create_graph_store,
    create_language_model,
    create_vector_store,
)
from astrocyte.stores.protocols import MemoryStore
from astrocyte.stores.sqlite import open_store, system_clock
from astrocyte.stores.sqlite.engine.data_directory import CHECKPOINTS, QUOTAS
from astrocyte.stores.sqlite.tables.quotas import SqliteQuotaBook
from astrocyte.wiring.custom_stages import Stages, create_reranking

if TYPE_CHECKING:
    # It comes with an extra.
    from astrocyte.pipelines.query.multilingual_dates import ForeignDates

log = structlog.get_logger(__name__)


class App:
    """Everything that runs for one data directory, built from settings and released by `close`.

    Args:
        settings: How.
        clock: Milliseconds since the epoch; tests bring their own.

    Raises:
        ConfigError: The embedder, the language model or a store from outside cannot be made, a setting needs one that
            is not there, or a pattern of the barriers cannot be used.
        StoreError: The store cannot be opened; `StoreLocked` when another process has it.
    """

    def __init__(  # noqa: PLR0915 - the parts, in the order in which they need each other
        self, settings: Settings, *, clock: Callable[[], int] = system_clock
    ) -> None:
        self.settings = settings
        self._clock = clock
        with contextlib.ExitStack() as undo:
            self.telemetry = telemetry = Telemetry(settings)
            undo.callback(telemetry.close)
            breakers: list[Breaker] = []
            spaces = _spaces(settings, telemetry, breakers)
            model = _language_model(settings, breakers)
            self.language_model = None if model is None else telemetry.language_model(model)
            barriers = Barriers(settings, spaces.models, self.language_model)
            _check_models(settings, self.language_model)
            outside = _outside(settings, breakers)
            authority = Authority(settings)
            foreign = _foreign_dates(settings)
            overrides = Overrides(settings)
            profiles = Profiles(
                merged_profiles(settings.extraction_profiles),
                lambda bank_id: overrides.of(bank_id).extraction.profile,
                settings.limits.metadata_value_bytes,
            )
            entities = create_extraction(settings, profiles, self.language_model)
            self.engines = _engines(settings, telemetry)
            data_dir = None if settings.vector_store == IN_MEMORY else settings.data_dir.expanduser()
            store = open_store(data_dir, clock=clock, **settings.store.model_dump())
            undo.callback(store.close)
            threads = settings.index.threads or os.cpu_count() or 1
            executor = ThreadPoolExecutor(threads, thread_name_prefix="astrocyte-core")
            undo.callback(executor.shutdown)
            self._outside = OutsideStores(outside, store, store.following, settings, executor) if outside else None
            core = _core(settings, data_dir)
            self._checkpoints = checkpoints = _checkpoints(settings, store, core, data_dir)
            registry = IndexRegistry(
                store,
                core,
                executor,
                memory_bytes=settings.index.memory_bytes or memory_limit() // 2,
                checkpoints=checkpoints,
            )
            scorer = _scorer(settings, overrides, self.language_model)
            self._reranking = create_reranking(settings, self.language_model, barriers.passages)
            self._stages = stages = Stages(settings)
            check_curation(settings, overrides, self.language_model)
            self._limits = Limits(settings, overrides, _quotas(settings, overrides, data_dir, clock, executor))
            # After the registry: an index has moved before anybody hears of it.
            store.subscribe(spaces.on_commit)
            info = _describe(settings, store, spaces, registry.memory)
            undo.pop_all()
        self._spaces = spaces
        self._store = store
        self._executor = executor
        self._registry = registry
        self._purging: asyncio.Task[None] | None = None
        preparer = Preparer(settings, spaces, executor, profiles, entities, stages.chunking)
        retain = RetainPipeline(store, registry, settings, preparer)
        self._deliveries = deliveries = Deliveries(self.engines, store, store.outbox)
        self._retries = Retries(settings, overrides, store, retain, deliveries)
        quality = SignalQuality(overrides, Noise(), scorer)
        escalation = Escalation(settings, overrides, store, self._retries, breakers)
        escalation.at_recovery(quality.recovered)
        escalation.at_recovery(deliveries.wake)
        self.engines.subscribe(escalation.watch)
        beside = (self._outside, foreign, stages.recall)
        searching = (store, core, registry, spaces, settings, executor, store, clock, *beside)
        recall = RecallPipeline(*searching) if self._reranking is None else RerankedRecall(self._reranking, *searching)
        reindexer = Reindexer(store, store.operations, registry, recall, spaces, settings.reindex, clock)
        self._reindexer = reindexer
        parts = (
            settings,
            store,
            store.access,
            store.holds,
            store.audit,
            store.keys,
            store.operations,
            clock,
            registry,
            spaces,
            telemetry.pipelines(
                Pipelines(
                    retain=retain,
                    recall=_by_tiers(recall, store, settings, self.language_model),
                    reflect=ReflectPipeline(self.language_model, settings, stages.synthesis),
                    multi_bank=MultiBankPipeline(recall, settings, executor),
                    explain=ExplainPipeline(store, recall, executor, settings.recall.inline_rows),
                    update=UpdatePipeline(store, preparer, spaces),
                    describer=Describer(settings.pipeline.multimodal, self.language_model, spaces.default),
                    forget=ForgetPipeline(store, settings.forget, clock, self._outside, checkpoints, reindexer),
                    reindexer=reindexer,
                )
            ),
            Policies(
                overrides,
                self._limits,
                StorageQuota(store),
                barriers,
                escalation,
                quality,
                profiles,
                authority,
                self.language_model,
                self.engines,
                deliveries,
            ),
            info,
            executor,
            self,
        )
        self.gate = telemetry.gate(info, parts)
        telemetry.watch(store, store, registry, self._outboxes)
        self.backend = telemetry.backend(self.gate)

    @property
    def healthy(self) -> bool:
        """Whether writes are taken; once False it stays so until the application is built anew."""
        return self._store.healthy

    def start_purging(self) -> None:
        """Erase what is due, and store what waits, in the background of the running loop; a second call does nothing.

        The gate calls this at its first use; a server that may wait long for its first call does it itself.
        """
        if self._purging is None:
            self._purging = asyncio.get_running_loop().create_task(self._purge_for_ever(), name="astrocyte-purge")
            self._retries.start()
            self._deliveries.start()
            self._reindexer.start()
            if self._outside is not None:
                self._outside.start()

    async def close(self) -> None:
        """Finish the writes that wait, then release files, threads and connections. A second call does nothing."""
        if self._purging is not None:
            self._purging.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._purging
            self._purging = None
        await self._retries.close()
        await self._deliveries.close()
        await self._reindexer.close()
        with contextlib.suppress(AstrocyteError):
            await self.gate.keys.note()
        if self._outside is not None:
            await self._outside.close()
        await self._spaces.close()
        if self._reranking is not None:
            await self._reranking.close()
        await self._stages.close()
        if self.language_model is not None:
            await self.language_model.close()
        await self.engines.close()
        await self._limits.close()
        run = asyncio.get_running_loop().run_in_executor
        # While the change log can still be read.
        await run(None, self._registry.close)
        await run(None, self._store.close)
        # It waits for who takes the spans.
        await run(None, self.telemetry.close)
        self._executor.shutdown(wait=True)

    def _outboxes(self) -> dict[str, EngineOutbox]:
        """What waits for engines, by their names."""
        states = {engine.name: self._deliveries.state(engine) for engine in self.engines}
        return {name: state for name, state in states.items() if state is not None}

    async def _purge_for_ever(self) -> None:
        swept = False
        while True:
            try:
                erased = await self._store.purge(self._clock())
                if erased:
                    log.info("purged", memories=erased)
                if self._checkpoints is not None and (erased or not swept):
                    await asyncio.get_running_loop().run_in_executor(None, self._checkpoints.sweep)
                swept = True
            except AstrocyteError as error:
                log.warning("purge_failed", reason=error.reason)
            except Exception as error:  # noqa: BLE001 - what is due stays due, and the next round may fare better
                # No traceback: it could show the values of variables, which are content.
                log.error("purge_failed", error=type(error).__name__, frames=frames(error))  # noqa: TRY400
            await asyncio.sleep(self.settings.forget.purge_interval_seconds)


def _check_models(settings: Settings, model: LanguageModel | None) -> None:
    """Refuse settings that need a language model where there is none.

    Raises:
        ConfigError: Names the setting.
    """
    check_models(settings, model)
    check_tiers(settings, model)


def _foreign_dates(settings: Settings) -> ForeignDates | None:
    """What knows dates of other languages, where they are wanted."""
    if not settings.recall.date_languages:
        return None
    try:
        # Not everybody has the extra.
        from astrocyte.pipelines.query.multilingual_dates import ForeignDates  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise settings.refusal(
            ("recall", "date_languages"), f"needs {error.name}: pip install 'astrocyte-grpc[dates]'"
        ) from error
    return ForeignDates(settings)


def _by_tiers(
    recall: RecallPipeline, store: MemoryStore, settings: Settings, model: LanguageModel | None
) -> RecallPipeline:
    """What answers recalls on one bank, as the gate knows it."""
    if not settings.tiered_retrieval.enabled:
        return recall
    return cast("RecallPipeline", TieredRecall(recall, store, settings, model))


def _spaces(settings: Settings, telemetry: Telemetry, breakers: list[Breaker]) -> Spaces:
    """The embedders: that of banks which name no model, and the others."""
    model = settings.pipeline.embedding.model
    options = {**settings.embedding.options, **({} if model is None else {"model": model})}
    given = [(settings.embedding.provider, options)]
    given += [(block.provider, block.options) for block in settings.embedders.values()]
    default, *others = [
        telemetry.embedder(_embedder(settings, provider, options, breakers), provider) for provider, options in given
    ]
    return Spaces(default, others)


def _embedder(settings: Settings, provider: str, options: Mapping[str, Any], breakers: list[Breaker]) -> Embedder:
    """An embedder, behind a breaker of its own where it is not part of this process."""
    embedder = create_embedder(provider, options)
    if embedder.local:
        return embedder
    breaker = Breaker(provider, settings.escalation.circuit_breaker)
    breakers.append(breaker)
    return GuardedEmbedder(embedder, breaker, settings.escalation.circuit_breaker.call_timeout_seconds)


def _language_model(settings: Settings, breakers: list[Breaker]) -> LanguageModel | None:
    """The language model, if there is one, behind a breaker of its own."""
    model = create_language_model(settings.llm_provider, settings.llm_provider_config)
    if model is None:
        return None
    breaker = Breaker(settings.llm_provider, settings.escalation.circuit_breaker)
    breakers.append(breaker)
    return GuardedModel(model, breaker)


def _outside(settings: Settings, breakers: list[Breaker]) -> list[Guarded]:
    """The stores from outside, each behind a breaker of its own."""
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
        walk = settings.pipeline.retrieval
        kinds.append(Graph(graph, given.graph_weight, walk.graph_max_depth, walk.graph_max_results))
    if kinds and settings.recall.cache_bytes:
        raise settings.refusal(
            ("recall", "cache_bytes"), "answers are not kept where a store from outside has a part in them; set it to 0"
        )
    guarded = []
    for kind in kinds:
        breaker = Breaker(kind.name, settings.escalation.circuit_breaker)
        breakers.append(breaker)
        guarded.append(Guarded(kind, breaker))
    return guarded


def _engines(settings: Settings, telemetry: Telemetry) -> Engines:
    """The engines beside the pipeline, each behind a breaker of its own."""
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
    return engines


def _scorer(settings: Settings, overrides: Overrides, model: LanguageModel | None) -> ModelScorer | None:
    """What scores contents by the language model, where any bank wants that.

    Raises:
        ConfigError: There is no language model.
    """
    own = [*settings.banks.values(), *overrides.templates.values()]
    blocks = [settings.signal_quality, *(bank.signal_quality for bank in own)]
    if not any(block.scoring.enabled and block.scoring.scorer == "llm" for block in blocks):
        return None
    if model is None:
        raise ConfigError(
            "signal_quality.scoring.scorer is llm and there is no language model; set llm_provider",
            metadata={"key": "signal_quality.scoring.scorer"},
        )
    return ModelScorer(model)


def _quotas(
    settings: Settings, overrides: Overrides, data_dir: Path | None, clock: Callable[[], int], executor: Executor
) -> Quotas | None:
    """The daily quotas, where any bank has one."""
    own = [*settings.banks.values(), *overrides.templates.values()]
    blocks = [settings.homeostasis, *(bank.homeostasis for bank in own)]
    if all(block.quotas.retain_per_day is None and block.quotas.reflect_per_day is None for block in blocks):
        return None
    path = settings.homeostasis.quotas.database or (None if data_dir is None else data_dir / QUOTAS)
    return Quotas(SqliteQuotaBook(path), clock, executor)


def _core(settings: Settings, data_dir: Path | None) -> Core:
    index = settings.index
    return Core(
        str(data_dir) if data_dir is not None and index.scratch else None,
        graph_rows=index.graph_rows,
        build_share=index.build_share,
        graph_candidates=index.graph_candidates,
        scan_rows=index.scan_rows,
        sampling=index.sampling,
        recall_floor=index.recall_floor,
        threads=index.threads,
    )


def _checkpoints(settings: Settings, store: MemoryStore, core: Core, data_dir: Path | None) -> Checkpoints | None:
    index = settings.index
    if data_dir is None:
        return None
    folder = data_dir / CHECKPOINTS
    if not index.checkpoints:
        # None of before may outlive what is erased from now on.
        remove_directory(folder)
        return None
    return Checkpoints(
        folder,
        store,
        core,
        rows=index.checkpoint_rows,
        evicted_rows=index.checkpoint_evicted_rows,
        generations=index.checkpoint_generations,
    )


def _describe(settings: Settings, store: MemoryStore, spaces: Spaces, memory: IndexMemory) -> ServerInfo:
    build = build_info()
    return ServerInfo(
        version=version("astrocyte-grpc"),
        core_version=build["version"],
        core_profile=build["profile"],
        simd=build["simd"],
        sqlite_version=apsw.sqlite_lib_version(),
        schema_version=store.schema_version,
        embedding_model=spaces.default.model_id,
        dimensions=spaces.default.dimensions,
        token_table=build["token_table"],
        store=IN_MEMORY if settings.vector_store == IN_MEMORY else SQLITE,
        started_at=datetime.now(UTC),
        index_memory=memory,
        embedding_models=tuple(spaces.models),
    )
