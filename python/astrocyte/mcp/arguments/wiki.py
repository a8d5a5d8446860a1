"""Arguments of the tools on wiki pages."""

from __future__ import annotations

from pydantic import Field

from astrocyte.mcp.arguments.common import Arguments, Paged, Sized
from astrocyte.model import PageKind


class CompileArguments(Arguments):
    """Arguments of memory_compile."""

    scope: str = Field(
        "", description="Topic to compile: a tag, 'tag:' and a tag, or 'entity:' and a name. Empty for all topics."
    )


class PageArguments(Arguments):
    """Arguments of memory_get_page."""

    page_id: str = Field(description="Id of the page.")


class ListPagesArguments(Paged):
    """Arguments of memory_list_pages."""

    kind: PageKind | None = Field(None, description="Only pages of this kind.")


class SearchPagesArguments(Sized):
    """Arguments of memory_search_pages."""

    query: str = Field(description="Question or keywords.")
