"""Front matter: the YAML block at the head of a Markdown file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

# The block ends at the first line of three hyphens or dots.
_BLOCK = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
MOST_BLOCK_CHARS = 64 << 10
# No document has more levels, and the parser in C does not bound them.
MOST_LEVELS = 16
# Its values are text, lists and mappings only: no tag makes an object, and 005 stays 005.
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_NOTHING = frozenset({"", "~", "null"})


class FrontMatterError(ValueError):
    """The block is not a mapping in YAML, too long, or has a value of another shape."""


def split(text: str) -> tuple[dict[str, Any], str]:
    """The front matter of a text, with keys in lower case, and the text behind it.

    Raises:
        FrontMatterError: It is not a mapping in YAML, too long, or has aliases.
    """
    found = _BLOCK.match(text)
    if found is None:
        return {}, text
    block = found[1]
    if len(block) > MOST_BLOCK_CHARS:
        raise FrontMatterError(f"front matter has more than {MOST_BLOCK_CHARS:,} characters")
    try:
        _check(block)
        values = yaml.load(block, _LOADER)  # noqa: S506 - the base loader makes text, lists and mappings only
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f" in line {mark.line + 2}"
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
        raise FrontMatterError(f"front matter is not YAML: {reason}{place}") from None
    if values is None or values == "":
        values = {}
    if not isinstance(values, dict):
        raise FrontMatterError(f"front matter is not a mapping, but a {type(values).__name__}")
    named = {key.lower(): value for key, value in values.items() if isinstance(key, str)}
    return named, text[found.end() :]


def _check(block: str) -> None:
    """Refuse what grows when it is read: levels and aliases."""
    level = 0
    for event in yaml.parse(block, _LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise FrontMatterError("front matter has a YAML alias; write the value out")
        if isinstance(event, yaml.CollectionStartEvent):
            level += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            level -= 1
        if level > MOST_LEVELS:
            raise FrontMatterError(f"front matter has more than {MOST_LEVELS} levels")


def text_of(values: Mapping[str, Any], names: tuple[str, ...], most_chars: int) -> str:
    """The first of these values that is given, as one line of at most ``most_chars``; "" for none.

    Raises:
        FrontMatterError: It is a list or a mapping.
    """
    for name in names:
        value = values.get(name, "")
        if not isinstance(value, str):
            raise FrontMatterError(f"{name} is a {type(value).__name__}; write it as text")
        if value not in _NOTHING:
            return line(value, most_chars)
    return ""


def list_of(values: Mapping[str, Any], name: str, most: int, most_chars: int) -> tuple[str, ...]:
    """A list of texts, or a text with commas between, without repeats.

    Raises:
        FrontMatterError: It has another shape, or more than ``most`` values.
    """
    given = values.get(name, "")
    items = given
    if isinstance(given, str):
        items = [] if given in _NOTHING else given.split(",")
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise FrontMatterError(f"{name} is not a list of texts")
    found = tuple(dict.fromkeys(filter(None, (line(item, most_chars) for item in items))))
    if len(found) > most:
        raise FrontMatterError(f"{name} has {len(found):,} values, the limit is {most:,}")
    return found


def line(text: str, most_chars: int) -> str:
    """A text in one line without unprintable characters, cut to ``most_chars``."""
    return "".join(filter(str.isprintable, " ".join(text.split())))[:most_chars].strip()
