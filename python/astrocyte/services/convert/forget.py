"""Forgetting, erasure receipts, and the change log."""

from __future__ import annotations

from astrocyte.errors import ValidationError
from astrocyte.model import Change, ChangeKind, ErasureReceipt, ForgetResult, ForgetSelector
from astrocyte.services.convert.engines import decode_engine_forget, encode_engine_forget
from astrocyte.services.convert.values import Choices, Reader, decode_instant, encode_instant, read
from astrocyte.v1 import memory_pb2

CHANGE_KINDS = Choices("kind", ChangeKind, memory_pb2.ChangeKind, "CHANGE_KIND_")
# Names of ForgetScope by number; 0 is no scope.
SCOPES = {memory_pb2.FORGET_SCOPE_UNSPECIFIED: None, memory_pb2.FORGET_SCOPE_ALL: "all"}
SCOPE_NUMBERS = {name: number for number, name in SCOPES.items()}

SELECTOR_READERS: dict[str, Reader] = {
    "memory_ids": tuple,
    "tags": tuple,
    "before_date": decode_instant,
}


def decode_selector(message: memory_pb2.ForgetRequest) -> ForgetSelector:
    """Which memories a request selects."""
    if message.scope not in SCOPES:
        raise ValidationError(f"must be 0 (none) or 1 (all), got {message.scope}", field="scope")
    return ForgetSelector(scope=SCOPES[message.scope], **read(message, SELECTOR_READERS, ""))


def encode_forget_request(
    bank_id: str,
    selector: ForgetSelector,
    *,
    compliance: bool,
    reason: str | None,
    dry_run: bool,
    request_id: str | None,
) -> memory_pb2.ForgetRequest:
    """A selection as a request."""
    if selector.scope not in SCOPE_NUMBERS:
        raise ValidationError(f"must be 'all' or None, got {selector.scope!r:.64}", field="scope")
    return memory_pb2.ForgetRequest(
        bank_id=bank_id,
        memory_ids=selector.memory_ids,
        tags=selector.tags,
        scope=SCOPE_NUMBERS[selector.scope],
        before_date=encode_instant(selector.before_date),
        compliance=compliance,
        reason=reason or "",
        dry_run=dry_run,
        request_id=request_id or "",
    )


def decode_forget_result(message: memory_pb2.ForgetResponse) -> ForgetResult:
    """What was forgotten."""
    return ForgetResult(
        deleted_count=message.deleted_count,
        archived_count=message.archived_count,
        memory_ids=tuple(message.memory_ids),
        dry_run=message.dry_run,
        position=message.position,
        receipt=_decode_receipt(message.receipt) if message.HasField("receipt") else None,
        engines=tuple(decode_engine_forget(one) for one in message.engines),
    )


def encode_forget_result(result: ForgetResult) -> memory_pb2.ForgetResponse:
    """What was forgotten."""
    return memory_pb2.ForgetResponse(
        deleted_count=result.deleted_count,
        archived_count=result.archived_count,
        memory_ids=result.memory_ids,
        dry_run=result.dry_run,
        position=result.position,
        receipt=_encode_receipt(result.receipt) if result.receipt else None,
        engines=map(encode_engine_forget, result.engines),
    )


def _decode_receipt(message: memory_pb2.ErasureReceipt) -> ErasureReceipt:
    return ErasureReceipt(
        counts=dict(message.counts),
        salt=message.salt,
        salted_ids=tuple(message.salted_ids),
        root_hash_before=message.root_hash_before,
        root_hash_after=message.root_hash_after,
        completed_at=decode_instant(message.completed_at),
    )


def _encode_receipt(receipt: ErasureReceipt) -> memory_pb2.ErasureReceipt:
    return memory_pb2.ErasureReceipt(
        counts=receipt.counts,
        salt=receipt.salt,
        salted_ids=receipt.salted_ids,
        root_hash_before=receipt.root_hash_before,
        root_hash_after=receipt.root_hash_after,
        completed_at=encode_instant(receipt.completed_at),
    )


def decode_change(message: memory_pb2.Change) -> Change:
    """One entry of the change log."""
    return Change(
        position=message.position,
        kind=CHANGE_KINDS.decode(message.kind),
        memory_id=message.memory_id,
        changed_at=decode_instant(message.changed_at),
    )


def encode_change(change: Change) -> memory_pb2.Change:
    """One entry of the change log."""
    return memory_pb2.Change(
        position=change.position,
        kind=CHANGE_KINDS.encode(change.kind),
        memory_id=change.memory_id,
        changed_at=encode_instant(change.changed_at),
    )
