"""Builds what calls are held to: the settings of each bank, barriers, limits, quality and degraded answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from astrocyte.config import Settings
from astrocyte.config.extraction import merged_profiles
from astrocyte.errors import ConfigError
from astrocyte.model import DEFAULT_PRINCIPAL
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.pipelines.recall.tiered import check_tiers
from astrocyte.pipelines.reflect.pipeline import check_models
from astrocyte.policy.engines.outbox_relay import OutboxRelay
from astrocyte.policy.events import emit
from astrocyte.policy.governance.recall_authority import Authority
from astrocyte.policy.limits.daily_quotas import Quotas
from astrocyte.policy.limits.rate_limits import Limits
from astrocyte.policy.limits.storage_quota import StorageQuota
from astrocyte.policy.operations.curation import check_curation
from astrocyte.policy.operations.parts import Pipelines
from astrocyte.policy.policies import Policies
from astrocyte.policy.privacy.barriers import Barriers
from astrocyte.policy.quality.bank_activity import BankActivity
from astrocyte.policy.quality.content_scoring import ModelScorer
from astrocyte.policy.quality.noisy_banks import Noise
from astrocyte.policy.quality.signal_quality import SignalQuality
from astrocyte.policy.quality.unanswered_queries import UnansweredQueries
from astrocyte.policy.resilience.degraded_mode import Escalation
from astrocyte.policy.resilience.retry_queue import Retries
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.protocols import LanguageModel
from astrocyte.stores.sqlite.engine.data_directory import QUOTAS, RATES
from astrocyte.stores.sqlite.tables.quotas import SqliteQuotaBook
from astrocyte.stores.sqlite.tables.rates import SqliteRateBook
from astrocyte.wiring.providers import Providers
from astrocyte.wiring.storage import Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Policies that follow from the settings alone, and that pipelines need as well.

    Attributes:
        overrides: The settings of each bank.
        barriers: Shapes of content, personal data, keys of metadata.
        authority: Tiers of the blocks that recalls add.
        profiles: Extraction profiles.
        scorer: Scores contents by the language model; None where no bank wants that.
    """

    overrides: Overrides
    barriers: Barriers
    authority: Authority
    profiles: Profiles
    scorer: ModelScorer | None


def build_rules(settings: Settings, providers: Providers) -> Rules:
    """The rules of the settings.

    Raises:
        ConfigError: A setting needs a language model and there is none, or a pattern or a file cannot be used.
    """
    model = providers.language_model
    barriers = Barriers(settings, providers.spaces.models, model)
    check_models(settings, model)
    check_tiers(settings, model)
    overrides = Overrides(settings)
    check_curation(settings, overrides, model)
    return Rules(
        overrides=overrides,
        barriers=barriers,
        authority=Authority(settings),
        profiles=Profiles(
            merged_profiles(settings.extraction_profiles),
            lambda bank_id: overrides.of[bank_id].extraction.profile,
            settings.limits.metadata_value_bytes,
        ),
        scorer=_scorer(settings, overrides, model),
    )


def build_limits(settings: Settings, rules: Rules, storage: Storage) -> Limits:
    """Rates and daily quotas.

    Raises:
        StoreError: The database of the quotas cannot be opened.
    """
    blocks = [own.homeostasis.quotas for own in rules.overrides.every]
    rates = None
    if storage.store.shared and storage.data_dir is not None:
        rates = SqliteRateBook(storage.data_dir / RATES)
    if all(block.retain_per_day is None and block.reflect_per_day is None for block in blocks):
        return Limits(settings, rules.overrides, None, rates=rates)
    beside = None if storage.data_dir is None else storage.data_dir / QUOTAS
    book = SqliteQuotaBook(settings.homeostasis.quotas.database or beside)
    return Limits(settings, rules.overrides, Quotas(book, storage.clock, storage.executor), rates=rates)


def build_policies(
    settings: Settings, providers: Providers, rules: Rules, limits: Limits, storage: Storage, pipelines: Pipelines
) -> Policies:
    """All policies of the gate."""
    store, engines = storage.store, providers.engines
    outbox_relay = OutboxRelay(engines, store, store.outbox)
    retries = Retries(settings, rules.overrides, store, pipelines.retain, outbox_relay)
    store.follow(retries.on_told)
    quality = SignalQuality(rules.overrides, Noise(), rules.scorer)
    escalation = Escalation(settings, rules.overrides, store, retries, providers.breakers)
    escalation.at_recovery(quality.recovered)
    escalation.at_recovery(outbox_relay.wake)
    pipelines.lifecycle.follow(
        lambda bank: outbox_relay.order(bank.tenant, bank.bank_id, DEFAULT_PRINCIPAL, None, 0),
        outbox_relay.note,
        _tell_fates,
    )
    engines.subscribe(escalation.watch)

    async def screen(bank_id: str, texts: Sequence[str]) -> Sequence[str]:
        return await rules.barriers.texts(bank_id, "Recall", texts, "query", quiet=True)

    unanswered = UnansweredQueries(store.activity, screen, settings.coverage.keep_unanswered, storage.clock)
    store.subscribe(unanswered.on_commit, "erased")
    return Policies(
        overrides=rules.overrides,
        limits=limits,
        storage=StorageQuota(store, rules.overrides),
        barriers=rules.barriers,
        escalation=escalation,
        signal_quality=quality,
        activity=BankActivity(storage.clock, store.activity),
        unanswered=unanswered,
        profiles=rules.profiles,
        authority=rules.authority,
        curator=providers.language_model,
        engines=engines,
        outbox_relay=outbox_relay,
    )


def _tell_fates(bank_id: str, counts: Mapping[str, int]) -> None:
    """Report the memories of a step of a lifecycle, by what became of them."""
    for fate, count in counts.items():
        if count:
            emit("lifecycle", operation="lifecycle", bank_id=bank_id, action=fate, count=count)


def _scorer(settings: Settings, overrides: Overrides, model: LanguageModel | None) -> ModelScorer | None:
    own = [*settings.banks.values(), *overrides.templates.values()]
    blocks = [settings.signal_quality, *(bank.signal_quality for bank in own)]
    if not any(block.scoring.enabled and block.scoring.scorer == "llm" for block in blocks):
        return None
    if model is None:
        raise ConfigError(
            "signal_quality.scoring.scorer is llm, which needs a language model; set llm_provider",
            metadata={"key": "signal_quality.scoring.scorer"},
        )
    return ModelScorer(model)
