"""Requests about archives of banks."""

from __future__ import annotations

from collections.abc import AsyncIterable
from dataclasses import dataclass

from astrocyte.api.requests.base import StreamRequest
from astrocyte.model import ArchiveCursor, ImportProgress, OnConflict

# Sections beside the memories: a request stores or exports those whose field ``include_…`` is true.
OPTIONAL_PARTS = ("grants", "graph", "observations", "mental_models", "directives", "wiki_pages")


@dataclass(slots=True)
class ExportBank(StreamRequest[bytes]):
    """The bank as an archive, in parts cut anywhere; docs/export-import.md has the format.

    The archive shows the bank at the position in its header. What was forgotten since is left out, and forgotten
    memories are ids alone. ``resume_after`` goes on with an interrupted export that has the same parts.

    Raises:
        ValidationError: ``resume_after`` names a position that the bank has not reached.
    """

    bank_id: str
    include_embeddings: bool = False
    omit_entities: bool = False
    omit_versions: bool = False
    omit_forgotten: bool = False
    include_grants: bool = False
    resume_after: ArchiveCursor | None = None
    include_graph: bool = False
    include_observations: bool = False
    include_mental_models: bool = False
    include_directives: bool = False
    include_wiki_pages: bool = False


@dataclass(slots=True)
class ImportBank(StreamRequest[ImportProgress]):
    """Store an archive once all of it has been received and verified; the last answer has the result.

    ``archive`` yields its bytes, cut anywhere. A repeated import skips what the bank has. Of the sections beside the
    memories, those that the request includes are stored. On the wire the archive is a stream.

    Raises:
        ValidationError: The archive is truncated, was changed, or has another format; nothing was stored.
        AccessDenied: The archive has directives that are to be imported, and the caller may not write directives.
        AlreadyExists: ``on_conflict`` is error, and the bank has a memory of the archive; nothing was stored.
        LegalHoldActive: ``on_conflict`` is overwrite, and a hold covers a memory; nothing was stored.
        QuotaExceeded: The bank has no room for the archive; nothing was stored.
        LimitReached: The daily quota is used up; what was stored stays.
    """

    bank_id: str
    archive: AsyncIterable[bytes]
    on_conflict: OnConflict = OnConflict.SKIP
    include_grants: bool = False
    include_graph: bool = False
    include_observations: bool = False
    include_mental_models: bool = False
    include_directives: bool = False
    include_wiki_pages: bool = False
