"""Builds the pipelines, each from the steps that the settings turn on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astrocyte.config import Settings
from astrocyte.pipelines.explain.pipeline import ExplainPipeline
from astrocyte.pipelines.extraction.entities import create_extraction
from astrocyte.pipelines.forget import ForgetPipeline
from astrocyte.pipelines.multi_bank.pipeline import MultiBankPipeline
from astrocyte.pipelines.query.reference import ReferenceClock
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
from astrocyte.wiring.custom_stages import Stages
from astrocyte.wiring.policies import Rules
from astrocyte.wiring.providers import Providers
from astrocyte.wiring.storage import Storage

if TYPE_CHECKING:
    # It comes with an extra.
    from astrocyte.pipelines.query.multilingual_dates import MultilingualDates


def build_pipelines(
    settings: Settings, providers: Providers, rules: Rules, storage: Storage, stages: Stages
) -> Pipelines:
    """All pipelines.

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
    tiers = settings.tiered_retrieval.enabled
    return Pipelines(
        retain=RetainPipeline(store, storage.registry, settings, builder),
        recall=TieredRecall(recall, store, settings, model) if tiers else recall,
        reflect=ReflectPipeline(model, settings, stages.synthesis),
        multi_bank=MultiBankPipeline(recall, settings, storage.executor),
        explain=ExplainPipeline(store, recall, storage.executor, settings.recall.inline_rows),
        update=UpdatePipeline(store, builder, spaces),
        describer=Describer(settings.pipeline.multimodal, model, spaces.default),
        forget=ForgetPipeline(store, settings.forget, storage.clock, storage.external, storage.checkpoints, reindexer),
        reindexer=reindexer,
    )


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
