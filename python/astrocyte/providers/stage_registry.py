"""Look-up of custom pipeline steps by their names in the settings, with a check of their methods."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, cast

from astrocyte.errors import ConfigError
from astrocyte.providers.stages import Chunker, Fusion, QueryAnalyser, RetrievalArm, Synthesiser


@dataclass(frozen=True, slots=True)
class StageKind:
    """A kind of step: the setting that names one, its entry point group, and the coroutine function that it has."""

    setting: str
    group: str
    method: str


CHUNKER = StageKind("pipeline.chunking.custom_chunker", "astrocyte.chunkers", "split")
QUERY_ANALYSER = StageKind("pipeline.query_analysis.custom_analyser", "astrocyte.query_analysers", "analyse")
RETRIEVAL_ARM = StageKind("pipeline.retrieval.custom_arms", "astrocyte.retrieval_arms", "search")
FUSION = StageKind("pipeline.fusion.custom_fusion", "astrocyte.fusions", "fuse")
SYNTHESISER = StageKind("pipeline.reflect.custom_synthesiser", "astrocyte.synthesisers", "answer")


def create_chunker(name: str, options: Mapping[str, Any]) -> Chunker:
    """The chunker of that name, with its options. Raises what `create_stage` does."""
    return cast("Chunker", create_stage(CHUNKER, name, options))


def create_query_analyser(name: str, options: Mapping[str, Any]) -> QueryAnalyser:
    """The query analyser of that name, with its options. Raises what `create_stage` does."""
    return cast("QueryAnalyser", create_stage(QUERY_ANALYSER, name, options))


def create_retrieval_arm(arm: str, name: str, options: Mapping[str, Any]) -> RetrievalArm:
    """The arm that the settings call ``arm``, by its name, with its options. Raises what `create_stage` does."""
    kind = replace(RETRIEVAL_ARM, setting=f"{RETRIEVAL_ARM.setting}.{arm}.arm")
    return cast("RetrievalArm", create_stage(kind, name, options))


def create_fusion(name: str, options: Mapping[str, Any]) -> Fusion:
    """The fusion of that name, with its options. Raises what `create_stage` does."""
    return cast("Fusion", create_stage(FUSION, name, options))


def create_synthesiser(name: str, options: Mapping[str, Any]) -> Synthesiser:
    """The synthesiser of that name, with its options. Raises what `create_stage` does."""
    return cast("Synthesiser", create_stage(SYNTHESISER, name, options))


def create_stage(kind: StageKind, name: str, options: Mapping[str, Any]) -> object:
    """The step of that name, made of its options.

    Raises:
        ConfigError: There is none of that name, it cannot be imported or made, it refuses its options, or its method
            is missing or no coroutine function.
    """
    try:
        made = find_stage(kind, name)(options)
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{kind.setting} {name!r} cannot be made: {type(error).__name__}: {error}", metadata={"key": kind.setting}
        ) from error
    method = getattr(made, kind.method, None)
    if not inspect.iscoroutinefunction(method):
        problem = "has no method" if method is None else "needs a coroutine function (async def)"
        raise ConfigError(
            f"{kind.setting} {name!r} made a {type(made).__name__}, which {problem} {kind.method}",
            metadata={"key": kind.setting},
        )
    return made


def find_stage(kind: StageKind, name: str) -> Callable[..., object]:
    """Returns the factory of a step by the name of its entry point, or by ``package.module:name``.

    Raises:
        ConfigError: There is none, or it cannot be loaded.
    """
    module, colon, path = name.partition(":")
    registered = {} if colon else {point.name: point for point in entry_points(group=kind.group)}
    if not colon and name not in registered:
        near = difflib.get_close_matches(name, registered, n=1)
        known = f"there are {', '.join(sorted(registered))}" if registered else "none is installed"
        hint = f"did you mean {near[0]!r}? {known}" if near else known
        raise ConfigError(f"{kind.setting}: there is no {name!r}; {hint}", metadata={"key": kind.setting})
    try:
        if not colon:
            return cast("Callable[..., object]", registered[name].load())
        found: object = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"{kind.setting} {name!r} cannot be loaded: {error}", metadata={"key": kind.setting}
        ) from error
    if not callable(found):
        raise ConfigError(
            f"{kind.setting} {name!r} is not callable; expected a class or a function", metadata={"key": kind.setting}
        )
    return found
