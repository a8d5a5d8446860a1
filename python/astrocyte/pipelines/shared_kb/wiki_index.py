"""The index of shared documents as Markdown: a table for each type."""

from __future__ import annotations

import re
from collections.abc import Iterable

from astrocyte.model import KbDocument, KbIndex
from astrocyte.pipelines.shared_kb.rows import COMPONENT_TYPE

# Enough for some thousand documents; a reader with a context window takes no more.
MOST_BYTES = 256 << 10
# Titles of the tables of known types, in the order of the index; other types follow by name.
TITLES = {
    "spec": "Specifications",
    "adr": "Decisions",
    "architecture": "Architecture",
    COMPONENT_TYPE: "Components",
    "glossary": "Glossaries",
    "document": "Documents",
}
COLUMNS = "| id | title | status | date | path |\n|---|---|---|---|---|\n"
COMPONENT_COLUMNS = "| component | depends on | status | path |\n|---|---|---|---|\n"
# The index can be written into the folder that it describes: its type keeps it out of the next index.
HEAD = "---\ntype: index\n---\n\n# Shared knowledge\n"
# Characters that end a cell or begin markup in it.
_MARKUP = re.compile(r"([\\`*_\[\]<>|])")


def render(documents: Iterable[KbDocument]) -> KbIndex:
    """The index of documents, ordered by type, identifier and path.

    Args:
        documents: The documents, in any order.

    Returns:
        Markdown of at most `MOST_BYTES`; documents beyond are left out.
    """
    places = {name: number for number, name in enumerate(TITLES)}
    ordered = sorted(documents, key=lambda one: (places.get(one.type, len(places)), one.type, *_order(one)))
    parts, size, count = [HEAD], len(HEAD), 0
    table = ""
    for one in ordered:
        text = _row(one)
        if one.type != table:
            text = _head(one.type) + text
        size += len(text.encode())
        if size > MOST_BYTES:
            return KbIndex("".join(parts), count, truncated=True)
        parts.append(text)
        table = one.type
        count += 1
    return KbIndex("".join(parts), count, truncated=False)


def _order(document: KbDocument) -> tuple[object, ...]:
    """Identifiers in the order of their numbers: ADR-9 comes before ADR-10."""
    numbers = tuple(int(number) for number in re.findall(r"[0-9]{1,9}", document.document_id))
    return (numbers, document.document_id, document.title if document.type == COMPONENT_TYPE else "", document.path)


def _head(name: str) -> str:
    columns = COMPONENT_COLUMNS if name == COMPONENT_TYPE else COLUMNS
    return f"\n## {TITLES.get(name) or _cell(name)}\n\n{columns}"


def _row(document: KbDocument) -> str:
    cells: tuple[str, ...]
    if document.type == COMPONENT_TYPE:
        cells = (document.title, ", ".join(document.depends_on), document.status, document.path)
    else:
        cells = (document.document_id, document.title, document.status, document.date, document.path)
    return "| " + " | ".join(map(_cell, cells)) + " |\n"


def _cell(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
