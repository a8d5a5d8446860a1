"""Errors about keys: unknown ones, with a suggestion, and values out of range."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic import ValidationError as PydanticError

from astrocyte.config.loading.source import KeyPath, SourceLines, line_of
from astrocyte.errors import ConfigError

ENV_PREFIX = "ASTROCYTE_"

ENV_DELIMITER = "__"

# Variables with this prefix that are not settings: options of the command line.
OTHER_VARIABLES = frozenset(
    {
        "ASTROCYTE_CONFIG",
        "ASTROCYTE_ADDRESS",
        "ASTROCYTE_TOKEN",
        "ASTROCYTE_CA_FILE",
        "ASTROCYTE_CERT_FILE",
        "ASTROCYTE_KEY_FILE",
        "ASTROCYTE_LOG_FORMAT",
        # Folders of archives, see `astrocyte.config.interfaces.portability`.
        "ASTROCYTE_PORTABILITY_ROOTS",
        # Read by the core, for crash tests.
        "ASTROCYTE_FAILPOINT",
    }
)

# Minimum similarity of a suggested key: one typo in a short name still passes.
SIMILARITY = 0.6

# Sections whose values may be secrets, so that errors do not repeat them.
SECRET = (("auth",), ("embedding", "options"), ("llm_provider_config",), ("sources",))

# Key that selects the section of a value with several types; its value is a part of pydantic's locations.
TAG = "type"

TYPES = frozenset(
    {
        "webhook",
        "stream",
        "hmac",
        "standard_webhooks",
        "proxy",
        "bearer",
        "api_key",
        "oauth2_client_credentials",
        "oauth2_refresh_token",
    }
)


def check_keys(model: type[BaseModel], values: Mapping[str, Any], source: SourceLines) -> None:
    """Refuse unknown keys.

    Raises:
        ConfigError: A key is unknown; the message has the key, its line and the nearest valid key.
    """
    for path, level in _unknown(model, values, ()):
        why = getattr(level, "REFUSED", {}).get(path[-1])
        problem = f": {why}" if why else f" is not a setting; {_suggest(model, path, level)}"
        raise ConfigError(f"{source.place(path)}{problem}", metadata={"key": ".".join(path), **line_of(source, path)})


def unknown_variables(model: type[BaseModel], environ: Mapping[str, str]) -> None:
    """Refuse environment variables with the prefix that are not settings.

    Raises:
        ConfigError: A variable is unknown; the message has the variable and the nearest valid one.
    """
    for name in sorted(environ):
        if not name.upper().startswith(ENV_PREFIX) or name.upper() in OTHER_VARIABLES:
            continue
        path = tuple(name[len(ENV_PREFIX) :].lower().split(ENV_DELIMITER))
        values: Any = None
        for part in reversed(path):
            values = {part: values}
        for wrong, level in _unknown(model, values, ()):
            raise ConfigError(
                f"environment variable {name} is not a setting; {_suggest(model, wrong, level)}",
                metadata={"key": ".".join(path), "variable": name},
            )


def refuse(error: PydanticError, source: SourceLines) -> ConfigError:
    """Convert the first pydantic error about a key of the file, else the first one, to a ConfigError.

    A wrong value under an alias is wrong under the canonical key too, which is not in the file.
    """
    errors = [(_keys(one["loc"]), one) for one in error.errors(include_url=False, include_context=False)]
    path, first = next((one for one in errors if one[0] in source.lines), errors[0])
    message = first["msg"].removeprefix("Value error, ")
    count = error.error_count() - 1
    more = f" (and {count} more)" if count else ""
    # Values of secret sections are not repeated.
    came = first.get("input")
    secret = any(path[: len(below)] == below for below in SECRET)
    shown = f"; got {came!r}" if isinstance(came, (int, float, str)) and not secret else ""
    where = source.place(path) or source.name or "settings"
    return ConfigError(f"{where}: {message}{shown}{more}", metadata={"key": ".".join(path), **line_of(source, path)})


def _keys(location: tuple[int | str, ...]) -> KeyPath:
    """Return the keys of the location of a pydantic error."""
    return _without_tags(tuple(str(part) for part in location if part != "[key]"))


def _without_tags(path: KeyPath) -> KeyPath:
    """Return the keys of a location below ``sources``, in which pydantic names the type after a source and its auth."""
    if path[:1] != ("sources",):
        return path
    # The type of a source stands after its id, that of its auth after this key.
    above = {path[1:2], ("auth",)}

    def is_type(index: int) -> bool:
        return index > 1 and path[index] in TYPES and path[index - 1 : index] in above

    return tuple(part for index, part in enumerate(path) if not is_type(index))


def _unknown(model: type[BaseModel], values: object, path: KeyPath) -> Iterator[tuple[KeyPath, type[BaseModel]]]:
    """Yield paths of unknown keys with their sections."""
    if not isinstance(values, Mapping):
        return
    for key, value in values.items():
        name = str(key)
        info = model.model_fields.get(name)
        if info is None:
            yield (*path, name), model
            continue
        for part, entry in _entries(info.annotation, value):
            below = _fitting(list(_models_in(info.annotation)), entry)
            if below is not None:
                yield from _unknown(below, entry, (*path, name, *part))


def _entries(annotation: object, value: object) -> list[tuple[KeyPath, object]]:
    """Return the positions below a key at which its model is expected."""
    if isinstance(value, (list, tuple)):
        return [((str(index),), entry) for index, entry in enumerate(value)]
    if typing.get_origin(annotation) is dict:
        return [((str(key),), entry) for key, entry in value.items()] if isinstance(value, Mapping) else []
    return [((), value)]


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the settings models in an annotation such as ``tuple[ApiKey, ...]``."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if issubclass(annotation, BaseModel):
            yield annotation
        return
    for part in typing.get_args(annotation):
        yield from _models_in(part)


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the first settings model in an annotation, or None."""
    return next(_models_in(annotation), None)


def _fitting(models: list[type[BaseModel]], value: object) -> type[BaseModel] | None:
    """Return the model of a value: of several, that with its type, and none if no model has it."""
    if len(models) < 2:  # noqa: PLR2004 - nothing to choose
        return models[0] if models else None
    said = value.get(TAG) if isinstance(value, Mapping) else None
    return next((one for one in models if said in typing.get_args(one.model_fields[TAG].annotation)), None)


def _suggest(model: type[BaseModel], path: KeyPath, level: type[BaseModel]) -> str:
    known = sorted(level.model_fields)
    near = difflib.get_close_matches(path[-1], known, n=1, cutoff=SIMILARITY)
    if near:
        return f"did you mean {'.'.join((*path[:-1], near[0]))}?"
    everywhere = {dotted.rsplit(".", 1)[-1]: dotted for dotted in _all_keys(model, ())}
    near = difflib.get_close_matches(path[-1], sorted(everywhere), n=1, cutoff=SIMILARITY)
    if near:
        return f"did you mean {everywhere[near[0]]}?"
    return f"expected one of {', '.join(known)}"


def _all_keys(model: type[BaseModel], path: KeyPath) -> Iterator[str]:
    for name, info in model.model_fields.items():
        yield ".".join((*path, name))
        below = _model_in(info.annotation)
        # Mappings of models repeat keys of other sections.
        if below is not None and typing.get_origin(info.annotation) is not dict:
            yield from _all_keys(below, (*path, name))
