"""Look-up of the extractor of mode ``custom``: a class by its path, or by the name of an entry point."""

from __future__ import annotations

from typing import cast

from astrocyte.errors import ConfigError
from astrocyte.pipelines.extraction.protocols import EntityExtractor
from astrocyte.providers.stage_registry import StageKind, find_stage

KEY = "pipeline.entity_extraction.custom_extractor"
EXTRACTOR = StageKind(KEY, "astrocyte.entity_extractors", "extract")


def load_extractor(name: str) -> EntityExtractor:
    """The extractor of ``package.module:Class``, or of a name of its entry points.

    Raises:
        ConfigError: There is none, it cannot be imported or made, or it has no method ``extract``.
    """
    try:
        made = find_stage(EXTRACTOR, name)()
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{KEY} {name!r} cannot be made: {type(error).__name__}: {error}", metadata={"key": KEY}
        ) from error
    if not callable(getattr(made, "extract", None)):
        raise ConfigError(f"{KEY} {name!r} made an object without a method extract", metadata={"key": KEY})
    return cast("EntityExtractor", made)
