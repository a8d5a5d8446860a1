"""Format of archives: lines of JSON (AMA JSONL).

The first line is the header, the last one the footer. Between them a line is a version of a memory, a tombstone, a
grant, or a row of what else a bank has; the key ``section`` names its kind. The lines are chained: the digest of a line
is the SHA-256 of the digest before it and the line with its line end. The footer has the counts and the last digest.

Version 1 is read too: a header, and one line for each memory, without sections and footer.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic_core import to_json

from astrocyte.api.requests import OPTIONAL_PARTS, ExportBank
from astrocyte.errors import ValidationError
from astrocyte.model import ArchiveCursor, Grant
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.stores.records import ChunkRecord, VersionRecord

VERSION_KEY = "_ama_version"
FOOTER_KEY = "_ama_footer"
VERSION = 2
# Without sections and footer.
PLAIN_VERSION = 1
MEMORIES, FORGOTTEN, GRANTS = "memories", "forgotten", "grants"
GRAPH_ENTITIES, GRAPH_LINKS = "graph_entities", "graph_links"
OBSERVATIONS, MENTAL_MODELS, DIRECTIVES = "observations", "mental_models", "directives"
WIKI_PAGES = "wiki_pages"
SECTIONS = (
    MEMORIES,
    FORGOTTEN,
    GRANTS,
    GRAPH_ENTITIES,
    GRAPH_LINKS,
    OBSERVATIONS,
    MENTAL_MODELS,
    DIRECTIVES,
    WIKI_PAGES,
)
# A line holds one version. The largest content with its chunks and vectors takes a few MB.
MOST_LINE_BYTES = 64 << 20
NO_DIGEST = bytes(32)


@dataclass(frozen=True, slots=True)
class Parts:
    """The optional parts of an archive."""

    embeddings: bool = False
    entities: bool = True
    versions: bool = True
    forgotten: bool = True
    grants: bool = False
    graph: bool = False
    observations: bool = False
    mental_models: bool = False
    directives: bool = False
    wiki_pages: bool = False

    @property
    def sections(self) -> list[str]:
        """The sections of the archive, in its order."""
        wanted = {
            MEMORIES: True,
            FORGOTTEN: self.forgotten,
            GRANTS: self.grants,
            GRAPH_ENTITIES: self.graph,
            GRAPH_LINKS: self.graph,
            OBSERVATIONS: self.observations,
            MENTAL_MODELS: self.mental_models,
            DIRECTIVES: self.directives,
            WIKI_PAGES: self.wiki_pages,
        }
        return [section for section in SECTIONS if wanted[section]]


def parts_of(request: ExportBank) -> Parts:
    """The parts that a request asks for."""
    return Parts(
        embeddings=request.include_embeddings,
        entities=not request.omit_entities,
        versions=not request.omit_versions,
        forgotten=not request.omit_forgotten,
        **{part: getattr(request, f"include_{part}") for part in OPTIONAL_PARTS},
    )


class Chain:
    """The digest of the lines so far, and their number."""

    def __init__(self, digest: bytes = NO_DIGEST, lines: int = 0) -> None:
        self.digest = digest
        self.lines = lines

    def add(self, line: bytes) -> None:
        """Add a line with its line end."""
        self.digest = hashlib.sha256(self.digest + line).digest()
        self.lines += 1


def line_of(values: Mapping[str, Any]) -> bytes:
    """A line with its line end."""
    return to_json(values) + b"\n"


def header(bank_id: str, parts: Parts, *, exported_at: datetime, provider: str, memories: int, position: int) -> bytes:
    """The first line. ``memories`` is an estimate, for progress: the footer has the count."""
    return line_of(
        {
            VERSION_KEY: VERSION,
            "bank_id": bank_id,
            "exported_at": exported_at.isoformat(),
            "provider": provider,
            "memory_count": memories,
            "position": position,
            "sections": parts.sections,
            "embeddings": parts.embeddings,
            "entities": parts.entities,
            "versions": parts.versions,
        }
    )


def footer(chain: Chain, memories: int) -> bytes:
    """The last line, about all lines before it."""
    return line_of({FOOTER_KEY: VERSION, "lines": chain.lines, "memory_count": memories, "sha256": chain.digest.hex()})


def version_line(record: VersionRecord, parts: Parts) -> bytes:
    """The line of a version; empty values are left out."""
    memory = record.memory
    retained = time_text(record.retained_at)
    values: dict[str, Any] = {
        "section": MEMORIES,
        "id": memory.memory_id,
        "version": record.version,
        "text": memory.content,
        "content_type": memory.content_type,
        "fact_type": memory.fact_type,
        "memory_layer": memory.memory_layer,
        "principal": memory.principal,
        "created_at": retained,
        "known_from": retained if record.known_from == record.retained_at else time_text(_begin(record)),
    }
    optional = {
        "known_until": None if record.archived_at is not None else time_text(record.known_until),
        "archived_at": time_text(record.archived_at),
        "archive_reason": record.archive_reason,
        "merged_into": record.merged_into,
        "occurred_at": time_text(memory.occurred_at),
        "valid_from": time_text(memory.valid_from),
        "valid_until": time_text(memory.valid_until),
        "tags": list(memory.tags),
        "metadata": dict(memory.metadata),
        "source": memory.source,
        "session_id": memory.session_id,
        "speaker": memory.speaker,
    }
    values |= {key: value for key, value in optional.items() if value not in (None, [], {})}
    if parts.entities:
        values["entities"] = [{"name": one.name, "type": one.entity_type} for one in memory.entities]
    if parts.embeddings:
        values["embedding_model"] = memory.model
        values["embedding"] = _vector(memory.vector)
        if memory.chunks:
            values["chunks"] = [_chunk(chunk) for chunk in memory.chunks]
    return line_of(values)


def _begin(record: VersionRecord) -> int:
    return record.known_from if record.archived_at is None else record.archived_at


def tombstone_line(memory_id: str, forgotten_at: int) -> bytes:
    """The line of a forgotten memory."""
    return line_of({"section": FORGOTTEN, "id": memory_id, "forgotten_at": time_text(forgotten_at)})


def grant_line(grant: Grant) -> bytes:
    """The line of a grant on the bank."""
    return line_of(
        {"section": GRANTS, "principal": grant.principal, "permissions": sorted(map(str, grant.permissions))}
    )


def cursor_of(lines: Iterable[bytes]) -> ArchiveCursor | None:
    """The place after the last memory that is surely complete in the lines of an interrupted export.

    The last memory may lack versions, so it is that before. None: the export begins anew.

    Raises:
        ValidationError: The lines are not those of an archive.
    """
    chain, position, memories = Chain(), 0, 0
    current, found = "", None
    for number, line in enumerate(lines, start=1):
        values = parsed(line, number)
        if number == 1:
            position = values.get("position", 0)
        elif values.get("section") != MEMORIES or values.get("id") != current:
            if current:
                memories += 1
                found = ArchiveCursor(position, current, chain.lines, memories, chain.digest)
            if values.get("section") != MEMORIES:
                break
            current = values.get("id", "")
        chain.add(line)
    return found


def parsed(line: bytes, number: int) -> dict[str, Any]:
    """The values of a line.

    Raises:
        ValidationError: It is no JSON object in UTF-8; the message says which line.
    """
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise wrong(f"line {number} is not a JSON object")
    return values


def wrong(problem: str) -> ValidationError:
    """The error of an archive that cannot be imported."""
    return ValidationError(f"{problem}; nothing was stored", field="archive")


def time_text(value: int | None) -> str | None:
    """Milliseconds since the epoch as ISO 8601; None stays None."""
    return None if value is None else from_ms(value).isoformat(timespec="milliseconds")


def _vector(vector: bytes | None) -> str | None:
    """Little-endian f32 as base64; None for text without a direction."""
    return None if vector is None else b64encode(vector).decode("ascii")


def _chunk(chunk: ChunkRecord) -> dict[str, Any]:
    return {"text": chunk.text, "embedding": _vector(chunk.vector)}
