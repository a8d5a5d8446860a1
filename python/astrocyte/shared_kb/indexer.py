"""Indexing: makes the shared documents of a bank equal to a folder, by ordinary calls."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from astrocyte.api import Backend
from astrocyte.api.requests import Forget, ListSharedKb, StreamRetain, UpdateMemory
from astrocyte.errors import (
    AccessDenied,
    AstrocyteError,
    BankNotFound,
    ProviderUnavailable,
    RateLimited,
    StoreError,
    ValidationError,
)
from astrocyte.model import (
    Caller,
    ContentType,
    DedupAction,
    ForgetSelector,
    KbDocument,
    MemoryUpdate,
    RetainItem,
    RetainResult,
)
from astrocyte.pipelines.shared_kb.rows import metadata_of
from astrocyte.shared_kb.documents import Row, rows_of
from astrocyte.shared_kb.folder import Folder, Survey
from astrocyte.shared_kb.plan import Plan, plan_of
from astrocyte.shared_kb.report import KbReport

# A server takes 1,000 documents in a page and ids in a Forget, unless its settings say less.
PAGE_SIZE = 1_000
FORGOTTEN_AT_ONCE = 1_000
# Rows and bytes of one stream: several commits, and no more than a server holds for a caller.
ROWS_AT_ONCE = 128
BYTES_AT_ONCE = 1 << 20
# A source has at most 256 characters; the metadata has the whole path.
MOST_SOURCE_CHARS = 256
# The wire has 64 characters for the name of a folder, which has to be a part of the metadata.
MOST_FOLDER_CHARS = 64
# Reasons that would stop every other file too.
HOPELESS = (AccessDenied, ProviderUnavailable, RateLimited, StoreError)

Progress = Callable[[int, int], None]


class FolderIndexer:
    """Indexes one folder into one bank.

    Args:
        backend: Does the calls.
        caller: Who calls: needs read and write, and forget for files that are gone or became shorter.
        bank_id: The bank. It is created by the first file, if the settings allow it.
        root: The folder.
        name: Name of the folder in the bank; "" for that of the folder. Files of other names are left alone.

    Raises:
        NotADirectoryError: ``root`` is no folder.
        ValidationError: ``name`` is not 1 to 64 printable characters.
    """

    def __init__(self, backend: Backend, caller: Caller, bank_id: str, root: Path, name: str = "") -> None:
        self._backend = backend
        self._caller = caller
        self._bank_id = bank_id
        self.folder = Folder(root)
        self.name = name or self.folder.root.name
        if not 1 <= len(self.name) <= MOST_FOLDER_CHARS or not self.name.isprintable():
            raise ValidationError(
                f"expected 1 to {MOST_FOLDER_CHARS} printable characters, got {self.name!r:.80}", field="folder"
            )

    async def run(self, progress: Progress | None = None, *, allow_empty: bool = False) -> KbReport:
        """Make the bank equal to the folder.

        Args:
            progress: Called with the number of files that are done, and of those to be done.
            allow_empty: Remove all documents if the folder has no file.

        Raises:
            FolderTooLargeError: The folder has more than can be indexed; nothing was changed.
            ValidationError: The folder has no file, and the bank has some of it.
            AstrocyteError: A call failed for a reason that would stop every file.
        """
        survey = await asyncio.to_thread(self.folder.survey)
        stored = await self._stored()
        if stored and not survey.hashes and not survey.problems and not allow_empty:
            raise ValidationError(
                f"{self.folder.root} has no Markdown file, and bank {self._bank_id!r} has {len(stored)} rows of "
                f"{self.name!r}; allow an empty folder to remove them",
                field="folder",
            )
        plan = plan_of(self.name, survey.hashes, survey.problems, stored)
        report = KbReport(unchanged=plan.unchanged, ignored=tuple(survey.ignored), failures=dict(survey.problems))
        await _Work(self, plan, survey, report, progress).run()
        return report

    async def _stored(self) -> list[KbDocument]:
        """The bank's rows of the folder."""
        found: list[KbDocument] = []
        token = ""
        while True:
            request = ListSharedKb(
                self._bank_id, folder=self.name, include_rows=True, page_size=PAGE_SIZE, page_token=token
            )
            try:
                page = await self._backend.call(self._caller, request)
            except BankNotFound:
                return []
            found.extend(page.documents)
            token = page.next_page_token
            if not token:
                return found

    def rows(self, path: str) -> tuple[Row, ...]:
        """The rows of a file as it is now.

        Raises:
            OSError: It cannot be read any more.
            ValueError: It is too large, not UTF-8, or its front matter is wrong.
        """
        text, file_hash = self.folder.text(path)
        return rows_of(self.name, path, text, file_hash)

    async def update(self, row: Row, known: KbDocument) -> None:
        """Make a memory that row; its text is embedded again only if it changed."""
        fields = {"tags", "metadata", "source", "occurred_at"}
        if row.document.text_hash != known.text_hash:
            fields.add("content")
        update = MemoryUpdate(
            known.memory_id,
            frozenset(fields),
            content=row.text if "content" in fields else "",
            tags=row.tags,
            metadata=metadata_of(row.document),
            source=row.document.path[-MOST_SOURCE_CHARS:],
            occurred_at=row.occurred_at,
        )
        await self._backend.call(self._caller, UpdateMemory(self._bank_id, update))

    async def retain(self, rows: Sequence[tuple[Row, str]]) -> Sequence[RetainResult | AstrocyteError]:
        """Store rows, each with the session of its file."""
        items = [
            RetainItem(
                row.text,
                content_type=ContentType.DOCUMENT,
                metadata=metadata_of(row.document),
                tags=row.tags,
                occurred_at=row.occurred_at,
                source=row.document.path[-MOST_SOURCE_CHARS:],
                session_id=session,
                # Two files are two documents, however alike they are.
                dedup_action=DedupAction.WARN,
            )
            for row, session in rows
        ]
        return await self._backend.call(self._caller, StreamRetain(self._bank_id, items))

    async def forget(self, rows: Iterable[KbDocument]) -> None:
        """Forget rows."""
        ids = [row.memory_id for row in rows]
        for start in range(0, len(ids), FORGOTTEN_AT_ONCE):
            selector = ForgetSelector(memory_ids=tuple(ids[start : start + FORGOTTEN_AT_ONCE]))
            await self._backend.call(self._caller, Forget(self._bank_id, selector, reason="shared document is gone"))


