"""Wiki pages: compiled, read, searched and examined by call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, replace

from astrocyte.api.requests import CompileBank, GetPage, LintPages, ListPageRevisions, ListPages, SearchPages
from astrocyte.model import (
    BANK_SCOPE,
    ENTITY_SCOPE,
    PAGE_LINK,
    TAG_SCOPE,
    Bank,
    Caller,
    CompileResult,
    PageFinding,
    PageFindings,
    PageHit,
    PageKind,
    PageLink,
    PageProblem,
    PageWriter,
    RecallQuery,
    RevisionPage,
    WikiPage,
    WikiPageList,
)
from astrocyte.pipelines.knowledge import documents
from astrocyte.pipelines.knowledge.wiki_pages import title_of
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.policy.operations.knowledge.items import Items, evidence_of
from astrocyte.policy.operations.knowledge.model_values import content_of
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.knowledge.items import ItemKind, ItemRecord, is_stale_page

KIND = ItemKind.WIKI_PAGE
# Links of a page that are told.
MOST_LINKS = 20
DEFAULT_RESULTS = 10
# Pages read at once for the names of all.
READ_AT_ONCE = 256


class _Names:
    """Names of pages, read when the first link is looked up."""

    def __init__(self, read: Callable[[], frozenset[str]]) -> None:
        self._read = read
        self._found: frozenset[str] | None = None

    def __contains__(self, name: str) -> bool:
        if self._found is None:
            self._found = self._read()
        return name in self._found


class WikiPages:
    """Handlers of the RPCs on wiki pages.

    Args:
        parts: What the operations share.
        clock: Milliseconds since the epoch.
        executor: Runs searches, of which the first builds an index.
    """

    def __init__(self, parts: OperationParts, clock: Callable[[], int], executor: Executor) -> None:
        self._items = Items(parts)
        self._store = parts.knowledge
        self._pages = parts.wiki
        self._memories = parts.store
        self._banks = parts.banks
        self._access = parts.access
        self._check = parts.check
        self._limits = parts.settings.limits
        self._barriers = parts.policies.barriers
        self._compiler = parts.pipelines.wiki
        self._search = parts.pipelines.pages
        self._graph = parts.pipelines.graph
        self._clock = clock
        self._executor = executor

    async def compile_bank(self, caller: Caller, request: CompileBank) -> CompileResult:
        """Compile the pages of a scope."""
        bank_id, name = request.bank_id, "CompileBank"
        self._banks.require(caller, name, bank_id)
        await self._items.admit(caller, bank_id)
        scope = self._scope(request.scope)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, name, bank_id)
        key = None if request.validate_only else key_of(request.request_id, "compile_bank", bank_id, scope)
        earlier = None if key is None else self._memories.find_response(caller.tenant, key)
        if earlier is not None:
            return CompileResult(**json.loads(earlier))
        # Names of what was stored just now.
        await self._graph.caught_up()

        async def screen(bank_id: str, texts: Sequence[str]) -> Sequence[str]:
            return await self._barriers.texts(bank_id, name, texts, "page", quiet=False)

        by = self._access.name(caller)
        result = await self._compiler.run(bank, scope, by, screen, validate_only=request.validate_only)
        if key is not None:
            await self._pages.remember(bank, key, json.dumps(asdict(result)))
        return result

    def _scope(self, value: object) -> str:
        """A scope; a name without a prefix is a tag."""
        if not isinstance(value, str) or value in {"", BANK_SCOPE} or value.startswith((TAG_SCOPE, ENTITY_SCOPE)):
            return self._items.scope(value)
        return self._items.scope(TAG_SCOPE + value)

    async def get_page(self, caller: Caller, request: GetPage) -> WikiPage:
        """One page."""
        bank = self._named(caller, "GetPage", request.bank_id, request.page_id)
        record = self._items.found(bank, KIND, request.page_id)
        linked = self._pages.linked(bank, record.key, MOST_LINKS)
        links = tuple(PageLink(one.item_id, _title(self._items.shown(one)), count) for one, count in linked)
        return replace(self._page(record), links=links)

    async def list_pages(self, caller: Caller, request: ListPages) -> WikiPageList:
        """A part of the pages."""
        self._banks.require(caller, "ListPages", request.bank_id)
        if request.kind is not None:
            field_checks.choice(request.kind, "kind", PageKind)
        scope = self._scope(request.scope) if request.scope else ""
        limit = self._check.page_limit(request.page_size)
        bank = self._banks.current(caller, "ListPages", request.bank_id)
        listing = ("pages", caller.tenant, bank.key, scope, str(request.kind or ""))
        after = decode_place(request.page_token, listing)
        rows: list[tuple[int, WikiPage]] = []
        while len(rows) <= limit.entries:
            records = self._store.listed(bank, KIND, scope=scope, after=after, limit=limit.entries + 1)
            if not records:
                break
            rows += [
                (record.key, self._page(record))
                for record in records
                if request.kind is None or record.current.body["kind"] == request.kind
            ]
            after = records[-1].key
        entries, last = cut_page(rows[: limit.entries + 1], limit)
        return WikiPageList(entries, "" if last is None else encode_token(listing, [last]))

    async def search_pages(self, caller: Caller, request: SearchPages) -> list[PageHit]:
        """The pages that are relevant to a query."""
        bank_id, name = request.bank_id, "SearchPages"
        self._banks.require(caller, name, bank_id)
        await self._items.admit_recall(caller, bank_id)
        most = request.max_results
        field_checks.integer(most, "max_results", 0, self._limits.max_results)
        self._items.text(request.query, "query")
        bank = self._banks.current(caller, name, bank_id)
        query, _ = await self._barriers.query(name, RecallQuery(request.query, bank_id), (bank_id,))
        found = await asyncio.get_running_loop().run_in_executor(
            self._executor, lambda: self._search.search(bank, query, self._clock())
        )
        hits = []
        for one in found[: most or DEFAULT_RESULTS]:
            texts = [_title(one.record), one.heading, one.text]
            title, heading, text = self._barriers.told(bank.bank_id, texts)
            sources = tuple(source.memory_id for source in one.record.current.sources if source.current is not None)
            hits.append(PageHit(one.record.item_id, title, heading, text, one.relevance, sources))
        return hits

    async def list_page_revisions(self, caller: Caller, request: ListPageRevisions) -> RevisionPage:
        """The revisions of a page."""
        bank = self._named(caller, "ListPageRevisions", request.bank_id, request.page_id)
        page = (request.page_size, request.page_token)
        return self._items.revision_page(bank, KIND, request.page_id, content_of, page)

    async def lint_pages(self, caller: Caller, request: LintPages) -> PageFindings:
        """The problems of some pages."""
        self._banks.require(caller, "LintPages", request.bank_id)
        limit = self._check.page_limit(request.page_size)
        bank = self._banks.current(caller, "LintPages", request.bank_id)
        listing = ("lint", caller.tenant, bank.key)
        after = decode_place(request.page_token, listing)
        records = self._store.listed(bank, KIND, scope="", after=after, limit=limit.entries)
        names = _Names(lambda: self._names(bank))
        findings = [finding for record in records for finding in self._problems(self._items.shown(record), names)]
        token = encode_token(listing, [records[-1].key]) if len(records) == limit.entries else ""
        return PageFindings(tuple(findings), len(records), token)

    def _names(self, bank: Bank) -> frozenset[str]:
        """Ids and titles of all pages, without case."""
        names: set[str] = set()
        after = 0
        while records := self._store.listed(bank, KIND, scope="", after=after, limit=READ_AT_ONCE):
            names.update(name.casefold() for record in records for name in (record.item_id, _title(record)))
            after = records[-1].key
        return frozenset(names)

    def _problems(self, record: ItemRecord, names: _Names) -> list[PageFinding]:
        """The problems of one page."""
        found: list[tuple[PageProblem, str]] = []
        sources = record.current.sources
        if is_stale_page(sources):
            changed = sum(one.current is not None and one.current != one.version for one in sources)
            gone, archived = sum(one.current is None for one in sources), sum(one.archived for one in sources)
            detail = f"{changed} memories changed, {archived} are archived and {gone} are gone; compile the page again"
            found.append((PageProblem.STALE, detail))
        if len(sources) == 1:
            found.append((PageProblem.SINGLE_SOURCE, f"only {sources[0].memory_id} says it"))
        for section in documents.decode(record.current.body["sections"]):
            for number, block in enumerate(section.blocks):
                place = f"block {number} of section {section.section_id}"
                if not block.source_ids:
                    found.append((PageProblem.UNCITED, place))
                found += [
                    (PageProblem.DEAD_LINK, f"[[{target}]] in {place}")
                    for target, _ in PAGE_LINK.findall(block.text)
                    if target.strip().casefold() not in names
                ]
        return [PageFinding(record.item_id, problem, detail) for problem, detail in found]

    def _named(self, caller: Caller, operation: str, bank_id: str, page_id: str) -> Bank:
        self._banks.require(caller, operation, bank_id)
        field_checks.label(page_id, "page_id", field_checks.MOST_NAME_CHARS)
        return self._banks.handle(caller, operation, bank_id)

    def _page(self, record: ItemRecord) -> WikiPage:
        """A page as it may leave, without links."""
        record = self._items.shown(record)
        body, sources = record.current.body, record.current.sources
        sections = documents.decode(body["sections"])
        return WikiPage(
            page_id=record.item_id,
            bank_id=record.bank_id,
            kind=PageKind(body["kind"]),
            title=_title(record),
            scope=record.scope,
            writer=PageWriter(body["writer"]),
            sections=sections,
            content=documents.render(sections),
            sources=evidence_of(sources),
            links=(),
            revision=record.current.revision,
            etag=record.etag,
            created_at=from_ms(record.created_at),
            updated_at=from_ms(record.updated_at),
            is_stale=is_stale_page(sources),
        )


def _title(record: ItemRecord) -> str:
    return title_of(record.current.body, record.item_id)
