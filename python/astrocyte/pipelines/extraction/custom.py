"""Finding the extractor that mode ``custom`` asks: a class by its place, or by a name that a distribution registers."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import cast

from astrocyte.errors import ConfigError
from astrocyte.pipelines.extraction.protocols import EntityExtractor

GROUP = "astrocyte.entity_extractors"
KEY = "pipeline.entity_extraction.custom_extractor"


def load_extractor(name: str) -> EntityExtractor:
    """The extractor of ``package.module:Class``, or of a name of the entry points `GROUP`.

    Raises:
        ConfigError: There is none, it cannot be imported or made, or it has no method ``extract``.
    """
    try:
        made = _find(name)()  # type: ignore[operator]  # what is no class fails here, as what it is
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{KEY} {name!r} cannot be made: {type(error).__name__}: {error}", metadata={"key": KEY}
        ) from error
    if not callable(getattr(made, "extract", None)):
        raise ConfigError(f"{KEY} {name!r} makes something without a method extract", metadata={"key": KEY})
    return cast("EntityExtractor", made)


def _find(name: str) -> object:
    module, colon, path = name.partition(":")
    if colon:
        found: object = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        return found
    registered = {point.name: point for point in entry_points(group=GROUP)}
    if name not in registered:
        known = f"there are {', '.join(sorted(registered))}" if registered else "none is installed"
        raise ConfigError(f"{KEY}: there is no {name!r}, {known}", metadata={"key": KEY})
    return registered[name].load()
