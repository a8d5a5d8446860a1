"""The RPCs on shared documents: search, tables and the index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol, TypeVar

from astrocyte.api.requests import GetSharedKbIndex, ListSharedKb, Recall, SearchSharedKb
from astrocyte.errors import ValidationError
from astrocyte.model import (
    Bank,
    Caller,
    KbDocument,
    KbHit,
    KbIndex,
    KbPage,
    KbSearchResult,
    MemoryHit,
    RecallQuery,
    TagMatch,
)
from astrocyte.pipelines.shared_kb import rows, wiki_index
from astrocyte.policy.operations.agents.shared_banks import SharedBanks
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.operations.recall import Recalling
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.composed_text import composed_name
from astrocyte.policy.requests.page_tokens import LARGEST_POSITION, decode_token, encode_token
from astrocyte.policy.requests.pages import cut_page

T = TypeVar("T")
DEFAULT_RESULTS = 10
# Agents reason over a short list; the limit of banks is for their callers.
MOST_RESULTS = 100
# Hits for one document: parts and components of one file are one hit.
HITS_PER_DOCUMENT = 3
# Rows and characters of content that are read at once, and rows that one page of a list looks at.
READ_AT_ONCE = 500
READ_CHARS = 16 << 20
MOST_EXAMINED = 4_000
# Documents of an index; beyond, its size ends it in any case.
MOST_INDEXED = 20_000
# Texts of a document that a bank may withhold.
TEXTS = ("folder", "path", "type", "document_id", "title", "status", "summary", "row")


class Filter(Protocol):
    """The fields of a request that select documents."""

    bank_id: str
    type: str
    status: str
    folder: str


class SharedKb:
    """Handlers of SearchSharedKb, ListSharedKb and GetSharedKbIndex.

    Args:
        parts: What the operations share.
        recalling: Recalls of memories.
        executor: Runs reads that are too long for the event loop.
    """

    def __init__(self, parts: OperationParts, recalling: Recalling, executor: Executor) -> None:
        self._store = parts.store
        self._banks = parts.banks
        self._check = parts.check
        self._limits = parts.settings.limits
        self._barriers = parts.policies.barriers
        self._recalling = recalling
        self._shared_banks = SharedBanks(parts, recalling)
        self._executor = executor

    async def search(self, caller: Caller, request: SearchSharedKb) -> KbSearchResult:
        """The documents that are relevant to a query, of a bank or of all shared banks."""
        if request.bank_id == "":
            return await self._search_all(caller, request)
        self._banks.require(caller, "SearchSharedKb", request.bank_id)
        query, count = self._query(request)
        self._banks.handle(caller, "SearchSharedKb", request.bank_id)
        result = await self._recalling.recall(caller, Recall(query))
        return KbSearchResult(tuple(islice(_distinct(request.bank_id, result.hits), count)), result.warnings)

    async def _search_all(self, caller: Caller, request: SearchSharedKb) -> KbSearchResult:
        banks = self._shared_banks.readable(caller)
        if not banks:
            raise ValidationError(
                "is missing, and there is no bank of agent_memory.shared_banks that you may read; name a bank",
                field="bank_id",
            )
        query, count = self._query(request)
        self._check.query(replace(query, bank_id=banks[0]))
        results, warnings = await self._shared_banks.recall(caller, banks, query)
        found = [hit for bank_id, result in results for hit in _distinct(bank_id, result.hits)]
        # Relevance is comparable across banks. Equal ones stay in the order of the settings.
        return KbSearchResult(tuple(sorted(found, key=lambda hit: -hit.score)[:count]), warnings)

    def _query(self, request: SearchSharedKb) -> tuple[RecallQuery, int]:
        """The recall that a search is, and the number of documents that are wanted."""
        most = min(MOST_RESULTS, self._limits.max_results)
        field_checks.integer(request.max_results, "max_results", 0, most)
        count = request.max_results or min(DEFAULT_RESULTS, most)
        query = RecallQuery(
            request.query,
            request.bank_id,
            max_results=min(count * HITS_PER_DOCUMENT, self._limits.max_results),
            tags=(rows.TAG,),
            tag_match=TagMatch.ALL,
            metadata=self._filter(request),
            include_trace=False,
        )
        return query, count

    async def list(self, caller: Caller, request: ListSharedKb) -> KbPage:
        """A part of a table of documents."""
        self._banks.require(caller, "ListSharedKb", request.bank_id)
        limit = self._check.page_limit(request.page_size)
        wanted = self._filter(request)
        if not isinstance(request.include_rows, bool):
            raise ValidationError(f"expected true or false, got {request.include_rows!r:.40}", field="include_rows")
        bank = self._banks.current(caller, "ListSharedKb", request.bank_id)
        every = request.include_rows
        scope = ("shared_kb", caller.tenant, bank.key, tuple(sorted(wanted.items())), every)
        position, after = bank.position, 0
        if request.page_token:
            position, after = decode_token(request.page_token, scope, int, 2)
        if not (0 <= position <= bank.position and 0 <= after <= LARGEST_POSITION):
            raise ValidationError(
                "names a position that the bank has not reached; request the first page again", field="page_token"
            )

        def read() -> KbPage:
            found: list[tuple[int, KbDocument]] = []
            last = None
            for number, (place, document) in enumerate(self._rows(bank, position, after), 1):
                if document is not None and _matches(document, wanted, every=every):
                    found.append((place, document))
                # One more row than the page has tells whether the list goes on.
                if len(found) > limit.entries:
                    break
                if number == MOST_EXAMINED:
                    last = place
                    break
            documents, cut = cut_page([(place, self._told(bank, one)) for place, one in found], limit)
            last = last if cut is None else cut
            return KbPage(documents, "" if last is None else encode_token(scope, [position, last]))

        return await self._run(read)

    async def index(self, caller: Caller, request: GetSharedKbIndex) -> KbIndex:
        """The index of the documents as Markdown."""
        self._banks.require(caller, "GetSharedKbIndex", request.bank_id)
        wanted = self._filter(request)
        bank = self._banks.current(caller, "GetSharedKbIndex", request.bank_id)

        def read() -> KbIndex:
            found = (one for _, one in self._rows(bank, bank.position, 0) if one is not None)
            documents = (
                self._told(bank, one) for one in found if _matches(one, wanted, every=one.type == rows.COMPONENT_TYPE)
            )
            made = wiki_index.render(islice(documents, MOST_INDEXED))
            return replace(made, truncated=made.truncated or next(documents, None) is not None)

        return await self._run(read)

    def _filter(self, request: Filter) -> dict[str, str]:
        """The metadata that a request asks for."""
        wanted: dict[str, str] = {}
        for name, key in (("type", rows.TYPE), ("status", rows.STATUS), ("folder", rows.FOLDER)):
            value = getattr(request, name)
            if value != "":
                wanted[key] = composed_name(field_checks.label(value, name, self._limits.name_chars))
        return wanted

    def _rows(self, bank: Bank, position: int, after: int) -> Iterator[tuple[int, KbDocument | None]]:
        """The place and document of each memory with the tag; None for a memory that is no document."""
        while True:
            found, _ = self._store.list_memories(
                bank,
                tags=(rows.TAG,),
                session_id=None,
                at_position=position,
                after=after,
                limit=READ_AT_ONCE,
                content_chars=READ_CHARS,
            )
            if not found:
                return
            for place, memory in found:
                yield place, rows.document_of(memory.memory_id, memory.metadata, memory.updated_at)
            after = found[-1][0]

    def _told(self, bank: Bank, document: KbDocument) -> KbDocument:
        """A document as it may leave."""
        texts = [*(getattr(document, name) for name in TEXTS), *document.depends_on]
        told = self._barriers.told(bank.bank_id, texts)
        if told is texts:
            return document
        changed: dict[str, Any] = dict(zip(TEXTS, told, strict=False))
        return replace(document, **changed, depends_on=tuple(told[len(TEXTS) :]))

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _matches(document: KbDocument, wanted: dict[str, str], *, every: bool) -> bool:
    """True if a document has the wanted metadata and is the first row of its file, or a row that is asked for."""
    given = {rows.TYPE: document.type, rows.STATUS: document.status, rows.FOLDER: document.folder}
    if any(given[key] != value for key, value in wanted.items()):
        return False
    is_component = document.type == rows.COMPONENT_TYPE
    return every or document.row == rows.FIRST_ROW or (is_component and wanted.get(rows.TYPE) == rows.COMPONENT_TYPE)


def _distinct(bank_id: str, hits: Iterable[MemoryHit]) -> Iterator[KbHit]:
    """The documents of hits, best first; of the parts of a text, the best one."""
    seen: set[tuple[str, str]] = set()
    for hit in hits:
        document = rows.document_of(hit.memory_id or "", hit.metadata or {}, None)
        if document is None:
            continue
        same = (document.path_hash, document.row if document.type == rows.COMPONENT_TYPE else "")
        if same not in seen:
            seen.add(same)
            yield KbHit(document, hit.text, hit.score, bank_id)
