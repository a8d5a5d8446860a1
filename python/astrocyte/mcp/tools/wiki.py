"""Tools on wiki pages."""

from __future__ import annotations

from astrocyte.api.requests import CompileBank, GetPage, ListPages, SearchPages
from astrocyte.mcp.arguments.common import OneBank
from astrocyte.mcp.arguments.wiki import CompileArguments, ListPagesArguments, PageArguments, SearchPagesArguments
from astrocyte.mcp.results.wiki import CompiledResult, PageHits, PageItem, PageList
from astrocyte.mcp.tools.row import Target, Tool, knowledge_exposed


def _compile(given: CompileArguments, target: Target) -> CompileBank:
    return CompileBank(target.bank_id, given.scope)


def _get(given: PageArguments, target: Target) -> GetPage:
    return GetPage(target.bank_id, given.page_id)


def _list(given: ListPagesArguments, target: Target) -> ListPages:
    return ListPages(target.bank_id, given.kind, page_size=given.page_size, page_token=given.page_token)


def _search(given: SearchPagesArguments, target: Target) -> SearchPages:
    return SearchPages(target.bank_id, given.query, given.max_results)


WIKI_TOOLS = (
    Tool(
        "memory_compile",
        "Compile wiki pages",
        "Compile the memories of a bank into wiki pages, one for each tag and each named person or thing. Pages whose "
        "memories did not change are left as they are.",
        CompileBank,
        CompileArguments,
        OneBank,
        _compile,
        CompiledResult,
        read_only=False,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_get_page",
        "Read a wiki page",
        "Read one wiki page: what the bank knows of a tag, person or thing, with the memories that it rests on.",
        GetPage,
        PageArguments,
        OneBank,
        _get,
        PageItem,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_list_pages",
        "List wiki pages",
        "List the wiki pages of a bank, oldest first, without their content.",
        ListPages,
        ListPagesArguments,
        OneBank,
        _list,
        PageList,
        exposed=knowledge_exposed,
    ),
    Tool(
        "memory_search_pages",
        "Search wiki pages",
        "Find the wiki pages that are relevant to a query, each with its best section.",
        SearchPages,
        SearchPagesArguments,
        OneBank,
        _search,
        PageHits,
        exposed=knowledge_exposed,
    ),
)
