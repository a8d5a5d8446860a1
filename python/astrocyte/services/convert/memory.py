"""Memories, and what retaining and updating them takes and answers."""

from __future__ import annotations

from typing import Any

from google.protobuf.field_mask_pb2 import FieldMask

from astrocyte.errors import ValidationError
from astrocyte.model import (
    ContentType,
    Curation,
    CurationAction,
    DedupAction,
    Entity,
    Memory,
    MemoryState,
    MemoryUpdate,
    RetainItem,
    RetainResult,
    RetentionAction,
)
from astrocyte.services.convert.media import decode_parts, encode_parts
from astrocyte.services.convert.values import (
    Choices,
    Reader,
    Refused,
    decode_embedding,
    decode_instant,
    decode_metadata,
    encode_embedding,
    encode_instant,
    encode_metadata,
    optional_instant,
    read,
    same,
)
from astrocyte.v1 import memory_pb2, types_pb2

CONTENT_TYPES = Choices("content_type", ContentType, types_pb2.ContentType, "CONTENT_TYPE_")
DEDUP_ACTIONS = Choices("dedup_action", DedupAction, memory_pb2.DedupAction, "DEDUP_ACTION_")
RETENTION_ACTIONS = Choices("retention_action", RetentionAction, memory_pb2.RetentionAction, "RETENTION_ACTION_")
CURATION_ACTIONS = Choices("action", CurationAction, memory_pb2.CurationAction, "CURATION_ACTION_")
STATES = Choices("state", MemoryState, types_pb2.MemoryState, "MEMORY_STATE_")

# Formats that the wire has numbers for; others go by name.
NUMBERED_TYPES: frozenset[str] = frozenset(ContentType)

ITEM_READERS: dict[str, Reader] = {
    "content": same,
    "content_type": CONTENT_TYPES.decode,
    "content_type_name": same,
    "metadata": decode_metadata,
    "tags": tuple,
    "occurred_at": decode_instant,
    "valid_from": decode_instant,
    "valid_until": decode_instant,
    "source": same,
    "session_id": same,
    "speaker": same,
    "fact_type": same,
    "extraction_profile": same,
    "pii_detected": same,
    "embedding": decode_embedding,
    "dedup_action": DEDUP_ACTIONS.decode,
    "dedup_threshold": same,
    "parts": decode_parts,
}


def _curation(message: memory_pb2.Curation) -> Curation:
    return Curation(
        CURATION_ACTIONS.decode(message.action),
        message.applied,
        message.target_id or None,
        message.reason,
        message.model,
    )


RESULT_READERS: dict[str, Reader] = {
    "stored": same,
    "memory_id": same,
    "deduplicated": same,
    "error": same,
    "retention_action": RETENTION_ACTIONS.decode,
    "curated": same,
    "memory_layer": same,
    "position": same,
    "chunk_count": same,
    "token_count": same,
    "was_update": same,
    "near_duplicate_of": same,
    "similarity": same,
    "warnings": tuple,
    "curation": _curation,
}
# What an update can change.
UPDATE_FIELDS = ("content", "metadata", "occurred_at", "source", "tags", "valid_from", "valid_until")


def decode_mask(mask: FieldMask) -> frozenset[str]:
    """The fields that a mask names.

    Raises:
        Refused: It names one that an update cannot change.
    """
    strange = next((path for path in mask.paths if path not in UPDATE_FIELDS), None)
    if strange is not None:
        raise Refused("", f"may name {', '.join(UPDATE_FIELDS)}, got {strange!r:.64}")
    return frozenset(mask.paths)


UPDATE_READERS: dict[str, Reader] = {
    "memory_id": same,
    "update_mask": decode_mask,
    "content": same,
    "tags": tuple,
    "metadata": decode_metadata,
    "source": same,
    "occurred_at": decode_instant,
    "valid_from": decode_instant,
    "valid_until": decode_instant,
    "embedding": decode_embedding,
    "etag": same,
}


def decode_item(message: memory_pb2.RetainItem | memory_pb2.RetainRequest, path: str = "") -> RetainItem:
    """An item, from a batch or stream or from the request that holds its fields itself.

    Raises:
        ValidationError: ``path`` goes before the field's name.
    """
    values = read(message, ITEM_READERS, path)
    name = values.pop("content_type_name", None)
    if name is not None and values.setdefault("content_type", name) is not name:
        raise ValidationError("stands beside content_type; set one of them", field=f"{path}content_type_name")
    return RetainItem(**{"content": "", **values})


def _content_type(value: str) -> dict[str, Any]:
    """A format by its number, or by its name where it has none."""
    if value and value not in NUMBERED_TYPES:
        return {"content_type_name": value}
    return {"content_type": CONTENT_TYPES.encode(value)}


def _item_fields(item: RetainItem) -> dict[str, Any]:
    return {
        "content": item.content,
        **_content_type(item.content_type),
        "metadata": encode_metadata(item.metadata),
        "tags": item.tags,
        "occurred_at": encode_instant(item.occurred_at),
        "valid_from": encode_instant(item.valid_from),
        "valid_until": encode_instant(item.valid_until),
        "source": item.source,
        "session_id": item.session_id,
        "speaker": item.speaker,
        "fact_type": item.fact_type,
        "extraction_profile": item.extraction_profile,
        "pii_detected": item.pii_detected,
        "embedding": encode_embedding(item.embedding),
        "dedup_action": DEDUP_ACTIONS.encode(item.dedup_action),
        "dedup_threshold": item.dedup_threshold,
        "parts": encode_parts(item.parts),
    }


