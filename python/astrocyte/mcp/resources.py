"""Resources: banks, memories and wiki pages as JSON documents.

astrocyte://banks                                  the banks that the caller may read
astrocyte://banks/{bank_id}                        a bank and its counts
astrocyte://banks/{bank_id}/memories/{memory_id}   a memory, in full
astrocyte://banks/{bank_id}/pages/{page_id}        a wiki page with its links
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types

from astrocyte.api import Backend
from astrocyte.api.requests import GetBank, GetBankStats, GetMemory, GetPage, ListBanks
from astrocyte.mcp.results.memory import BankList
from astrocyte.mcp.results.wiki import PageItem
from astrocyte.model import Bank, BankStats, Caller, Memory

ROOT = "astrocyte://banks"
JSON = "application/json"
# Longer than any bank id and memory id with every character quoted.
MOST_URI_CHARS = 2_048
_URI = re.compile(r"astrocyte://banks(?:/(?P<bank>[^/]+)(?:/memories/(?P<memory>[^/]+)|/pages/(?P<page>[^/]+))?)?")

TEMPLATES = (
    types.ResourceTemplate(
        name="bank",
        title="Bank",
        uri_template=f"{ROOT}/{{bank_id}}",
        description="A bank and its counts",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        name="memory",
        title="Memory",
        uri_template=f"{ROOT}/{{bank_id}}/memories/{{memory_id}}",
        description="A memory, in full",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        name="page",
        title="Wiki page",
        uri_template=f"{ROOT}/{{bank_id}}/pages/{{page_id}}",
        description="A wiki page with its links",
        mime_type=JSON,
    ),
)


class UnknownResource(Exception):  # noqa: N818 - names the case, as in `astrocyte.errors`
    """No resource has the URI, or the session may not read it."""


async def listed(backend: Backend, caller: Caller, bank_id: str | None, cursor: str) -> types.ListResourcesResult:
    """List a page of banks as resources; only the fixed bank of the session, where there is one."""
    if bank_id is not None:
        bank = await backend.call(caller, GetBank(bank_id))
        return types.ListResourcesResult(resources=[_resource(bank.bank_id, bank.display_name, bank.description)])
    page = await backend.call(caller, ListBanks(page_token=cursor))
    found = [_resource(bank.bank_id, bank.display_name, bank.description) for bank in page.banks]
    return types.ListResourcesResult(resources=found, next_cursor=page.next_page_token or None)


async def read(backend: Backend, caller: Caller, bank_id: str | None, uri: str) -> Any:  # noqa: ANN401 - a JSON document
    """Return the document of a URI.

    Raises:
        UnknownResource: The URI has another form, or names another bank than the session's.
        AstrocyteError: The call failed.
    """
    match = _URI.fullmatch(uri) if len(uri) <= MOST_URI_CHARS else None
    if match is None:
        raise UnknownResource
    bank, memory = match["bank"], match["memory"]
    if bank is None:
        if bank_id is not None:
            raise UnknownResource
        return BankList.of(await backend.call(caller, ListBanks()))
    bank = unquote(bank)
    if bank_id not in {None, bank}:
        raise UnknownResource
    if memory is not None:
        return _memory(await backend.call(caller, GetMemory(bank, unquote(memory))))
    if match["page"] is not None:
        return PageItem.of(await backend.call(caller, GetPage(bank, unquote(match["page"]))))
    found = await backend.call(caller, GetBank(bank))
    return _bank(found, await backend.call(caller, GetBankStats(bank)))


def _resource(bank_id: str, title: str, description: str) -> types.Resource:
    uri = f"{ROOT}/{quote(bank_id, safe='')}"
    return types.Resource(
        uri=uri, name=bank_id, title=title or bank_id, description=description or None, mime_type=JSON
    )


def _bank(bank: Bank, stats: BankStats) -> dict[str, Any]:
    return {
        "bank_id": bank.bank_id,
        "display_name": bank.display_name,
        "description": bank.description,
        "embedding_model": bank.embedding_model,
        "created_at": bank.created_at,
        "memory_count": stats.memory_count,
        "forgotten_count": stats.forgotten_count,
        "token_count": stats.token_count,
        "position": stats.position,
    }


def _memory(memory: Memory) -> dict[str, Any]:
    return {
        "memory_id": memory.memory_id,
        "bank_id": memory.bank_id,
        "version": memory.version,
        "content": memory.content,
        "tags": list(memory.tags),
        "metadata": dict(memory.metadata),
        "source": memory.source,
        "session_id": memory.session_id,
        "speaker": memory.speaker,
        "occurred_at": memory.occurred_at,
        "retained_at": memory.retained_at,
        "updated_at": memory.updated_at,
    }
