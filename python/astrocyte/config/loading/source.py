"""Sources of settings: YAML with line numbers, the environment, and errors about keys."""

from __future__ import annotations

import difflib
import os
import re
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, SecretStr
from pydantic import ValidationError as PydanticError

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

# A literal ${, a variable, or a ${ that begins none.
VARIABLE = re.compile(r"(?P<escaped>\$\$\{)|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})?")
# YAML's tag of text.
TEXT = "tag:yaml.org,2002:str"

# The deepest setting has a fraction of these levels, and Python's stack many times more.
MOST_LEVELS = 64

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Line number of each key in a file; empty for dictionaries. Not compared for equality."""

    name: str = field(default="", compare=False)
    lines: Mapping[KeyPath, int] = field(default_factory=dict, compare=False)

    def place(self, path: KeyPath) -> str:
        """Return the location of a key for a message: ``astrocyte.yaml, line 3: server.prot``."""
        dotted = ".".join(path)
        line = self.line(path)
        if line is not None:
            return f"{self.name}, line {line}: {dotted}"
        return dotted

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest key above it, or None."""
        return next((self.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.lines), None)


def read_yaml(path: Path, environ: Mapping[str, str]) -> tuple[dict[str, Any], SourceLines]:
    """Return the values of a file and the line of every key.

    ``${NAME}`` in a value is replaced by the environment variable, ``${NAME:-default}`` by the default where the
    variable is not set or empty. ``$${`` stands for ``${``.

    Args:
        path: The file.
        environ: Environment variables.

    Raises:
        ConfigError: The file cannot be read, is not YAML, is not a mapping, sets a key twice, or names a variable that
            is not set.
    """
    try:
        text = path.read_text(encoding="utf-8")
        _check_depth(text, str(path))
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{path}: cannot be read: {reason}", metadata={"file": str(path)}) from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}", metadata={"file": str(path)}) from error
    if node is None:
        return {}, SourceLines(str(path))
    if not isinstance(node, yaml.MappingNode):
        raise ConfigError(f"{path}: expected a mapping of settings at the top level", metadata={"file": str(path)})
    lines: dict[KeyPath, int] = {}
    _collect_lines(node, (), lines, str(path), ())
    _substitute(node, environ, str(path), set())
    return _constructed(node, str(path)), SourceLines(str(path), lines)


def _check_depth(text: str, name: str) -> None:
    """Refuse nesting that would exhaust the stack of the functions below, which recurse."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_LEVELS and event.start_mark is not None:
            raise _too_deep(name, event.start_mark.line + 1)


def _too_deep(name: str, line: int) -> ConfigError:
    return ConfigError(
        f"{name}, line {line}: nested too deeply; at most {MOST_LEVELS} levels are accepted",
        metadata={"file": name, "line": str(line)},
    )


class _Constructor(yaml.SafeLoader):
    """Constructs values; every failure is an error with a line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - as PyYAML has it
        try:
            return super().construct_object(node, deep)
        # A scalar that its tag does not fit raises whatever its conversion raises.
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            kind = node.tag.rpartition(":")[2]
            raise yaml.constructor.ConstructorError(None, None, f"expected a valid {kind}", node.start_mark) from error


def _constructed(node: yaml.MappingNode, name: str) -> dict[str, Any]:
    try:
        values: dict[str, Any] = _Constructor("").construct_document(node)
    except yaml.constructor.ConstructorError as error:
        line = (error.problem_mark or node.start_mark).line + 1
        raise ConfigError(
            f"{name}, line {line}: not valid YAML: {error.problem}", metadata={"file": name, "line": str(line)}
        ) from error
    except RecursionError as error:
        raise _too_deep(name, node.start_mark.line + 1) from error
    return values


def _substitute(node: yaml.Node, environ: Mapping[str, str], name: str, visited: set[int]) -> None:
    """Replace the variables in all values below a node. What replaces them is text, never YAML.

    Aliases of a node are the node itself, which is visited once: what replaced a variable is not replaced again.
    """
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            _substitute(value, environ, name, visited)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _substitute(value, environ, name, visited)
    elif "${" in node.value and not node.tag.startswith("!"):
        line = node.start_mark.line + 1
        node.value = VARIABLE.sub(lambda found: _variable(found, environ, name, line), node.value)
        node.tag = TEXT


