"""Files of archives: export into a file, import out of one, and the folders in which such files may be.

The same for a backend in this process and for a server's: the files are this process's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from astrocyte.api import Backend
from astrocyte.api.requests import OPTIONAL_PARTS, ExportBank, ImportBank
from astrocyte.config.interfaces.portability import ROOTS_VARIABLE, portability_roots
from astrocyte.errors import ValidationError
from astrocyte.model import ArchiveCursor, Caller, ImportProgress, ImportResult, OnConflict
from astrocyte.pipelines.portability.archive import FOOTER_KEY, VERSION_KEY, cursor_of, parsed, parts_of

# Beside the file, while it is not complete.
PARTIAL_SUFFIX = ".partial"
READ_BYTES = 128 * 1_024
# The footer is a short line.
FOOTER_BYTES = 4_096
# The begin of the line of a version.
MEMORY_PREFIX = b'{"section":"memories","id":"'

# Called with the memories so far and those in all, 0 where that is not known.
Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """The result of an export: memories and bytes of the archive."""

    memories: int
    bytes: int


def contained(
    path: str | Path, *, allowed_roots: Sequence[str | Path] | None = None, allow_uncontained: bool = False
) -> Path:
    """The path with all links followed, if it is in one of the allowed folders.

    Args:
        path: Of a file.
        allowed_roots: Folders; None takes those of ``ASTROCYTE_PORTABILITY_ROOTS``.
        allow_uncontained: Allow any path, where neither names a folder.

    Raises:
        ValueError: The path is outside, or nothing says what is allowed.
    """
    text = os.fspath(path)
    if not text or any(unicodedata.category(sign) == "Cc" for sign in text):
        raise ValueError(f"path: expected the name of a file without control characters, got {ascii(text)[:80]}")
    resolved = Path(text).resolve()
    roots = portability_roots() if allowed_roots is None else list(allowed_roots)
    if not roots:
        if allow_uncontained:
            return resolved
        raise ValueError(
            f"path: no folder is allowed for archives; set {ROOTS_VARIABLE}, pass allowed_roots=[...], or, for trusted "
            "callers, allow_uncontained=True"
        )
    if not any(resolved.is_relative_to(Path(root).resolve()) for root in roots):
        raise ValueError(f"path: {text!r} is outside the folders that are allowed for archives")
    return resolved


async def export_file(
    backend: Backend,
    caller: Caller,
    request: ExportBank,
    path: Path,
    *,
    resume: bool = False,
    report: Report | None = None,
) -> ExportedFile:
    """Export a bank into a file, which appears when it is complete.

    Args:
        backend: Answers the export.
        caller: Who exports.
        request: The bank, and the parts of the archive.
        path: The file; an existing one is replaced. Until it is complete its name ends with ``.partial``.
        resume: Go on with the partial file of an interrupted export that had the same parts.
        report: Called as the export goes on.

    Raises:
        ValidationError: The partial file is not that of such an export.
        OSError: The file cannot be written.
    """
    partial = path.with_name(path.name + PARTIAL_SUFFIX)
    work = asyncio.to_thread
    cursor = await work(_cut, partial, request) if resume and partial.exists() else None
    with await work(_opened, partial, cursor) as file:
        counting = _Counting(0 if cursor is None else cursor.memories, report)
        async with aclosing(backend.stream(caller, replace(request, resume_after=cursor))) as parts:  # type: ignore[type-var]
            async for part in parts:
                await work(file.write, part)
                counting.add(part)
        size = await work(_synced, file)
    memories = await work(_complete, partial)
    await work(partial.replace, path)
    return ExportedFile(memories, size)


async def import_file(  # noqa: PLR0913 - an import and its file
    backend: Backend,
    caller: Caller,
    bank_id: str,
    path: Path,
    *,
    on_conflict: OnConflict = OnConflict.SKIP,
    sections: Collection[str] = (),
    report: Callable[[ImportProgress], Awaitable[None] | None] | None = None,
) -> ImportResult:
    """Import an archive out of a file.

    Args:
        backend: Answers the import.
        caller: Who imports.
        bank_id: The bank.
        path: The file.
        on_conflict: The action on memories that the bank has.
        sections: Sections beside the memories that are stored, out of `OPTIONAL_PARTS`.
        report: Called as the import goes on.

    Raises:
        OSError: The file cannot be read.
        AstrocyteError: See `ImportBank`.
    """
    with path.open("rb") as file:
        wanted = {f"include_{part}": part in sections for part in OPTIONAL_PARTS}
        request = ImportBank(bank_id, _pieces(file), on_conflict, **wanted)
        return await imported(backend, caller, request, report)


async def imported(
    backend: Backend,
    caller: Caller,
    request: ImportBank,
    report: Callable[[ImportProgress], Awaitable[None] | None] | None = None,
) -> ImportResult:
    """The result of an import, with reports on the way."""
    result = ImportResult()
    async with aclosing(backend.stream(caller, request)) as states:  # type: ignore[type-var]  # a generator
        async for state in states:
            if report is not None:
                waiting = report(state)
                if waiting is not None:
                    await waiting
            result = state.result or result
    return result


def is_archive(path: Path) -> bool:
    """True if a file begins with the header of an archive, of whatever version."""
    if not path.is_file():
        return False
    with path.open("rb") as file, contextlib.suppress(ValidationError):
        return VERSION_KEY in parsed(file.readline(READ_BYTES), 1)
    return False


class _Counting:
    """Counts the memories of an archive as it comes, for reports."""

    def __init__(self, memories: int, report: Report | None) -> None:
        self._memories = memories
        self._total = 0
        self._report = report
        self._rest = b""
        self._last = b""

    def add(self, part: bytes) -> None:
        """Look at the next bytes."""
        if self._report is None:
            return
        *lines, self._rest = (self._rest + part).split(b"\n")
        for line in lines:
            # Only the beginning is looked at: lines with vectors are long.
            if line.startswith(MEMORY_PREFIX):
                memory_id = line[len(MEMORY_PREFIX) : line.find(b'"', len(MEMORY_PREFIX))]
                self._memories += memory_id != self._last
                self._last = memory_id
            elif line.startswith(b'{"_ama_version"'):
                self._total = parsed(line, 1).get("memory_count", 0)
        self._report(self._memories, self._total)


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, READ_BYTES):
        yield piece


def _opened(partial: Path, cursor: ArchiveCursor | None) -> BinaryIO:
    """The partial file, to go on with or to begin; readable by its owner alone."""
    flags = (
        os.O_WRONLY | os.O_CREAT | (os.O_APPEND if cursor is not None else os.O_TRUNC) | getattr(os, "O_NOFOLLOW", 0)
    )
    return os.fdopen(os.open(partial, flags, 0o600), "ab" if cursor is not None else "wb")


def _cut(partial: Path, request: ExportBank) -> ArchiveCursor | None:
    """Cut a partial file after the last complete memory; returns the place, None where there is none."""
    with partial.open("rb") as file:
        _check_parts(file.readline(READ_BYTES), request)
        file.seek(0)
        cursor = cursor_of(_complete_lines(file))
        if cursor is None:
            return None
        file.seek(0)
        for _ in range(cursor.lines):
            file.readline()
        end = file.tell()
    os.truncate(partial, end)
    return cursor


def _check_parts(head: bytes, request: ExportBank) -> None:
    values = parsed(head, 1) if head.endswith(b"\n") else {}
    parts = parts_of(request)
    wanted = {
        "bank_id": request.bank_id,
        "embeddings": parts.embeddings,
        "entities": parts.entities,
        "versions": parts.versions,
        "sections": parts.sections,
    }
    if values and any(values.get(key) != value for key, value in wanted.items()):
        raise ValidationError(
            "the partial file is of another bank, or has other parts; remove it, or do not resume", field="resume"
        )


def _complete_lines(file: BinaryIO) -> Iterable[bytes]:
    for line in file:
        if not line.endswith(b"\n"):
            return
        yield line


def _synced(file: BinaryIO) -> int:
    file.flush()
    os.fsync(file.fileno())
    return os.fstat(file.fileno()).st_size


def _complete(partial: Path) -> int:
    """The count in the footer of a complete file.

    Raises:
        ValidationError: There is no footer: the export ended early.
    """
    with partial.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - FOOTER_BYTES))
        *_, last = file.read().split(b"\n")[:-1] or [b""]
    with contextlib.suppress(ValidationError):
        values = parsed(last, 1)
        if FOOTER_KEY in values:
            return int(values["memory_count"])
    raise ValidationError("ended without a footer; resume the export", field="archive")
