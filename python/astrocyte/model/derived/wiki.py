"""Wiki pages: what a bank knows of a topic, compiled from its memories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from astrocyte.model.derived.knowledge import Evidence, ModelSection

# A link in the text of a page: [[page]], or [[page|what is shown]].
PAGE_LINK = re.compile(r"\[\[([^\[\]|\n]{1,256})(?:\|([^\[\]\n]{0,256}))?\]\]")


class PageKind(StrEnum):
    """The kind of topic that a page is about: a named person or thing, a tag, or memories with similar vectors."""

    ENTITY = "entity"
    TOPIC = "topic"
    CLUSTER = "cluster"


class PageWriter(StrEnum):
    """The writer of a page: rules, which quote memories, or a language model."""

    RULES = "rules"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class PageLink:
    """Another page that rests on the same memories; ``shared_count`` is their number."""

    page_id: str
    title: str
    shared_count: int


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page.

    ``content`` is the sections as Markdown. ``sources`` are the memories of its topic that it was compiled from, and
    ``links`` the pages that share most of them. ``is_stale`` is True if one of them has a newer version, was archived
    or forgotten, or left the topic; blocks that rest on a forgotten memory are left out. ``links`` is empty in lists.
    """

    page_id: str
    bank_id: str
    kind: PageKind
    title: str
    scope: str
    writer: PageWriter
    sections: tuple[ModelSection, ...]
    content: str
    sources: tuple[Evidence, ...]
    links: tuple[PageLink, ...]
    revision: int
    etag: str
    created_at: datetime
    updated_at: datetime
    is_stale: bool = False

    @property
    def source_ids(self) -> tuple[str, ...]:
        """Ids of the memories that it was compiled from."""
        return tuple(one.memory_id for one in self.sources)


@dataclass(frozen=True, slots=True)
class WikiPageList:
    """A part of a bank's pages, which can be iterated over; an empty token ends the list."""

    pages: tuple[WikiPage, ...]
    next_page_token: str

    def __iter__(self) -> Iterator[WikiPage]:
        return iter(self.pages)

    def __len__(self) -> int:
        return len(self.pages)


@dataclass(frozen=True, slots=True)
class PageHit:
    """The best section of a page for a query; ``relevance`` is from 0 to 1."""

    page_id: str
    title: str
    heading: str
    text: str
    relevance: float
    source_ids: tuple[str, ...]


class PageProblem(StrEnum):
    """The problem of a page.

    STALE: a source has a newer version, was forgotten, or left the topic. UNCITED: a block cites no memory.
    DEAD_LINK: a block links to a page that the bank does not have. SINGLE_SOURCE: the page rests on one memory.
    """

    STALE = "stale"
    UNCITED = "uncited"
    DEAD_LINK = "dead_link"
    SINGLE_SOURCE = "single_source"


@dataclass(frozen=True, slots=True)
class PageFinding:
    """A problem of a page. ``detail`` names the section, the link or the memories, and is safe to show to readers."""

    page_id: str
    problem: PageProblem
    detail: str


@dataclass(frozen=True, slots=True)
class PageFindings:
    """The problems of a part of a bank's pages; an empty token ends the list."""

    findings: tuple[PageFinding, ...]
    pages_examined: int
    next_page_token: str

    def __iter__(self) -> Iterator[PageFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The result of a compilation.

    ``scopes_compiled`` is the number of topics, ``pages_held`` that of pages which a legal hold covers and which were
    left as they are. ``noise_memories`` belong to none of the topics. ``tokens_used`` are those of the language model.
    ``error`` says why the language model did not write some pages, which rules wrote instead; "" otherwise.
    """

    bank_id: str
    scopes_compiled: int
    pages_created: int
    pages_updated: int
    pages_unchanged: int
    pages_deleted: int
    pages_held: int
    noise_memories: int
    tokens_used: int
    elapsed_ms: float
    error: str = ""
