"""The part of the Python API on shared knowledge: documents of a bank that all agents read."""

from __future__ import annotations

from pathlib import Path

from astrocyte.api import Backend, requests
from astrocyte.facade import keywords
from astrocyte.model import AstrocyteContext, KbIndex, KbPage, KbSearchResult
from astrocyte.shared_kb.indexer import FolderIndexer, Progress
from astrocyte.shared_kb.report import KbReport

__all__ = ["DEFAULT_BANK", "FolderIndexer", "KbReport", "SharedKnowledge"]

# The bank of shared documents where a call names none.
DEFAULT_BANK = "shared_kb"


class SharedKnowledge:
    """The calls of `Astrocyte` on shared documents. Empty ``type``, ``status`` and ``folder`` are any."""

    _backend: Backend

    async def shared_kb_search(  # noqa: PLR0913 - a query and its filters
        self,
        query: str,
        bank_id: str = DEFAULT_BANK,
        *,
        type: str = "",  # noqa: A002 - the name on the wire
        status: str = "",
        folder: str = "",
        max_results: int = 0,
        context: AstrocyteContext | None = None,
    ) -> KbSearchResult:
        """The documents that are relevant to a query, best first, each with its best passage.

        Args:
            query: Question or keywords.
            bank_id: The bank; "" for all banks of ``agent_memory.shared_banks`` that the caller may read.
            type: Only documents of this type, such as ``spec`` or ``adr``.
            status: Only documents of this status, such as ``approved``.
            folder: Only documents of this folder.
            max_results: Number of documents, up to 100; 0 is 10.
            context: Who calls.
        """
        request = requests.SearchSharedKb(bank_id, query, type, status, folder, max_results)
        return await self._backend.call(keywords.caller_of(context), request)

    async def shared_kb_list(  # noqa: PLR0913 - a filter and a page
        self,
        bank_id: str = DEFAULT_BANK,
        *,
        type: str = "",  # noqa: A002 - the name on the wire
        status: str = "",
        folder: str = "",
        include_rows: bool = False,
        page_size: int = 0,
        page_token: str = "",
        context: AstrocyteContext | None = None,
    ) -> KbPage:
        """A page of documents; ``type="component"`` lists the components of the topology."""
        request = requests.ListSharedKb(bank_id, type, status, folder, include_rows, page_size, page_token)
        return await self._backend.call(keywords.caller_of(context), request)

    async def shared_kb_index(
        self,
        bank_id: str = DEFAULT_BANK,
        *,
        type: str = "",  # noqa: A002 - the name on the wire
        status: str = "",
        folder: str = "",
        context: AstrocyteContext | None = None,
    ) -> KbIndex:
        """The index of the documents as Markdown."""
        request = requests.GetSharedKbIndex(bank_id, type, status, folder)
        return await self._backend.call(keywords.caller_of(context), request)

    async def shared_kb_index_folder(
        self,
        root: str | Path,
        bank_id: str = DEFAULT_BANK,
        *,
        folder: str = "",
        allow_empty: bool = False,
        progress: Progress | None = None,
        context: AstrocyteContext | None = None,
    ) -> KbReport:
        """Make the documents of a bank equal to the Markdown files of a folder of this machine.

        Args:
            root: The folder.
            bank_id: The bank.
            folder: Name of the folder in the bank; "" for its own. Documents of other names are left alone.
            allow_empty: Remove all documents of the folder if it has no file.
            progress: Called with the number of files that are done, and of those to be done.
            context: Who calls.

        Raises:
            NotADirectoryError: ``root`` is no folder.
            ValueError: The folder has more than 10,000 files or 256 MiB; nothing was changed.
            ValidationError: The folder has no file, and the bank has some of it.
        """
        indexer = FolderIndexer(self._backend, keywords.caller_of(context), bank_id, Path(root), folder)
        return await indexer.run(progress, allow_empty=allow_empty)
