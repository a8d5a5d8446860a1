"""Finding a provider by its name in the settings: our own, or one that another distribution registers.

A distribution registers ``create(options)`` under the entry point group ``astrocyte.embedders``, where it returns an
`Embedder`, or ``astrocyte.language_models``, where it returns a `LanguageModel`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from astrocyte.errors import ConfigError
from astrocyte.providers.bounded import BoundedModel
from astrocyte.providers.protocols import Embedder, LanguageModel

GROUP = "astrocyte.embedders"
LANGUAGE_MODELS = "astrocyte.language_models"
# The name of no language model at all.
NONE = "none"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of provider: the setting that names one, its entry points, and ours.

    Ours are listed so that they are found in a source tree too; the second part is the extra that each needs.
    """

    setting: str
    group: str
    built_in: Mapping[str, tuple[str, str]]


_EMBEDDER = _Kind(
    "embedding.provider",
    GROUP,
    {
        "static": ("astrocyte.providers.static", ""),
        "openai": ("astrocyte.providers.openai", "openai"),
        "fastembed": ("astrocyte.providers.fastembed", "fastembed"),
    },
)
_LANGUAGE_MODEL = _Kind(
    "llm_provider",
    LANGUAGE_MODELS,
    {
        "mock": ("astrocyte.providers.mock", ""),
        "openai": ("astrocyte.providers.openai_chat", "openai"),
        "anthropic": ("astrocyte.providers.anthropic", "anthropic"),
    },
)


def create_embedder(name: str, options: Mapping[str, Any]) -> Embedder:
    """The embedder of that name, with its options.

    Raises:
        ConfigError: There is none of that name, it cannot be imported, or it refuses its options.
    """
    return cast("Embedder", _find(_EMBEDDER, name)(options))


def create_language_model(name: str, options: Mapping[str, Any]) -> LanguageModel | None:
    """The language model of that name, with its options, bounded; None for ``none``.

    Raises:
        ConfigError: There is none of that name, it cannot be imported, or it refuses its options.
    """
    if name == NONE:
        if options:
            raise ConfigError(
                "llm_provider_config has no effect while llm_provider is none; name a provider",
                metadata={"key": "llm_provider_config"},
            )
        return None
    return BoundedModel(cast("LanguageModel", _find(_LANGUAGE_MODEL, name)(options)))


def _find(kind: _Kind, name: str) -> Callable[[Mapping[str, Any]], object]:
    if name in kind.built_in:
        module, extra = kind.built_in[name]
        try:
            return cast("Callable[[Mapping[str, Any]], object]", import_module(module).create)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"{kind.setting} {name!r} needs {error.name}: pip install 'astrocyte-grpc[{extra}]'",
                metadata={"provider": name, "extra": extra},
            ) from error
    registered = {point.name: point for point in entry_points(group=kind.group)}
    if name not in registered:
        known = sorted({*kind.built_in, *registered})
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise ConfigError(f"{kind.setting}: there is no {name!r}; {hint}", metadata={"provider": name})
    try:
        return cast("Callable[[Mapping[str, Any]], object]", registered[name].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"{kind.setting} {name!r} ({registered[name].value}) cannot be loaded: {error}",
            metadata={"provider": name},
        ) from error
