"""Tables of a Markdown text, outside of code blocks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

_FENCE = re.compile(r"[ ]{0,3}(```|~~~)")
_CELLS = re.compile(r"(?<!\\)\|")
# Characters of the line between the heading and the rows of a table.
_RULE = frozenset("|:- \t")
# Markup around a name: code, emphasis, and the target of a link.
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_MARKUP = re.compile(r"[`*]|\\(?=[|_])")


def tables_of(text: str, columns: Mapping[str, tuple[str, ...]], needed: Collection[str]) -> Iterator[dict[str, str]]:
    """The rows of the tables that have the needed columns.

    Args:
        text: The text.
        columns: Names of a column in headings, in lower case, by the name of its cells in the result.
        needed: Names of cells without which a table is another one.

    Yields:
        The cells of a row without markup, by name; those that a row or its table lacks are "" or missing.
    """
    lines = list(plain_lines(text))
    places: dict[str, int] | None = None
    for number, content in enumerate(lines):
        if "|" not in content:
            places = None
        elif number and places is None and "-" in content and _RULE.issuperset(content):
            places = _places(_cells(lines[number - 1]), columns)
            places = places if set(needed) <= places.keys() else {}
        elif places:
            cells = _cells(content)
            yield {key: cells[place] if place < len(cells) else "" for key, place in places.items()}


def plain_lines(text: str) -> Iterator[str]:
    """The lines of a text; those of code blocks are empty."""
    fence = ""
    for content in text.split("\n"):
        mark = _FENCE.match(content)
        if mark is not None and fence in {"", mark[1]}:
            fence = "" if fence else mark[1]
            yield ""
        else:
            yield "" if fence else content


def without_markup(text: str) -> str:
    """A text without emphasis, code marks and targets of links."""
    return _MARKUP.sub("", _LINK.sub(r"\1", text)).strip()


def _places(head: list[str], columns: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    names = [cell.casefold() for cell in head]
    found = {key: next((n for n, name in enumerate(names) if name in known), -1) for key, known in columns.items()}
    return {key: place for key, place in found.items() if place >= 0}


def _cells(content: str) -> list[str]:
    cells = _CELLS.split(content.strip())
    cells = cells[1:] if cells and not cells[0].strip() else cells
    cells = cells[:-1] if cells and not cells[-1].strip() else cells
    return [without_markup(cell) for cell in cells]
