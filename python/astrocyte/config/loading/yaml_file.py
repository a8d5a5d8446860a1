"""Settings files: YAML with line numbers, and variables of the environment in their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from astrocyte.config.loading.source import KeyPath, SourceLines
from astrocyte.errors import ConfigError

# A literal ${, a variable, or a ${ that begins none.
VARIABLE = re.compile(r"(?P<escaped>\$\$\{)|\$\{(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\})?")

# YAML's tag of text.
TEXT = "tag:yaml.org,2002:str"

# The deepest setting has a fraction of these levels, and Python's stack many times more.
MOST_LEVELS = 64


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
