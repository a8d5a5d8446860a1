"""The rules of a run: the ages of the settings, kept with the operation as JSON, and the fate of a memory by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from astrocyte.config.derived.lifecycle import AgeSettings, LifecycleSettings
from astrocyte.pipelines.query.time_windows import DAY_MS
from astrocyte.stores.lifecycle import Fate, MemoryAge

AGES = ("archive_after_days", "expire_after_days", "delete_after_days")


def rules_of(settings: LifecycleSettings, *, merge: bool, threshold: float | None) -> dict[str, Any]:
    """The rules of a run, as JSON.

    Args:
        settings: The settings of the bank.
        merge: Whether duplicates are merged.
        threshold: The least cosine of two duplicates; None takes the setting.
    """
    # Without ages, nothing is archived or forgotten.
    aged = settings if settings.enabled else LifecycleSettings()
    return {
        "similarity_threshold": (threshold or settings.similarity_threshold) if merge else None,
        "ages": _ages(aged, {}),
        "exempt_tags": list(settings.exempt_tags),
        # A list keeps the order in which the settings name the tags.
        "tags": [[tag, _ages(own, _ages(aged, {}))] for tag, own in aged.tags.items()],
        "fact_types": {name: _ages(own, _ages(aged, {})) for name, own in aged.fact_types.items()},
    }


def judge(rules: Mapping[str, Any]) -> Callable[[MemoryAge, int], Fate]:
    """The function that decides on memories at an instant."""
    exempt = frozenset(rules["exempt_tags"])

    def fate(memory: MemoryAge, now: int) -> Fate:
        if not exempt.isdisjoint(memory.tags):
            return Fate.KEPT
        ages = next((own for tag, own in rules["tags"] if tag in memory.tags), None)
        if ages is None:
            ages = rules["fact_types"].get(memory.fact_type, rules["ages"])
        unused, expired, deleted = (ages[name] for name in AGES)
        age = (now - memory.retained_at) / DAY_MS
        if deleted is not None and age >= deleted:
            return Fate.DELETED
        if memory.used_at is None:
            return Fate.KEPT
        if expired is not None and age >= expired:
            return Fate.EXPIRED
        if unused is not None and (now - memory.used_at) / DAY_MS >= unused:
            return Fate.UNUSED
        return Fate.KEPT

    return fate


def _ages(settings: AgeSettings, others: Mapping[str, float | None]) -> dict[str, float | None]:
    """The ages that are set, over others; null is set too, and means never."""
    return {name: getattr(settings, name) if name in settings.model_fields_set else others.get(name) for name in AGES}
