"""Requests on wiki pages."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.api.requests.base import Request
from astrocyte.model import CompileResult, PageFindings, PageHit, PageKind, RevisionPage, WikiPage, WikiPageList


@dataclass(slots=True)
class CompileBank(Request[CompileResult]):
    """Compile the pages of a bank's topics; those whose memories did not change are left as they are.

    ``scope`` is ``bank`` or "" for all topics, ``tag:`` and a tag, ``entity:`` and a name, or a tag alone.

    Raises:
        CapabilityNotSupported: `wiki.writer` is ``model``, and there is no language model.
    """

    bank_id: str
    scope: str = ""
    request_id: str | None = None
    validate_only: bool = False


@dataclass(slots=True)
class GetPage(Request[WikiPage]):
    """A page with its links.

    Raises:
        NotFound: There is none, or its memories are gone.
    """

    bank_id: str
    page_id: str


@dataclass(slots=True)
class ListPages(Request[WikiPageList]):
    """A page of wiki pages by age, without their links; None as ``kind`` is any, an empty ``scope`` too."""

    bank_id: str
    kind: PageKind | None = None
    scope: str = ""
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class SearchPages(Request[list[PageHit]]):
    """The pages that are relevant to a query, best first, each with its best section; 0 as ``max_results`` is 10."""

    bank_id: str
    query: str
    max_results: int = 0


@dataclass(slots=True)
class ListPageRevisions(Request[RevisionPage]):
    """A page of a wiki page's revisions, newest first, as far as they rest on memories that are there.

    Raises:
        NotFound: There is no such page.
    """

    bank_id: str
    page_id: str
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class LintPages(Request[PageFindings]):
    """The problems of ``page_size`` pages, by age; each call examines the next ones."""

    bank_id: str
    page_size: int = 0
    page_token: str = ""
