"""What calls are held to, in one hand."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.policy.barriers import Barriers
from astrocyte.policy.escalation import Escalation
from astrocyte.policy.limits import Limits
from astrocyte.policy.overrides import Overrides
from astrocyte.policy.signal_quality import SignalQuality
from astrocyte.policy.storage import StorageQuota


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
