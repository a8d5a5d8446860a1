"""Values of settings from several sources, and the lines of the file that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge ``over`` into ``base``: mappings are merged, other values replaced."""
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def line_of(source: SourceLines, path: KeyPath) -> dict[str, str]:
    """Return file and line of a key as error metadata; empty if it is not from a file."""
    line = source.line(path)
    return {} if line is None else {"file": source.name, "line": str(line)}
