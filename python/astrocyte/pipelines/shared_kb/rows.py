"""Rows of shared documents as metadata of memories.

A row is an ordinary memory with the tag `TAG`. Its metadata says of which file it is a part, so that access, holds,
barriers, erasure, history and archives treat it as any other memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from astrocyte.model import KbDocument, MetadataValue

TAG = "shared_kb"
COMPONENT_TYPE = "component"
# Row of a file's text, or of its first part.
FIRST_ROW = "1"
COMPONENT_ROW = "component:"
# A name of a component is one line.
SEPARATOR = "\n"

FOLDER, PATH, TYPE, STATUS = "kb_folder", "kb_path", "kb_type", "kb_status"
DOCUMENT_ID, TITLE, DATE, SUMMARY, DEPENDS_ON = "kb_id", "kb_title", "kb_date", "kb_summary", "kb_depends_on"
ROW, ROW_COUNT = "kb_row", "kb_rows"
PATH_HASH, FILE_HASH, TEXT_HASH = "kb_path_hash", "kb_file_hash", "kb_text_hash"


def metadata_of(document: KbDocument) -> dict[str, MetadataValue]:
    """The metadata of a document's memory; empty fields are left out."""
    values: dict[str, MetadataValue] = {
        FOLDER: document.folder,
        PATH: document.path,
        TYPE: document.type,
        STATUS: document.status,
        DOCUMENT_ID: document.document_id,
        TITLE: document.title,
        DATE: document.date,
        SUMMARY: document.summary,
        DEPENDS_ON: SEPARATOR.join(document.depends_on),
        ROW: document.row,
        ROW_COUNT: document.row_count,
        PATH_HASH: document.path_hash,
        FILE_HASH: document.file_hash,
        TEXT_HASH: document.text_hash,
    }
    return {key: value for key, value in values.items() if value != ""}


def document_of(
    memory_id: str, metadata: Mapping[str, MetadataValue], updated_at: datetime | None
) -> KbDocument | None:
    """The document of a memory, or None if it is not one: anyone who may write can tag a memory."""

    def text(key: str) -> str:
        value = metadata.get(key, "")
        return value if isinstance(value, str) else ""

    count = metadata.get(ROW_COUNT)
    needed = (text(FOLDER), text(PATH), text(TYPE), text(ROW), text(PATH_HASH), text(FILE_HASH))
    # The wire has 32 bits for the count.
    if not all(needed) or isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < 1 << 31:
        return None
    return KbDocument(
        memory_id=memory_id,
        folder=text(FOLDER),
        path=text(PATH),
        type=text(TYPE),
        document_id=text(DOCUMENT_ID),
        title=text(TITLE),
        status=text(STATUS),
        date=text(DATE),
        summary=text(SUMMARY),
        depends_on=tuple(name for name in text(DEPENDS_ON).split(SEPARATOR) if name),
        row=text(ROW),
        row_count=count,
        path_hash=text(PATH_HASH),
        file_hash=text(FILE_HASH),
        text_hash=text(TEXT_HASH),
        updated_at=updated_at,
    )
