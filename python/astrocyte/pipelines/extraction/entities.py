"""Entity extraction in the mode of each item's profile, or of the settings."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable

import structlog

from astrocyte.config import EntityExtractionSettings, Settings
from astrocyte.config.extraction import EntityMode
from astrocyte.errors import AstrocyteError
from astrocyte.model import Entity, RetainItem
from astrocyte.pipelines.extraction import llm_entities as by_model
from astrocyte.pipelines.extraction import rule_entities
from astrocyte.pipelines.extraction.custom_extractor import load_extractor
from astrocyte.pipelines.extraction.profiles import Profiles
from astrocyte.pipelines.extraction.protocols import EntityExtractor
from astrocyte.providers.protocols import LanguageModel
from astrocyte.providers.registry import NONE

log = structlog.get_logger(__name__)

PERSON = "PERSON"
# Contents of a batch that are looked at by a model at once.
PARALLEL = 8
# Longer names are sentences, longer types no words.
MOST_NAME_CHARS = 128
TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,31}")
BETWEEN = re.compile(r"[,;\n]")

Found = tuple[tuple[Entity, ...], tuple[str, ...]]


class EntityExtraction:
    """Extracts entities.

    Args:
        settings: The mode where no profile says one, and bounds.
        profiles: Say how the contents of a kind are looked at.
        model: What mode ``llm`` asks.
        custom: What mode ``custom`` asks.
    """

    def __init__(
        self,
        settings: EntityExtractionSettings,
        profiles: Profiles,
        model: LanguageModel | None = None,
        custom: EntityExtractor | None = None,
    ) -> None:
        self._settings = settings
        self._profiles = profiles
        self._model = model
        self._custom = custom
        self._places = asyncio.Semaphore(PARALLEL)
        # Whether entities are found in items whose profile does not say, and whether a model or another is ever asked.
        self.enabled = settings.mode != "disabled"
        self.asks = not {settings.mode, *profiles.entity_modes}.isdisjoint({"llm", "custom"})

    def mode(self, bank_id: str, item: RetainItem) -> EntityMode:
        """The mode in which the entities of an item are found."""
        wish = self._profiles.of(bank_id, item).entity_extraction
        if wish is None or wish is True:
            return self._settings.mode
        return "disabled" if wish is False else wish

    def waits(self, bank_id: str, item: RetainItem) -> bool:
        """True if a model or a custom extractor must be called."""
        return self.mode(bank_id, item) in {"llm", "custom"}

    def now(self, bank_id: str, item: RetainItem, content: str, speaker: str | None) -> tuple[Entity, ...]:
        """The entities that the rules find at once; none if `of` must be awaited."""
        match self.mode(bank_id, item):
            case "rules":
                return self._by_rules(content, speaker)
            case "metadata":
                return self._kept(self._by_metadata(item, speaker))
            case _:
                return ()

    async def of(self, bank_id: str, item: RetainItem, content: str, speaker: str | None) -> Found:
        """The entities by a model or a custom extractor, and warnings for the caller.

        Who fails, or is late, does not fail the retain.
        """
        if self._custom is not None and self.mode(bank_id, item) == "custom":
            return await self._by_custom(self._custom, item, content)
        if self._model is not None:
            return await self._by_model(self._model, content, speaker)
        return self._by_rules(content, speaker), ()

    def _by_rules(self, content: str, speaker: str | None) -> tuple[Entity, ...]:
        return self._kept([*_speaker(speaker), *rule_entities.entities(content)])

    def _by_metadata(self, item: RetainItem, speaker: str | None) -> list[Entity]:
        found = _speaker(speaker)
        for key, kind in self._settings.metadata_keys.items():
            value = item.metadata.get(key)
            if isinstance(value, str):
                found += [Entity(name.strip(), kind or rule_entities.NAME) for name in BETWEEN.split(value)]
        return found

    async def _by_model(self, model: LanguageModel, content: str, speaker: str | None) -> Found:
        try:
            async with self._places:
                deadline = time.monotonic() + self._settings.deadline_seconds
                found = await by_model.entities(model, content, deadline)
        except AstrocyteError as error:
            log.warning("entities_by_rules", reason=error.reason)
            told = ("entities: the language model could not name them; they were found by rules",)
            return self._by_rules(content, speaker), told
        return self._kept([*_speaker(speaker), *found]), ()

    async def _by_custom(self, custom: EntityExtractor, item: RetainItem, content: str) -> Found:
        try:
            async with self._places, asyncio.timeout(self._settings.deadline_seconds):
                found = await custom.extract(content, item.metadata)
                return self._kept(Entity(str(name), str(kind)) for name, kind in found), ()
        except Exception as error:  # noqa: BLE001 - somebody else's code; the memory matters more than its entities
            # No message: it could hold content.
            log.warning("entities_failed", error=type(error).__name__)
            return (), ("entities: the custom extractor failed; the memory has none",)

    def _kept(self, found: Iterable[Entity]) -> tuple[Entity, ...]:
        """The first entity of each id, up to the limit of a memory; invalid names are left out."""
        kept: dict[str, Entity] = {}
        for name, kind in found:
            if not (0 < len(name) <= MOST_NAME_CHARS and name.isprintable()):
                continue
            entity = Entity(name, kind if TYPE.fullmatch(kind) else rule_entities.NAME)
            if not entity.id.endswith(":"):
                kept.setdefault(entity.id, entity)
            if len(kept) == self._settings.max_entities:
                break
        return tuple(kept.values())


def create_extraction(settings: Settings, profiles: Profiles, model: LanguageModel | None) -> EntityExtraction:
    """The extraction of entities by these settings.

    Raises:
        ConfigError: A mode needs a language model and there is none, or the custom extractor cannot be made.
    """
    own = settings.pipeline.entity_extraction
    if settings.graph_store != NONE and "mode" not in own.model_fields_set:
        # The store is fed with entities of memories, and nobody names one in order to leave it empty.
        own = own.model_copy(update={"mode": "rules"})
    modes = {("pipeline", "entity_extraction", "mode"): own.mode}
    for name, profile in settings.extraction_profiles.items():
        if isinstance(profile.entity_extraction, str):
            modes["extraction_profiles", name, "entity_extraction"] = profile.entity_extraction
    for path, mode in modes.items():
        if mode == "llm" and model is None:
            raise settings.refusal(path, "needs a language model; set llm_provider")
    custom = load_extractor(own.custom_extractor) if own.custom_extractor and "custom" in modes.values() else None
    return EntityExtraction(own, profiles, model, custom)


def _speaker(speaker: str | None) -> list[Entity]:
    return [Entity(speaker, PERSON)] if speaker else []
