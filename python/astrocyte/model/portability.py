"""Export and import of banks: values of requests and results."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OnConflict(StrEnum):
    """The action on a memory of an archive that the bank has already: keep the bank's, take the archive's, refuse."""

    SKIP = "skip"
    OVERWRITE = "overwrite"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ArchiveCursor:
    """A place in an archive after all lines of a memory, from which an export goes on.

    ``position`` is that of the bank in the header. ``lines`` and ``memories`` count the lines before, and the memories
    among them. ``digest`` is the chained SHA-256 of the lines, 32 bytes.
    """

    position: int
    memory_id: str
    lines: int
    memories: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A memory of an archive that was not stored, by the line of its first version, from 1.

    Of other rows, ``memory_id`` is the id or the name.
    """

    line: int
    memory_id: str
    error: str


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The counts of an import, in memories. ``failures`` has the first 100 of the errors, of all kinds of rows.

    ``overwritten`` and ``forgotten`` are of ``on_conflict`` overwrite: memories that have another version, and memories
    that the archive's bank had forgotten. ``grants`` counts the grants that were given; ``observations``,
    ``mental_models``, ``directives``, ``wiki_pages``, ``entities`` and ``links`` the rows that are new or changed, and
    ``kept`` those of these six that the bank kept as it had them. ``left_out`` counts rows of sections that were not
    asked for.
    """

    imported: int = 0
    skipped: int = 0
    errors: int = 0
    overwritten: int = 0
    forgotten: int = 0
    grants: int = 0
    failures: tuple[ImportFailure, ...] = ()
    observations: int = 0
    mental_models: int = 0
    directives: int = 0
    entities: int = 0
    links: int = 0
    kept: int = 0
    left_out: int = 0
    wiki_pages: int = 0


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """The state of an import. ``total_memories`` is 0 until the whole archive has been verified.

    The last one has the result.
    """

    received_bytes: int = 0
    memories: int = 0
    total_memories: int = 0
    result: ImportResult | None = None
