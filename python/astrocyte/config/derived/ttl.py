"""The block ttl of lifecycle: other names of ages and of exempt_tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrocyte.config.loading.source import KeyPath, SourceLines, line_of, merge
from astrocyte.errors import ConfigError

# Keys that lifecycle has under the same name.
SAME = ("archive_after_days", "delete_after_days", "exempt_tags")
# Fact types and their archive_after_days.
BY_FACT_TYPE = "fact_type_overrides"


def without_ttl(block: object, where: KeyPath, source: SourceLines, lines: dict[KeyPath, int]) -> Any:  # noqa: ANN401 - what came
    """Return a block lifecycle with the values of its block ttl under their own keys.

    Args:
        block: The block as it came; other values than mappings are returned unchanged.
        where: Path of the block.
        source: Lines of the file.
        lines: Lines of the keys that are set here are added.

    Raises:
        ConfigError: ttl or fact_type_overrides is no mapping, has an unknown key, or a value has both names.
    """
    if not isinstance(block, Mapping) or "ttl" not in block:
        return block
    spelled = {key: value for key, value in block.items() if key != "ttl"}
    for key, value in _mapping(block["ttl"], (*where, "ttl"), source).items():
        path = (*where, "ttl", str(key))
        if key in SAME:
            found: dict[KeyPath, Any] = {(key,): value}
        elif key == BY_FACT_TYPE:
            ages = _mapping(value, path, source)
            found = {("fact_types", str(name), "archive_after_days"): days for name, days in ages.items()}
        else:
            expected = ", ".join((*SAME, BY_FACT_TYPE))
            raise _refusal(path, f"is not a setting; expected one of {expected}", source)
        for own, said in found.items():
            if _is_set(spelled, own):
                raise _refusal(path, f"is set twice: it is another name of {'.'.join((*where, *own))}", source)
            for part in reversed(own):
                said = {part: said}  # noqa: PLW2901 - wrapped from the inside
            spelled = merge(spelled, said)
            line = source.line((*path, own[1]) if key == BY_FACT_TYPE else path)
            if line is not None:
                lines[*where, *own] = line
    return spelled


def _mapping(value: object, path: KeyPath, source: SourceLines) -> Mapping[Any, Any]:
    """Return a mapping; null is an empty one.

    Raises:
        ConfigError: It is neither.
    """
    if value is not None and not isinstance(value, Mapping):
        raise _refusal(path, f"expected a mapping, got {value!r}", source)
    return value or {}


def _is_set(block: object, path: KeyPath) -> bool:
    """Return True if a key is set, or a value above it that is no mapping."""
    for part in path:
        if not isinstance(block, Mapping):
            return True
        if part not in block:
            return False
        block = block[part]
    return True


def _refusal(path: KeyPath, problem: str, source: SourceLines) -> ConfigError:
    """Return the error about a key, with its line."""
    return ConfigError(f"{source.place(path)}: {problem}", metadata={"key": ".".join(path), **line_of(source, path)})