class _Work:
    """One run: the files of a plan, and what became of them."""

    def __init__(
        self, indexer: FolderIndexer, plan: Plan, survey: Survey, report: KbReport, progress: Progress | None
    ) -> None:
        self._indexer = indexer
        self._plan = plan
        self._survey = survey
        self._report = report
        self._progress = progress
        self._total = len(plan.created) + len(plan.updated) + len(plan.moved) + len(plan.removed)
        self._done = 0

    async def run(self) -> None:
        """Moves first: a file that is found under both paths for a moment is better than one under none."""
        for path, known in self._plan.moved.items():
            await self._change(path, known, "moved")
        for path, known in self._plan.updated.items():
            await self._change(path, known, "updated")
        await self._create(self._plan.created)
        for path, known in self._plan.removed.items():
            await self._remove(path, known)

    async def _change(self, path: str, known: Sequence[KbDocument], outcome: str) -> None:
        """Change the rows of a file: each row of the same name is updated, the others are stored or forgotten."""
        rows = self._read(path)
        if rows is not None:
            try:
                surplus = list(known)
                fresh = []
                for row in rows:
                    same = next((one for one in surplus if one.row == row.document.row), None)
                    if same is None:
                        fresh.append(row)
                        continue
                    surplus.remove(same)
                    await self._indexer.update(row, same)
                await self._store(fresh)
                await self._indexer.forget(surplus)
            except AstrocyteError as error:
                self._fail(path, error)
            else:
                self._count(path, outcome if rows else "removed")
        self._step(1)

    async def _store(self, rows: Sequence[Row]) -> None:
        """Store further rows of a file.

        Raises:
            AstrocyteError: One was not stored.
        """
        session = _session()
        if rows:
            for outcome in await self._indexer.retain([(row, session) for row in rows]):
                if (problem := _problem(outcome)) is not None:
                    raise problem

    async def _create(self, paths: Sequence[str]) -> None:
        """Store new files, several to a stream."""
        waiting: list[tuple[str, Row, str]] = []
        size = 0
        for path in paths:
            rows = self._read(path)
            if not rows:
                self._step(1)
                continue
            session = _session()
            waiting += [(path, row, session) for row in rows]
            size += sum(len(row.text.encode()) for row in rows)
            if len(waiting) >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
                await self._send(waiting)
                waiting, size = [], 0
        await self._send(waiting)

    async def _send(self, waiting: Sequence[tuple[str, Row, str]]) -> None:
        if not waiting:
            return
        outcomes = await self._indexer.retain([(row, session) for _, row, session in waiting])
        failed: dict[str, AstrocyteError] = {}
        for (path, _, _), outcome in zip(waiting, outcomes, strict=True):
            if (problem := _problem(outcome)) is not None:
                failed.setdefault(path, problem)
        paths = list(dict.fromkeys(path for path, _, _ in waiting))
        for path in paths:
            if path in failed:
                self._fail(path, failed[path])
            else:
                self._count(path, "created")
        self._step(len(paths))

    async def _remove(self, path: str, known: Sequence[KbDocument]) -> None:
        try:
            await self._indexer.forget(known)
        except AstrocyteError as error:
            self._fail(path, error)
        else:
            self._count(path, "removed")
        self._step(1)

    def _read(self, path: str) -> tuple[Row, ...] | None:
        """The rows of a file; None if it cannot be read, which is noted."""
        try:
            rows = self._indexer.rows(path)
        except OSError as error:
            self._report.failures[path] = error.strerror or "cannot be read"
        except ValueError as error:
            self._report.failures[path] = str(error)
        else:
            if not rows:
                self._report.ignored = (*self._report.ignored, path)
            return rows
        return None

    def _fail(self, path: str, error: AstrocyteError) -> None:
        """Note why a file was not indexed; give up where every other one would fail too."""
        if isinstance(error, HOPELESS):
            raise error
        self._report.failures[path] = str(error)

    def _count(self, path: str, outcome: str) -> None:
        if path not in self._report.failures:
            setattr(self._report, outcome, getattr(self._report, outcome) + 1)

    def _step(self, files: int) -> None:
        self._done += files
        if self._progress is not None:
            self._progress(self._done, self._total)


def _session() -> str:
    """A session of one file: its parts are neighbours, and no other file is the same memory."""
    return f"kb:{uuid.uuid4().hex}"


def _problem(outcome: RetainResult | AstrocyteError) -> AstrocyteError | None:
    if isinstance(outcome, AstrocyteError):
        return outcome
    if outcome.memory_id is None:
        return ValidationError(outcome.error or "was not stored", field="content")
    return None
