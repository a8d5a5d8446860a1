"""Webhooks: a signed delivery becomes a memory once, and is acknowledged when it is durable."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from astrocyte.api.requests import Retain
from astrocyte.config.sources.kinds import WebhookSource
from astrocyte.errors import AlreadyExists, MessageTooLarge, RequestIdReused, ValidationError
from astrocyte.ingest.messages import message_of, parse_json
from astrocyte.ingest.signatures import verified
from astrocyte.ingest.target import HasTarget, IngestTarget, target_of
from astrocyte.model import RetentionAction
from astrocyte.stores.ingest import Delivery, Standing

HOUR_MILLISECONDS = 3_600_000


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The answer to a delivery that is durable: ``accepted`` now, or ``duplicate``, accepted earlier.

    ``memory_id`` is that of the memory, None where it waits for a provider, or for a duplicate.
    """

    status: str
    memory_id: str | None = None


async def handle_webhook_ingest(
    source_id: str,
    source: WebhookSource,
    raw_body: bytes,
    headers: Mapping[str, str],
    *,
    retain: HasTarget | IngestTarget,
    clock: Callable[[], float] = time.time,
    _guarded: bool = True,
) -> WebhookAnswer:
    """Verify a delivery and retain its memory as the principal of the source.

    The memory is retained under a request id that follows from the delivery, and its receipt is written after that. A
    crash in between therefore costs nothing: the sender repeats the delivery and gets the first result.

    Args:
        source_id: The id of the source.
        source: Its settings.
        raw_body: The body as it came: signatures are over bytes.
        headers: Headers by lower-case name.
        retain: The `Astrocyte` of this process, or its `IngestTarget`; it also keeps the receipts of deliveries.
        clock: Seconds since 1970.
        _guarded: For tests, which show that receipts are what refuses replays.

    Raises:
        AuthorizationError: The signature is missing, wrong, or too old.
        MessageTooLarge: The body is larger than the source allows.
        AlreadyExists: The delivery is a copy of one that was accepted earlier.
        RequestIdReused: Another body was accepted under its id.
        ValidationError: The body is no message of the source, or the bank refuses its content.
        AstrocyteError: As `Retain` raises it.
    """
    target = target_of(retain)
    receipts = target.store
    if len(raw_body) > source.max_body_bytes:
        raise MessageTooLarge(
            f"the body has {len(raw_body):,} bytes; the source takes {source.max_body_bytes:,}",
            metadata={"limit": str(source.max_body_bytes)},
        )
    delivery = verified(source.auth, headers, raw_body, clock())
    standing = receipts.standing(source_id, delivery) if _guarded else Standing.NEW
    _check(standing)
    result = None
    if standing is Standing.NEW:
        message = message_of(source, parse_json(raw_body))
        request = Retain(message.bank_id, message.item, request_id=_request_id(source_id, delivery))
        result = await target.backend.call(message.caller, request)
        if result.retention_action == RetentionAction.REJECTED.value:
            raise ValidationError(result.error or "is refused", field="content")
    expires_at = None
    if delivery.signed_at:
        expires_at = round(clock() * 1_000 + source.receipt_keep_hours * HOUR_MILLISECONDS)
    first = await receipts.accept(source_id, delivery, expires_at=expires_at)
    if _guarded:
        # Of two copies at once, one wrote the receipt.
        _check(first)
    if result is None or first is Standing.REPEATED:
        return WebhookAnswer("duplicate")
    return WebhookAnswer("accepted", result.memory_id)


def _check(standing: Standing) -> None:
    if standing is Standing.REPLAYED:
        raise AlreadyExists("this delivery was accepted earlier; a sender that repeats one signs it with a newer time")
    if standing is Standing.CHANGED:
        raise RequestIdReused("a delivery with this id and another body was accepted earlier; use a new id")


def _request_id(source_id: str, delivery: Delivery) -> str:
    """A UUID that is the same whenever the delivery comes."""
    digest = hashlib.sha256(f"webhook\x00{source_id}\x00".encode() + delivery.key).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))
