"""The part of the Python API on wiki pages, coverage and diagnosis."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.api import Backend, requests
from astrocyte.facade import keywords
from astrocyte.facade.keywords import Texts
from astrocyte.model import (
    AstrocyteContext,
    AuditResult,
    Check,
    CompileResult,
    Diagnosis,
    PageFindings,
    PageHit,
    PageKind,
    RepairResult,
    RevisionPage,
    WikiPage,
    WikiPageList,
)


class Wiki:
    """The calls of `Astrocyte` on wiki pages, coverage and diagnosis.

    ``context`` names the caller, the local user by default.
    """

    _backend: Backend

    async def compile(
        self,
        bank_id: str,
        *,
        scope: str | None = None,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> CompileResult:
        """Compile the wiki pages of a bank.

        Args:
            bank_id: Whose memories.
            scope: A tag, ``tag:`` and a tag, or ``entity:`` and a name; None is all topics.
            request_id: The same id with the same request answers what it answered before.
            validate_only: Count the pages that would be written and deleted, and change nothing.
            context: Who calls.

        Raises:
            CapabilityNotSupported: `wiki.writer` is ``model``, and there is no language model.
        """
        request = requests.CompileBank(bank_id, scope or "", request_id, validate_only)
        return await self._backend.call(keywords.caller_of(context), request)

    async def audit(  # noqa: PLR0913 - the signature of the API reference
        self,
        scope: str,
        bank_id: str,
        *,
        questions: Texts | None = None,
        max_memories: int = 50,
        max_tokens: int | None = None,
        tags: Texts | None = None,
        context: AstrocyteContext | None = None,
    ) -> AuditResult:
        """Find the topics that a bank should cover and does not.

        Args:
            scope: Description of what the bank is about; "" for the questions alone.
            bank_id: The bank.
            questions: Questions that it should answer.
            max_memories: Maximum of memories for the language model, and of a topic.
            max_tokens: Token budget of the sample.
            tags: Only memories with at least one of these tags.
            context: Who calls.
        """
        request = requests.AuditCoverage(
            bank_id,
            scope,
            keywords.texts(questions, "questions"),
            max_memories,
            max_tokens,
            keywords.texts(tags, "tags"),
        )
        return await self._backend.call(keywords.caller_of(context), request)

    async def diagnose(
        self,
        bank_id: str,
        *,
        checks: Sequence[Check | str] = (),
        max_memories: int = 0,
        context: AstrocyteContext | None = None,
    ) -> Diagnosis:
        """Look for problems of a bank; empty ``checks`` are all, and 0 as ``max_memories`` is 10,000."""
        chosen = tuple(keywords.choice(Check, one, "checks") for one in checks)
        request = requests.DiagnoseBank(bank_id, chosen, max_memories)
        return await self._backend.call(keywords.caller_of(context), request)

    async def repair(
        self,
        bank_id: str,
        *,
        request_id: str | None = None,
        validate_only: bool = False,
        context: AstrocyteContext | None = None,
    ) -> RepairResult:
        """Mend what can be mended without loss: delete orphaned rows, compile stale wiki pages.

        With ``validate_only`` nothing is changed, and the result says what would be.
        """
        request = requests.RepairBank(bank_id, request_id, validate_only)
        return await self._backend.call(keywords.caller_of(context), request)

    async def get_page(self, bank_id: str, page_id: str, *, context: AstrocyteContext | None = None) -> WikiPage:
        """One page with its links.

        Raises:
            NotFound: There is none, or its memories are gone.
        """
        return await self._backend.call(keywords.caller_of(context), requests.GetPage(bank_id, page_id))

    async def list_pages(
        self,
        bank_id: str,
        *,
        kind: PageKind | str | None = None,
        scope: str = "",
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> WikiPageList:
        """A part of the pages of a bank, oldest first, without their links."""
        chosen = None if kind is None else keywords.choice(PageKind, kind, "kind")
        request = requests.ListPages(bank_id, chosen, scope, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)

    async def search_pages(
        self, bank_id: str, query: str, *, max_results: int = 0, context: AstrocyteContext | None = None
    ) -> list[PageHit]:
        """The pages that are relevant to a query, best first, each with its best section."""
        return await self._backend.call(keywords.caller_of(context), requests.SearchPages(bank_id, query, max_results))

    async def list_page_revisions(
        self,
        bank_id: str,
        page_id: str,
        *,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> RevisionPage:
        """A part of a page's revisions, newest first."""
        request = requests.ListPageRevisions(bank_id, page_id, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)

    async def lint_pages(
        self, bank_id: str, *, page_size: int = 0, page_token: str = "", context: AstrocyteContext | None = None
    ) -> PageFindings:
        """The problems of ``page_size`` pages, by age; each call examines the next ones."""
        request = requests.LintPages(bank_id, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)
