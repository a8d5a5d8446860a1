"""Signal quality: warns of noisy banks and contents of low quality, slows them down or refuses them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from astrocyte.config import ScoringSettings
from astrocyte.errors import LimitReached
from astrocyte.model import RetainItem, RetainResult, RetentionAction
from astrocyte.policy.events import emit
from astrocyte.policy.quality.content_scoring import ModelScorer, score
from astrocyte.policy.quality.noisy_banks import SPIKE_SECONDS, Noise
from astrocyte.policy.settings.bank_settings import Overrides

# How a content of low quality is marked; a metadata filter finds it, or leaves it out.
MARK = {"_quality": "low"}

# Items with their paths in the request.
Items = Sequence[tuple[RetainItem, str]]


class SignalQuality:
    """Judges retains before they are embedded.

    Args:
        overrides: The rules of each bank.
        noise: What banks do.
        model: Scores where the settings say so; None where no bank's do.
    """

    def __init__(self, overrides: Overrides, noise: Noise, model: ModelScorer | None = None) -> None:
        self._model = model
        self._overrides = overrides
        self._noise = noise
        # What was told of each bank last: a noisy one is told of when it becomes so, not with every retain.
        self._told: dict[tuple[str, str], tuple[str, ...]] = {}

    async def judge(
        self, tenant: str, bank_id: str, items: Items
    ) -> tuple[list[tuple[RetainItem, str]], dict[int, str]]:
        """The items to store, some of them marked, and why others are not, by their places.

        Raises:
            LimitReached: The bank is noisy, and is slowed down.
        """
        refusal = self._noisy(tenant, bank_id)
        if refusal is not None:
            for item, _ in items:
                self._noise.note(tenant, bank_id, len(item.content), duplicate=False)
            return [], dict.fromkeys(range(len(items)), refusal)
        settings = self._overrides.of[bank_id].signal_quality.scoring
        if not settings.enabled:
            return list(items), {}
        kept: list[tuple[RetainItem, str]] = []
        refused: dict[int, str] = {}
        scores = await self._scores(settings, items)
        for place, ((item, at), worth) in enumerate(zip(items, scores, strict=True)):
            if worth >= settings.min_score:
                kept.append((item, at))
                continue
            emit("low_quality", operation="retain", bank_id=bank_id, action=settings.action, score=round(worth, 3))
            if settings.action == "reject":
                refused[place] = f"its quality is {worth:.2f}, the bank takes {settings.min_score:.2f} and more"
            else:
                marked = replace(item, metadata={**item.metadata, **MARK}) if settings.action == "tag" else item
                kept.append((marked, at))
        return kept, refused

    async def _scores(self, settings: ScoringSettings, items: Items) -> list[float]:
        if settings.scorer == "llm" and self._model is not None:
            return await asyncio.gather(*(self._model.score(item.content) for item, _ in items))
        return [score(item.content) for item, _ in items]

    def note(self, tenant: str, bank_id: str, items: Items, results: Sequence[RetainResult]) -> None:
        """Learn what became of items that were stored."""
        if self._overrides.of[bank_id].signal_quality.noisy_bank.enabled:
            for (item, _), result in zip(items, results, strict=True):
                self._noise.note(tenant, bank_id, len(item.content), duplicate=result.deduplicated)

    def forget(self, tenant: str, bank_id: str) -> None:
        """A bank is gone; one that is made by its name later is another one."""
        self._noise.forget(tenant, bank_id)
        self._told.pop((tenant, bank_id), None)

    def recovered(self) -> None:
        """A provider is back: what was retained meanwhile was its outage's doing."""
        self._noise.reset()
        self._told.clear()

    def _noisy(self, tenant: str, bank_id: str) -> str | None:
        """Why nothing is stored in the bank now, if so."""
        settings = self._overrides.of[bank_id].signal_quality.noisy_bank
        if not settings.enabled:
            return None
        flags = self._noise.flags(tenant, bank_id, settings)
        if flags != self._told.get((tenant, bank_id), ()):
            self._tell(tenant, bank_id, flags, settings.action)
        if not flags or settings.action == "warn":
            return None
        reasons = ", ".join(flags)
        if settings.action == "throttle":
            raise LimitReached(
                f"bank {bank_id!r} is noisy ({reasons}) and is rate limited; try again in {SPIKE_SECONDS} s",
                retry_after=float(SPIKE_SECONDS),
                metadata={"kind": "noisy_bank", "limit": reasons, "operation": "retain", "bank_id": bank_id},
            )
        return f"bank {bank_id!r} is noisy ({reasons})"

    def _tell(self, tenant: str, bank_id: str, flags: tuple[str, ...], action: str) -> None:
        if flags:
            self._told[tenant, bank_id] = flags
            emit("noisy_bank", operation="retain", bank_id=bank_id, flags=", ".join(flags), action=action)
        else:
            del self._told[tenant, bank_id]


def with_refusals(results: Sequence[RetainResult], refused: Mapping[int, str]) -> list[RetainResult]:
    """Results of the items that were stored, and of those that were refused, in the order in which they came."""
    stored = iter(results)
    return [
        RetainResult(stored=False, error=refused[place], retention_action=RetentionAction.REJECTED.value)
        if place in refused
        else next(stored)
        for place in range(len(results) + len(refused))
    ]
