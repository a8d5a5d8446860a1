"""The requests of `AgentMemoryService` on shared documents. Empty ``type``, ``status`` and ``folder`` are any."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.api.requests.base import Request
from astrocyte.model import KbIndex, KbPage, KbSearchResult


@dataclass(slots=True)
class SearchSharedKb(Request[KbSearchResult]):
    """The documents that are relevant to a query, each with its best passage; 0 as ``max_results`` is 10.

    An empty ``bank_id``: all banks of ``agent_memory.shared_banks`` that the caller may read.
    """

    bank_id: str
    query: str
    type: str = ""
    status: str = ""
    folder: str = ""
    max_results: int = 0


@dataclass(slots=True)
class ListSharedKb(Request[KbPage]):
    """A page of documents in storage order; without ``type``, components are left out.

    ``include_rows`` lists all rows of each file: components, and further parts of long texts.
    """

    bank_id: str
    type: str = ""
    status: str = ""
    folder: str = ""
    include_rows: bool = False
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class GetSharedKbIndex(Request[KbIndex]):
    """The index of the documents as Markdown, components included."""

    bank_id: str
    type: str = ""
    status: str = ""
    folder: str = ""
