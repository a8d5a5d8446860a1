"""The policies of the gate, as named parts."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.model import Bank
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.policy.engines.outbox_relay import OutboxRelay
from astrocyte.policy.engines.registry import Engines
from astrocyte.policy.governance.recall_authority import Authority
from astrocyte.policy.limits.rate_limits import Limits
from astrocyte.policy.limits.storage_quota import StorageQuota
from astrocyte.policy.privacy.barriers import Barriers
from astrocyte.policy.quality.bank_activity import BankActivity
from astrocyte.policy.quality.signal_quality import SignalQuality
from astrocyte.policy.quality.unanswered_queries import UnansweredQueries
from astrocyte.policy.resilience.degraded_mode import Escalation
from astrocyte.policy.settings.bank_settings import Overrides
from astrocyte.providers.protocols import LanguageModel


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies that hold for calls, beside the shapes of requests."""

    overrides: Overrides
    limits: Limits
    storage: StorageQuota
    barriers: Barriers
    escalation: Escalation
    signal_quality: SignalQuality
    activity: BankActivity
    unanswered: UnansweredQueries
    profiles: Profiles
    authority: Authority
    curator: LanguageModel | None
    engines: Engines
    outbox_relay: OutboxRelay

    def deleted(self, bank: Bank) -> None:
        """A bank is gone: what was learnt of it and what is kept of its content go too. Its rates stay as they are."""
        self.escalation.drop(bank)
        self.signal_quality.forget(bank.tenant, bank.bank_id)
        self.activity.forget(bank.tenant, bank.bank_id)
        self.unanswered.forget(bank.key)

    async def flush(self) -> None:
        """Store what was counted and gathered of calls; one of the two that fails does not hold up the other."""
        try:
            await self.activity.flush()
        finally:
            await self.unanswered.flush()
