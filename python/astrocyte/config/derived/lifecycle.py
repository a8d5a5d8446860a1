"""Settings of the lifecycle of memories."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from astrocyte.config.boosts import Days
from astrocyte.config.loading.cron import Cron
from astrocyte.config.loading.section import Section

# Tags and fact types with ages of their own: each memory is compared with all of them.
MOST_RULES = 100

# Below a half, memories on different subjects are alike.
Similarity = Annotated[float, Field(ge=0.5, le=1.0)]


def _parsed(schedule: str) -> str:
    """Return a cron expression as it is.

    Raises:
        ValueError: It is not one.
    """
    Cron.parse(schedule)
    return schedule


Schedule = Annotated[str, AfterValidator(_parsed)]


class AgeSettings(Section):
    """Ages of memories."""

    archive_after_days: Days | None = Field(
        None, description="Archive memories that no recall returned for so long; null: never."
    )
    expire_after_days: Days | None = Field(
        None, description="Archive memories so long after they were stored; null: never."
    )
    delete_after_days: Days | None = Field(
        None, description="Forget memories, archived ones included, so long after they were stored; null: never."
    )


class LifecycleSettings(AgeSettings):
    """Archiving, expiry and deletion of memories by age, by `RunLifecycle` and by a schedule."""

    enabled: bool = Field(
        True, description="Apply the ages and the schedule. Without them, runs by call merge duplicates only."
    )
    schedule: Schedule | None = Field(
        None,
        description="When to run: a cron expression of five fields (minute, hour, day, month, weekday), in UTC; null: "
        "only by call.",
    )
    merge_duplicates: bool = Field(False, description="Merge near duplicates in scheduled runs.")
    similarity_threshold: Similarity = Field(0.95, description="Least cosine of two memories that are merged.")
    exempt_tags: Annotated[tuple[str, ...], Field(max_length=MOST_RULES)] = Field(
        (), description="Memories with any of these tags are left alone."
    )
    tags: Annotated[dict[str, AgeSettings], Field(max_length=MOST_RULES)] = Field(
        default_factory=dict, description="Ages for memories with a tag; of several tags, the first one here applies."
    )
    fact_types: Annotated[dict[str, AgeSettings], Field(max_length=MOST_RULES)] = Field(
        default_factory=dict, description="Ages for memories of a fact type, unless one of their tags has ages."
    )

    @property
    def archives_unused(self) -> bool:
        """True if last recalls decide on any memory."""
        rules = (self, *self.tags.values(), *self.fact_types.values()) if self.enabled else ()
        return any(one.archive_after_days is not None for one in rules)

    @property
    def runs_at(self) -> str | None:
        """The schedule that is in force, or None."""
        return self.schedule if self.enabled else None


class PipelineConsolidationSettings(Section):
    """Other names of lifecycle settings. A schedule or a threshold here also sets lifecycle.merge_duplicates."""

    dedup_similarity_threshold: Similarity | None = Field(
        None, description="Alias of lifecycle.similarity_threshold: least cosine of two memories that are merged."
    )
    archive_unretrieved_after_days: Days | None = Field(
        None, description="Alias of lifecycle.archive_after_days: archive memories that no recall returned for so long."
    )
    entity_dedup_enabled: bool | None = Field(
        None,
        description="Alias of entity_resolution.enabled: link names of one entity. true needs entity_graph.enabled.",
    )
    schedule: Schedule | None = Field(None, description="Alias of lifecycle.schedule: when to run, in UTC.")
