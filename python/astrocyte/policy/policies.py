"""What calls are held to, in one hand."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.model import Bank
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.policy.authority import Authority
from astrocyte.policy.barriers import Barriers
from astrocyte.policy.deliveries import Deliveries
from astrocyte.policy.engines import Engines
from astrocyte.policy.escalation import Escalation
from astrocyte.policy.limits import Limits
from astrocyte.policy.overrides import Overrides
from astrocyte.policy.signal_quality import SignalQuality
from astrocyte.policy.storage import StorageQuota
from astrocyte.providers.protocols import LanguageModel


@dataclass(frozen=True, slots=True)
class Policies:
    """What the gate holds calls to, beside the shape of requests."""

    overrides: Overrides
    limits: Limits
    storage: StorageQuota
    barriers: Barriers
    escalation: Escalation
    signal_quality: SignalQuality
    profiles: Profiles
    authority: Authority
    curator: LanguageModel | None
    engines: Engines
    deliveries: Deliveries

    def deleted(self, bank: Bank) -> None:
        """A bank is gone: what was learnt of it and what is kept of its content go too. Its rates stay as they are."""
        self.escalation.drop(bank)
        self.signal_quality.forget(bank.tenant, bank.bank_id)
