"""Holds, and the trail."""

from __future__ import annotations

from astrocyte.model import AuditEvent, AuditPage, Hold
from astrocyte.services.convert.values import decode_instant, encode_instant
from astrocyte.v1 import admin_pb2


def decode_hold(message: admin_pb2.Hold) -> Hold:
    """A hold."""
    released = message.HasField("released_at")
    return Hold(
        hold_id=message.hold_id,
        bank_id=message.bank_id,
        memory_ids=tuple(message.memory_ids),
        tags=tuple(message.tags),
        reason=message.reason,
        placed_by=message.placed_by,
        placed_at=decode_instant(message.placed_at),
        released_by=message.released_by if released else None,
        released_at=decode_instant(message.released_at) if released else None,
    )


def encode_hold(hold: Hold) -> admin_pb2.Hold:
    """A hold."""
    return admin_pb2.Hold(
        hold_id=hold.hold_id,
        bank_id=hold.bank_id,
        memory_ids=hold.memory_ids,
        tags=hold.tags,
        reason=hold.reason,
        placed_by=hold.placed_by,
        placed_at=encode_instant(hold.placed_at),
        released_by=hold.released_by or "",
        released_at=encode_instant(hold.released_at),
    )


def decode_audit_page(message: admin_pb2.ListAuditEventsResponse) -> AuditPage:
    """A page of a trail."""
    events = tuple(
        AuditEvent(
            tenant=event.tenant,
            sequence=event.sequence,
            event=event.event,
            occurred_at=decode_instant(event.occurred_at),
            actor=event.actor,
            bank_key=event.bank_key,
            details=dict(event.details),
            hash=event.hash,
        )
        for event in message.events
    )
    return AuditPage(events, message.head_sequence, message.head_hash, message.next_page_token)


def encode_audit_page(page: AuditPage) -> admin_pb2.ListAuditEventsResponse:
    """A page of a trail."""
    return admin_pb2.ListAuditEventsResponse(
        events=[
            admin_pb2.AuditEvent(
                tenant=event.tenant,
                sequence=event.sequence,
                event=str(event.event),
                occurred_at=encode_instant(event.occurred_at),
                actor=event.actor,
                bank_key=event.bank_key,
                details=dict(event.details),
                hash=event.hash,
            )
            for event in page.events
        ],
        head_sequence=page.head_sequence,
        head_hash=page.head_hash,
        next_page_token=page.next_page_token,
    )
