"""What an item passes on its way in: parts become text, its profile and its bank add to it, the barriers look at it."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.model import RetainItem
from astrocyte.policy.operations.parts import OperationParts

Placed = tuple[RetainItem, str]
Warnings = tuple[str, ...]


class Intake:
    """Makes of items what may be stored.

    Args:
        parts: What the operations share.
    """

    def __init__(self, parts: OperationParts) -> None:
        self._describer = parts.pipelines.describer
        self._check = parts.check
        self._overrides = parts.policies.overrides
        self._authority = parts.policies.authority
        self._profiles = parts.policies.profiles
        self._barriers = parts.policies.barriers

    async def taken(
        self, bank_id: str, items: Sequence[Placed], *, quiet: bool = False
    ) -> tuple[list[Placed], list[Warnings]]:
        """Items as they may be stored, and what is said about each; ``quiet`` asks nobody and tells no operator.

        Raises:
            ValidationError: What an item becomes is beyond a limit, or has a shape that the bank does not take.
            PiiRejected: It holds what the bank does not take.
            CapabilityNotSupported: No provider can take in one of its parts.
            ProviderUnavailable, DeadlineExceeded: Who was to look at it could not.
        """
        most_bytes = self._overrides.of[bank_id].homeostasis.retain_max_content_bytes
        passed: list[Placed] = []
        told: list[Warnings] = []
        for item, at in items:
            text = await self._describer.described(item, at, dry=quiet)
            profiled, mapped = self._profiles.applied(bank_id, self._authority.stamped(bank_id, text))
            if profiled is not item:
                self._check.item(profiled, most_bytes, at)
            screened, warnings = await self._barriers.item(bank_id, "Retain", profiled, at, quiet=quiet)
            passed.append((screened, at))
            told.append((*mapped, *warnings))
        return passed, told
