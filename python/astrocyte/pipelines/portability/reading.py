"""Records out of the lines of an archive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from astrocyte.errors import ValidationError
from astrocyte.model import ArchiveReason, Entity, RetainItem
from astrocyte.pipelines.portability.archive import (
    DIRECTIVES,
    FORGOTTEN,
    GRANTS,
    GRAPH_ENTITIES,
    GRAPH_LINKS,
    MEMORIES,
    MENTAL_MODELS,
    OBSERVATIONS,
    WIKI_PAGES,
)
from astrocyte.pipelines.portability.graph_lines import ArchivedGraphRow, entity_of, link_of
from astrocyte.pipelines.portability.knowledge_lines import ArchivedRevision, revision_of
from astrocyte.pipelines.portability.line_values import SHOWN_CHARS, ArchivedChunk, LineValues, own_id
from astrocyte.stores.knowledge.items import ItemKind

# Keys of a version. Those of version 1 of the format are the first ones.
PLAIN_KEYS = frozenset(
    {
        "id", "text", "fact_type", "tags", "metadata", "occurred_at", "source", "bank_id", "created_at", "entities",
        "embedding",
    }
)  # fmt: skip
VERSION_KEYS = (PLAIN_KEYS - {"bank_id"}) | {
    "section", "version", "content_type", "memory_layer", "principal", "known_from", "known_until", "valid_from",
    "valid_until", "session_id", "speaker", "embedding_model", "chunks", "archived_at", "archive_reason", "merged_into",
}  # fmt: skip
TOMBSTONE_KEYS = frozenset({"section", "id", "forgotten_at"})
GRANT_KEYS = frozenset({"section", "principal", "permissions"})


@dataclass(slots=True)
class ArchivedVersion:
    """A version of a memory out of an archive. ``entities`` None: the archive has none, and they are extracted anew.

    Times are milliseconds since the epoch; None is the time of the import. ``model`` names the space of the vectors;
    empty: there are none.
    """

    line: int
    memory_id: str
    version: int
    item: RetainItem
    memory_layer: str | None = None
    principal: str | None = None
    retained_at: int | None = None
    known_from: int | None = None
    known_until: int | None = None
    archived_at: int | None = None
    archive_reason: str | None = None
    merged_into: str | None = None
    entities: tuple[Entity, ...] | None = None
    model: str = ""
    vector: bytes | None = None
    chunks: tuple[ArchivedChunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A memory that the archive's bank had forgotten."""

    memory_id: str


@dataclass(frozen=True, slots=True)
class ArchivedGrant:
    """A grant on the archive's bank."""

    principal: str
    permissions: tuple[str, ...]


Record = ArchivedVersion | Tombstone | ArchivedGrant | ArchivedGraphRow | ArchivedRevision


def plain_record(values: Mapping[str, Any], line: int, provider: str) -> ArchivedVersion:
    """A memory of version 1 of the format.

    Its vector names no model, so it is not used.

    Raises:
        ValidationError: A value has another type; ``field`` is its key.
    """
    read = LineValues(values, PLAIN_KEYS)
    memory_id, metadata = read.identity()
    return ArchivedVersion(
        line=line,
        memory_id=memory_id,
        version=1,
        item=RetainItem(
            content=read.text("text"),
            metadata=metadata,
            tags=read.texts("tags"),
            occurred_at=read.time("occurred_at"),
            source=read.optional("source") or f"import:ama:{provider}",
            fact_type=read.optional("fact_type"),
        ),
        retained_at=read.milliseconds("created_at"),
        entities=read.entities("entities"),
    )


def record_of(values: Mapping[str, Any], line: int) -> Record:
    """The record of a line.

    Raises:
        ValidationError: A key is unknown, or a value has another type; ``field`` is the key.
    """
    section = values.get("section")
    read = _READERS.get(section) if isinstance(section, str) else None
    if read is None:
        raise ValidationError(
            f"expected one of {', '.join(_READERS)}, got {ascii(section)[:SHOWN_CHARS]}; "
            "a newer version may have written the archive",
            field="section",
        )
    return read(values, line)


def _version(values: Mapping[str, Any], line: int) -> ArchivedVersion:
    read = LineValues(values, VERSION_KEYS)
    memory_id, metadata = read.identity()
    made = ArchivedVersion(
        line=line,
        memory_id=memory_id,
        version=read.integer("version", 1),
        item=RetainItem(
            content=read.text("text"),
            content_type=read.text("content_type"),
            metadata=metadata,
            tags=read.texts("tags"),
            occurred_at=read.time("occurred_at"),
            valid_from=read.time("valid_from"),
            valid_until=read.time("valid_until"),
            source=read.optional("source"),
            session_id=read.optional("session_id"),
            speaker=read.optional("speaker"),
            fact_type=read.optional("fact_type"),
        ),
        memory_layer=read.optional("memory_layer"),
        principal=read.optional("principal"),
        retained_at=read.milliseconds("created_at"),
        known_from=read.milliseconds("known_from"),
        known_until=read.milliseconds("known_until"),
        archived_at=read.milliseconds("archived_at"),
        archive_reason=read.optional("archive_reason"),
        merged_into=read.optional("merged_into"),
        entities=read.entities("entities"),
    )
    _check_archived(made)
    if "embedding_model" in values:
        made.model = read.text("embedding_model")
        made.vector = read.vector("embedding")
        made.chunks = read.chunks("chunks")
    return made


def _check_archived(version: ArchivedVersion) -> None:
    """Check what a version says of its archiving.

    Raises:
        ValidationError: Its reason is none, or a merged memory names no other one, or the version is not archived.
    """
    archived, reason = version.archived_at is not None, version.archive_reason
    if archived != (reason is not None) or (reason is not None and reason not in {one.value for one in ArchiveReason}):
        raise ValidationError(
            f"expected one of {', '.join(ArchiveReason)} beside archived_at, got {ascii(reason)[:SHOWN_CHARS]}",
            field="archive_reason",
        )
    if (version.merged_into is not None) != (reason == ArchiveReason.MERGED.value):
        raise ValidationError("is set of a merged memory, and of no other one", field="merged_into")
    if version.merged_into is not None:
        version.merged_into = own_id(version.merged_into)


def _tombstone(values: Mapping[str, Any], _: int) -> Tombstone:
    read = LineValues(values, TOMBSTONE_KEYS)
    read.time("forgotten_at")
    return Tombstone(own_id(read.text("id")))


def _grant(values: Mapping[str, Any], _: int) -> ArchivedGrant:
    read = LineValues(values, GRANT_KEYS)
    return ArchivedGrant(read.text("principal"), read.texts("permissions"))


# By section. A new section is a row here, its lines in `archive`, and its step in the import.
_READERS: Mapping[str, Callable[[Mapping[str, Any], int], Record]] = {
    MEMORIES: _version,
    FORGOTTEN: _tombstone,
    GRANTS: _grant,
    GRAPH_ENTITIES: entity_of,
    GRAPH_LINKS: link_of,
    OBSERVATIONS: partial(revision_of, ItemKind.OBSERVATION),
    MENTAL_MODELS: partial(revision_of, ItemKind.MENTAL_MODEL),
    DIRECTIVES: partial(revision_of, ItemKind.DIRECTIVE),
    WIKI_PAGES: partial(revision_of, ItemKind.WIKI_PAGE),
}