def _variable(found: re.Match[str], environ: Mapping[str, str], name: str, line: int) -> str:
    escaped, variable, default = found["escaped"], found["name"], found["default"]
    if escaped:
        return "${"
    place = {"file": name, "line": str(line)}
    if variable is None:
        raise ConfigError(
            f"{name}, line {line}: expected ${{NAME}} or ${{NAME:-default}}; write $${{ for a literal ${{",
            metadata=place,
        )
    if default is not None and "${" in default:
        raise ConfigError(
            f"{name}, line {line}: the default of {variable} contains ${{; expected text without variables",
            metadata={**place, "variable": variable},
        )
    value = environ.get(variable)
    if value is None or (not value and default is not None):
        value = default
    if value is None:
        raise ConfigError(
            f"{name}, line {line}: environment variable {variable} is not set; "
            f"set it, or give a default: ${{{variable}:-default}}",
            metadata={**place, "variable": variable},
        )
    return value


def _collect_lines(
    node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int], name: str, above: tuple[yaml.Node, ...]
) -> None:
    line = node.start_mark.line + 1
    if any(node is one for one in above):
        raise ConfigError(
            f"{name}, line {line}: expected values that do not contain themselves, got an alias of a value inside it",
            metadata={"file": name, "line": str(line)},
        )
    if len(above) >= MOST_LEVELS:
        # Aliases of aliases nest more deeply than the text does.
        raise _too_deep(name, line)
    above = (*above, node)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*path, str(key.value))
            line = key.start_mark.line + 1
            if below in lines:
                raise ConfigError(
                    f"{name}, line {line}: {'.'.join(below)} is set twice; first on line {lines[below]}",
                    metadata={"file": name, "line": str(line), "key": ".".join(below)},
                )
            lines[below] = line
            _collect_lines(value, below, lines, name, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            below = (*path, str(index))
            lines[below] = value.start_mark.line + 1
            _collect_lines(value, below, lines, name, above)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge ``over`` into ``base``: mappings are merged, other values replaced."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


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


def line_of(source: SourceLines, path: KeyPath) -> dict[str, str]:
    """Return file and line of a key as error metadata; empty if it is not from a file."""
    line = source.line(path)
    return {} if line is None else {"file": source.name, "line": str(line)}


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


# Exporter names of OpenTelemetry by protocol.
OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


def secret(name: str) -> SecretStr | None:
    """Return the environment variable ``name``, such as ``OPENAI_API_KEY``; None if missing or empty."""
    value = os.environ.get(name, "").strip()
    return SecretStr(value) if value else None


def span_exporters(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the span exporters in ``OTEL_TRACES_EXPORTER``; empty for ``none``.

    The default is ``otlp``. ``OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`` or ``OTEL_EXPORTER_OTLP_PROTOCOL`` selects gRPC (the
    default) or HTTP.

    Args:
        environ: Variables to read instead of the process's.

    Raises:
        ConfigError: The protocol is unknown.
    """
    variables = os.environ if environ is None else environ
    named = variables.get("OTEL_TRACES_EXPORTER", "").strip() or "otlp"
    names = [name.strip() for name in named.split(",")]
    return tuple(_otlp(variables) if name == "otlp" else name for name in names if name and name != "none")


def _otlp(variables: Mapping[str, str]) -> str:
    for variable in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = variables.get(variable, "").strip()
        if protocol in OTLP:
            return OTLP[protocol]
        if protocol:
            raise ConfigError(
                f"{variable}: expected one of {', '.join(OTLP)}, got {protocol[:64]!r}", metadata={"key": variable}
            )
    return OTLP["grpc"]


# Memory limit of the control group, version 2 and 1; "max" or a huge number for none.
CGROUP_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def memory_limit(cgroup_files: tuple[Path, ...] = CGROUP_FILES) -> int:
    """Return the memory limit of this process: that of the machine or its control group."""
    limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in cgroup_files:
        try:
            text = file.read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdecimal():
            limit = min(limit, int(text))
    return limit