def encode_item(item: RetainItem) -> memory_pb2.RetainItem:
    """An item of a batch or stream."""
    return memory_pb2.RetainItem(**_item_fields(item))


def encode_retain_request(
    bank_id: str, item: RetainItem, request_id: str | None, *, validate_only: bool
) -> memory_pb2.RetainRequest:
    """An item as a request of its own."""
    return memory_pb2.RetainRequest(
        bank_id=bank_id, request_id=request_id or "", validate_only=validate_only, **_item_fields(item)
    )


def decode_retain_result(message: memory_pb2.RetainResponse) -> RetainResult:
    """What became of an item."""
    return RetainResult(**{"stored": False, **read(message, RESULT_READERS, "")})


def encode_retain_result(result: RetainResult) -> memory_pb2.RetainResponse:
    """What became of an item."""
    return memory_pb2.RetainResponse(
        stored=result.stored,
        memory_id=result.memory_id or "",
        deduplicated=result.deduplicated,
        error=result.error or "",
        retention_action=RETENTION_ACTIONS.encode(result.retention_action),
        curated=result.curated,
        memory_layer=result.memory_layer or "",
        position=result.position,
        chunk_count=result.chunk_count,
        token_count=result.token_count,
        was_update=result.was_update,
        near_duplicate_of=result.near_duplicate_of or "",
        similarity=result.similarity,
        warnings=result.warnings,
        curation=_encode_curation(result.curation),
    )


def _encode_curation(decision: Curation | None) -> memory_pb2.Curation | None:
    if decision is None:
        return None
    return memory_pb2.Curation(
        action=CURATION_ACTIONS.encode(decision.action),
        applied=decision.applied,
        target_id=decision.target_id or "",
        reason=decision.reason,
        model=decision.model,
    )


def decode_memory(message: types_pb2.Memory) -> Memory:
    """A memory as the server sent it."""
    return Memory(
        memory_id=message.memory_id,
        bank_id=message.bank_id,
        version=message.version,
        content=message.content,
        content_type=message.content_type_name or CONTENT_TYPES.decode(message.content_type),
        fact_type=message.fact_type,
        memory_layer=message.memory_layer,
        tags=tuple(message.tags),
        metadata=decode_metadata(message.metadata),
        source=message.source or None,
        session_id=message.session_id or None,
        speaker=message.speaker or None,
        principal=message.principal,
        occurred_at=optional_instant(message, "occurred_at"),
        valid_from=optional_instant(message, "valid_from"),
        valid_until=optional_instant(message, "valid_until"),
        retained_at=decode_instant(message.retained_at),
        updated_at=decode_instant(message.updated_at),
        forgotten_at=optional_instant(message, "forgotten_at"),
        purge_after=optional_instant(message, "purge_after"),
        chunk_count=message.chunk_count,
        token_count=message.token_count,
        position=message.position,
        etag=message.etag,
        state=STATES.decode(message.state),
        entities=tuple(Entity(entity.name, entity.entity_type) for entity in message.entities),
    )


def encode_memory(memory: Memory) -> types_pb2.Memory:
    """A memory in full."""
    return types_pb2.Memory(
        memory_id=memory.memory_id,
        bank_id=memory.bank_id,
        version=memory.version,
        content=memory.content,
        **_content_type(memory.content_type),
        fact_type=memory.fact_type,
        memory_layer=memory.memory_layer,
        tags=memory.tags,
        metadata=encode_metadata(memory.metadata),
        source=memory.source or "",
        session_id=memory.session_id or "",
        speaker=memory.speaker or "",
        principal=memory.principal,
        occurred_at=encode_instant(memory.occurred_at),
        valid_from=encode_instant(memory.valid_from),
        valid_until=encode_instant(memory.valid_until),
        retained_at=encode_instant(memory.retained_at),
        updated_at=encode_instant(memory.updated_at),
        forgotten_at=encode_instant(memory.forgotten_at),
        purge_after=encode_instant(memory.purge_after),
        chunk_count=memory.chunk_count,
        token_count=memory.token_count,
        position=memory.position,
        etag=memory.etag,
        state=STATES.encode(memory.state),
        entities=[
            types_pb2.Entity(id=entity.id, name=entity.name, entity_type=entity.entity_type)
            for entity in memory.entities
        ],
    )


def decode_update(message: memory_pb2.UpdateMemoryRequest) -> MemoryUpdate:
    """A change of a memory."""
    values = read(message, UPDATE_READERS, "")
    fields = values.pop("update_mask", None)
    if not fields:
        raise ValidationError(f"is empty; name any of {', '.join(UPDATE_FIELDS)}", field="update_mask")
    return MemoryUpdate(**{"memory_id": "", "fields": fields, **values})


def encode_update_request(
    bank_id: str, update: MemoryUpdate, request_id: str | None, *, validate_only: bool
) -> memory_pb2.UpdateMemoryRequest:
    """A change of a memory as a request."""
    return memory_pb2.UpdateMemoryRequest(
        bank_id=bank_id,
        memory_id=update.memory_id,
        update_mask=FieldMask(paths=sorted(update.fields)),
        content=update.content,
        tags=update.tags,
        metadata=encode_metadata(update.metadata),
        source=update.source or "",
        occurred_at=encode_instant(update.occurred_at),
        valid_from=encode_instant(update.valid_from),
        valid_until=encode_instant(update.valid_until),
        embedding=encode_embedding(update.embedding),
        etag=update.etag or "",
        request_id=request_id or "",
        validate_only=validate_only,
    )
