"""The extraction profile of an item, and the metadata and tags that it adds before the other steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from astrocyte.config import ExtractionProfileSettings
from astrocyte.config.extraction import EntityMode
from astrocyte.config.loading.per_bank import PerBank
from astrocyte.model import RetainItem
from astrocyte.pipelines.extraction.json_paths import mapped

# The profile of items that have none.
PLAIN = ExtractionProfileSettings()
# Where recall authority looks for how far a memory may be relied on.
AUTHORITY_TIER = "authority_tier"


class Profiles:
    """The profiles of the settings.

    Args:
        profiles: All that may be named, built-in ones included.
        default_of: The profile of a bank's items that name none, by bank id; None for no profile.
        metadata_value_bytes: Of one value that a profile maps.
    """

    def __init__(
        self,
        profiles: Mapping[str, ExtractionProfileSettings],
        default_of: Callable[[str], str | None],
        metadata_value_bytes: int,
    ) -> None:
        self._profiles = profiles
        # The profile of items that name none, by bank.
        self.default = PerBank(lambda bank_id: self._named(default_of(bank_id)))
        self._most_bytes = metadata_value_bytes

    @property
    def names(self) -> Sequence[str]:
        """The names of the profiles, in order."""
        return sorted(self._profiles)

    @property
    def entity_modes(self) -> set[EntityMode]:
        """The entity extraction modes of the profiles."""
        return {one.entity_extraction for one in self._profiles.values() if isinstance(one.entity_extraction, str)}

    def of(self, bank_id: str, item: RetainItem) -> ExtractionProfileSettings:
        """The profile of an item in a bank."""
        return self._named(item.extraction_profile) if item.extraction_profile else self.default[bank_id]

    def _named(self, name: str | None) -> ExtractionProfileSettings:
        return PLAIN if name is None else self._profiles.get(name, PLAIN)

    def applied(self, bank_id: str, item: RetainItem) -> tuple[RetainItem, tuple[str, ...]]:
        """The item with the metadata and tags that its profile adds, and warnings for the caller.

        What the item says itself wins. It comes back as the same object where the profile adds nothing.
        """
        profile = self.of(bank_id, item)
        if not (profile.metadata_mapping or profile.tag_rules or profile.authority_tier):
            return item, ()
        found, told = mapped(profile.metadata_mapping, item.content, self._most_bytes)
        if profile.authority_tier is not None:
            found.setdefault(AUTHORITY_TIER, profile.authority_tier)
        metadata = {**found, **item.metadata}
        content = item.content.casefold()
        ruled = (tag for rule in profile.tag_rules if rule.text.casefold() in content for tag in rule.tags)
        tags = tuple(dict.fromkeys((*item.tags, *ruled)))
        if metadata == item.metadata and tags == item.tags:
            return item, tuple(told)
        return replace(item, metadata=metadata, tags=tags), tuple(told)
