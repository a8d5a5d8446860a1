"""Shared knowledge: documents of a bank that all agents read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class KbDocument:
    """A Markdown file of an indexed folder, or a component that one describes.

    ``folder`` is the name of the indexed folder and ``path`` the file's path in it, with slashes. ``row`` is ``1`` for
    the text of the file, ``2`` and so on for further parts of a long text, ``component:`` and a name for a component;
    ``row_count`` is the number of rows of the file. The digests are of folder and path, of the file, and of the row's
    text: 32 letters each. ``date`` is ``YYYY-MM-DD`` or "". ``updated_at`` is None in hits.
    """

    memory_id: str
    folder: str
    path: str
    type: str
    document_id: str
    title: str
    status: str
    date: str
    summary: str
    depends_on: tuple[str, ...]
    row: str
    row_count: int
    path_hash: str
    file_hash: str
    text_hash: str
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KbHit:
    """A document that matched, with its best passage and its bank; ``score`` is the relevance, from 0 to 1."""

    document: KbDocument
    text: str
    score: float
    bank_id: str


@dataclass(frozen=True, slots=True)
class KbSearchResult:
    """Documents, best first, each once. ``warnings`` say what the barriers changed or found."""

    hits: tuple[KbHit, ...]
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[KbHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class KbPage:
    """A part of a table of documents; an empty token ends the list. A page can be empty and not the last."""

    documents: tuple[KbDocument, ...]
    next_page_token: str

    def __iter__(self) -> Iterator[KbDocument]:
        return iter(self.documents)

    def __len__(self) -> int:
        return len(self.documents)


@dataclass(frozen=True, slots=True)
class KbIndex:
    """The documents of a bank as Markdown, a table for each type; ``truncated`` if some were left out."""

    content: str
    document_count: int
    truncated: bool
