"""Builds the pipelines, each from the steps that the settings turn on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from astrocyte.config import ConsolidationSettings, Settings
from astrocyte.config.loading.environment import package_version
from astrocyte.pipelines.explain.pipeline import ExplainPipeline
from astrocyte.pipelines.extraction.entities import create_extraction
from astrocyte.pipelines.forget import ForgetPipeline
from astrocyte.pipelines.graph.following import GraphFollower, resolver
from astrocyte.pipelines.graph.llm.judgement import ModelJudgement
from astrocyte.pipelines.graph.llm.reader import ModelReader
from astrocyte.pipelines.graph.pipeline import GraphPipeline
from astrocyte.pipelines.knowledge.clusters import ClusterSearch
from astrocyte.pipelines.knowledge.consolidator import Consolidator, Consolidators, Writer
from astrocyte.pipelines.knowledge.model_writer import ModelWriter
from astrocyte.pipelines.knowledge.rule_writer import RuleWriter
from astrocyte.pipelines.knowledge.search import KnowledgeSearch
from astrocyte.pipelines.knowledge.statements import statements
from astrocyte.pipelines.knowledge.wiki_compiler import WikiCompiler
from astrocyte.pipelines.knowledge.wiki_tier import WikiTier
from astrocyte.pipelines.lifecycle.duplicates import DuplicateSearch
from astrocyte.pipelines.lifecycle.recalls import LastRecalls
from astrocyte.pipelines.lifecycle.runner import LifecycleRunner
from astrocyte.pipelines.multi_bank.pipeline import MultiBankPipeline
from astrocyte.pipelines.portability.export import ExportPipeline
from astrocyte.pipelines.portability.importing import ImportPipeline
from astrocyte.pipelines.query.reference import ReferenceClock
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.pipelines.recall.pipeline import RecallParts, RecallPipeline
from astrocyte.pipelines.recall.reranking import RerankedRecall
from astrocyte.pipelines.recall.tiered import TieredRecall
from astrocyte.pipelines.reflect.pipeline import ReflectPipeline
from astrocyte.pipelines.reindex.pipeline import Reindexer
from astrocyte.pipelines.retain.draft_builder import DraftBuilder
from astrocyte.pipelines.retain.draft_chunks import DraftChunks
from astrocyte.pipelines.retain.draft_vectors import DraftVectors
from astrocyte.pipelines.retain.multimodal import Describer
from astrocyte.pipelines.retain.pipeline import RetainPipeline
from astrocyte.pipelines.retain.update import UpdatePipeline
from astrocyte.policy.operations.parts import Pipelines
from astrocyte.providers.registry import IN_MEMORY, POSTGRES
from astrocyte.stores.knowledge.items import ItemKind
from astrocyte.wiring.custom_stages import Stages
from astrocyte.wiring.policies import Rules
from astrocyte.wiring.providers import Providers
from astrocyte.wiring.storage import Storage

if TYPE_CHECKING:
    # It comes with an extra.
    from astrocyte.pipelines.query.multilingual_dates import MultilingualDates


def build_pipelines(
    settings: Settings,
    providers: Providers,
    rules: Rules,
    storage: Storage,
    stages: Stages,
    confirm: Callable[[int], Awaitable[None]] | None = None,
) -> Pipelines:
    """All pipelines; ``confirm`` waits until other processes keep nothing of what was erased in a bank.

    Raises:
        ConfigError: An extra is missing, or a setting needs a language model and there is none.
    """
    store, model, spaces = storage.store, providers.language_model, providers.spaces
    builder = DraftBuilder(
        spaces,
        rules.profiles,
        create_extraction(settings, rules.profiles, model),
        DraftChunks(settings, rules.profiles, stages.chunking),
        DraftVectors(spaces, storage.executor),
        storage.executor,
    )
    recall = _recall(settings, providers, rules, storage, stages)
    reindexer = Reindexer(store, store.operations, storage.registry, recall, spaces, settings.reindex, storage.clock)
    knowledge = _searched(rules, storage, ItemKind.OBSERVATION, ItemKind.MENTAL_MODEL)
    tiers = settings.tiered_retrieval.enabled
    pages = _searched(rules, storage, ItemKind.WIKI_PAGE)
    in_files = settings.vector_store != IN_MEMORY and settings.store.backend != POSTGRES
    folder = settings.data_dir if in_files else None
    return Pipelines(
        retain=RetainPipeline(store, storage.registry, settings, builder),
        recall=TieredRecall(recall, store, settings, model) if tiers else recall,
        reflect=ReflectPipeline(model, settings, statements, stages.synthesis),
        multi_bank=MultiBankPipeline(recall, settings, storage.executor),
        explain=ExplainPipeline(store, recall, storage.executor, settings.recall.inline_rows),
        update=UpdatePipeline(store, builder, spaces),
        describer=Describer(settings.pipeline.multimodal, model, spaces.default),
        forget=ForgetPipeline(
            store, storage.registry, settings.forget, storage.clock, storage.external, reindexer, confirm
        ),
        reindexer=reindexer,
        graph=_graph(settings, providers, rules, storage),
        consolidator=_consolidators(settings, providers, rules, storage, knowledge, reindexer.notify),
        knowledge=knowledge,
        language_model=model,
        pages=pages,
        wiki_tier=_wiki_tier(settings, storage, recall, pages),
        wiki=_wiki(settings, providers, rules, storage),
        lifecycle=_lifecycle(settings, rules, storage, reindexer.notify),
        exports=ExportPipeline(store, store.knowledge, store.graph, storage.executor, f"astrocyte {package_version()}"),
        imports=ImportPipeline(store, builder, spaces, folder),
    )


def _searched(rules: Rules, storage: Storage, *kinds: ItemKind) -> KnowledgeSearch:
    """The search of items of some kinds."""
    store = storage.store
    return KnowledgeSearch(
        store.knowledge, kinds, store, storage.core, lambda bank_id: rules.overrides.of[bank_id].extraction.language
    )


def _wiki(settings: Settings, providers: Providers, rules: Rules, storage: Storage) -> WikiCompiler:
    """The compiler of wiki pages, with the search for topics that have no name."""
    store, own = storage.store.wiki, settings.wiki
    clusters = ClusterSearch(
        store, storage.registry, storage.executor, threshold=own.cluster_similarity, least=own.min_memories
    )
    return WikiCompiler(store, providers.language_model, own, storage.executor, rules.barriers.passages, clusters)


def _wiki_tier(settings: Settings, storage: Storage, recall: RecallPipeline, pages: KnowledgeSearch) -> WikiTier | None:
    """The tier of recalls that pages answer, if the settings have it."""
    own = settings.tiered_retrieval
    if not (own.enabled and own.wiki):
        return None
    return WikiTier(pages, storage.store.knowledge, recall, own.wiki_relevance, storage.executor, storage.clock)


def _consolidators(
    settings: Settings,
    providers: Providers,
    rules: Rules,
    storage: Storage,
    knowledge: KnowledgeSearch,
    tell: Callable[[], None],
) -> Consolidators:
    """The consolidation of the banks whose observations rules write, and of those whose a language model writes.

    Raises:
        ConfigError: A bank's observations are to be written by a language model, and there is none.
    """
    store, consolidations, overrides = storage.store, storage.store.consolidation, rules.overrides
    executor = ThreadPoolExecutor(1, thread_name_prefix="astrocyte-consolidation")

    def own(bank_id: str) -> ConsolidationSettings:
        return overrides.of[bank_id].observations.consolidation

    most = settings.observations.max_per_bank
    writers: list[Writer] = [RuleWriter(consolidations, own, most, executor)]
    every = [bank.observations.consolidation for bank in overrides.every]
    if any(one.writer == "model" for one in every):
        if providers.language_model is None:
            key = ("observations", "consolidation", "writer")
            raise settings.refusal(key, "model needs a language model; set llm_provider")
        writers.append(
            ModelWriter(
                consolidations,
                providers.language_model,
                own,
                most=most,
                withheld=rules.barriers.passages,
                relevances=knowledge.relevances,
                executor=executor,
                clock=storage.clock,
            )
        )
    enabled = (lambda bank: own(bank.bank_id).enabled) if any(one.enabled for one in every) else None
    return Consolidators(
        [Consolidator(store, consolidations, writer, settings.observations, enabled, tell) for writer in writers],
        executor,
    )


def _lifecycle(settings: Settings, rules: Rules, storage: Storage, tell: Callable[[], None]) -> LifecycleRunner:
    """Runs of the lifecycle, with the recalls of the banks that archive what nobody recalls."""
    store, overrides = storage.store.lifecycle, rules.overrides
    unused = any(own.lifecycle.archives_unused for own in overrides.every)
    return LifecycleRunner(
        store,
        LastRecalls(
            store,
            (lambda bank_id: overrides.of[bank_id].lifecycle.archives_unused) if unused else None,
            storage.clock,
        ),
        DuplicateSearch(storage.store, storage.registry, storage.executor),
        lambda bank_id: overrides.of[bank_id].lifecycle,
        most_tags=settings.limits.tags,
        scheduled=any(own.lifecycle.runs_at is not None for own in overrides.every),
        keep_ms=round(settings.forget.purge_after_days * DAY_MS),
        clock=storage.clock,
        tell=tell,
    )


def _graph(settings: Settings, providers: Providers, rules: Rules, storage: Storage) -> GraphPipeline:
    """The entity graphs; a language model reads memories, and decides on names that the rules leave open.

    Raises:
        ConfigError: A bank's memories are to be read by a language model, and there is none.
    """
    store, own, model = storage.store, settings.entity_resolution, providers.language_model
    passages, reader, judgement = rules.barriers.passages, None, None
    if any(bank.graph_extraction.mode == "llm" for bank in rules.overrides.every):
        if model is None:
            raise settings.refusal(("graph_extraction", "mode"), "llm needs a language model; set llm_provider")
        if not settings.entity_graph.enabled:
            raise settings.refusal(("graph_extraction", "mode"), "llm has no effect: entity_graph.enabled is false")
        overrides = rules.overrides
        reader = ModelReader(
            store.graph_readings,
            model,
            lambda bank_id: overrides.of[bank_id].graph_extraction,
            passages,
            storage.executor,
            storage.clock,
        )
    if model is not None and own.enabled:
        judgement = ModelJudgement(store.graph, model, providers.spaces.default, own, passages)
    follower = GraphFollower(store, store.graph, storage.executor, resolver(own), judgement, reader)
    return GraphPipeline(store.graph, follower, settings.entity_graph)


def _recall(settings: Settings, providers: Providers, rules: Rules, storage: Storage, stages: Stages) -> RecallPipeline:
    """The full recall on one bank, with a reranker where the settings name one."""
    parts = RecallParts(
        store=storage.store,
        core=storage.core,
        registry=storage.registry,
        spaces=providers.spaces,
        settings=settings,
        executor=storage.executor,
        entities=storage.store,
        clock=storage.clock,
        references=ReferenceClock(storage.clock, lambda bank_id: rules.overrides.of[bank_id].time_zone),
        external=storage.external,
        multilingual=_multilingual_dates(settings),
        stages=stages.recall,
    )
    return RecallPipeline(parts) if stages.reranking is None else RerankedRecall(parts, stages.reranking)


def _multilingual_dates(settings: Settings) -> MultilingualDates | None:
    """Dates of other languages than English, where the settings name languages."""
    if not settings.recall.date_languages:
        return None
    try:
        # Not everybody has the extra.
        from astrocyte.pipelines.query.multilingual_dates import MultilingualDates  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise settings.refusal(
            ("recall", "date_languages"), f"needs {error.name}: pip install 'astrocyte-grpc[dates]'"
        ) from error
    return MultilingualDates(settings)
