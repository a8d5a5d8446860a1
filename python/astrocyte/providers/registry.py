"""Finding a provider by its name in the settings: our own, or one that another distribution registers.

A distribution registers ``create(options) -> Embedder`` under the entry point group ``astrocyte.embedders``.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from astrocyte.errors import ConfigError
from astrocyte.providers.protocols import Embedder

GROUP = "astrocyte.embedders"
# Ours, so that they are found in a source tree too; the second part is the extra that each needs.
BUILT_IN = {
    "static": ("astrocyte.providers.static", ""),
    "openai": ("astrocyte.providers.openai", "openai"),
    "fastembed": ("astrocyte.providers.fastembed", "fastembed"),
}

Create = Callable[[Mapping[str, Any]], Embedder]


def create_embedder(name: str, options: Mapping[str, Any]) -> Embedder:
    """The embedder of that name, with its options.

    Raises:
        ConfigError: There is none of that name, it cannot be imported, or it refuses its options.
    """
    return _find(name)(options)


def _find(name: str) -> Create:
    if name in BUILT_IN:
        module, extra = BUILT_IN[name]
        try:
            return cast("Create", import_module(module).create)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"embedding.provider {name!r} needs {error.name}: pip install 'astrocyte-grpc[{extra}]'",
                metadata={"provider": name, "extra": extra},
            ) from error
    registered = {point.name: point for point in entry_points(group=GROUP)}
    if name not in registered:
        known = sorted({*BUILT_IN, *registered})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"embedding.provider: there is no {name!r}; {hint}", metadata={"provider": name})
    try:
        return cast("Create", registered[name].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"embedding.provider {name!r} ({registered[name].value}) cannot be loaded: {error}",
            metadata={"provider": name},
        ) from error
