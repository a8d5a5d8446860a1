"""RPCs on legal holds and the audit trail: permissions, validation and pages."""

from __future__ import annotations

import re
import uuid

from astrocyte.api.requests import ListAuditEvents, ListHolds, PlaceHold, ReleaseHold
from astrocyte.config import LimitSettings
from astrocyte.errors import ValidationError
from astrocyte.model import AuditPage, Caller, Hold, HoldPage
from astrocyte.pipelines.query.time_windows import optional_ms
from astrocyte.policy.auth.access_control import NO_BANK, Access
from astrocyte.policy.banks.lifecycle import Banks
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.policy.requests.validation import Validator
from astrocyte.stores.audit import AuditStore
from astrocyte.stores.holds import HoldStore, NewHold

# They are listed with commas between, and stand in errors.
_HOLD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}")


class Holding:
    """Handlers of the RPCs on legal holds and the audit trail.

    Args:
        holds: Where the holds are.
        audit: Where the trail is.
        banks: The banks that are held.
        access: Who may.
        check: The limits of requests.
        limits: How many ids and tags a hold may name.
    """

    def __init__(
        self,
        holds: HoldStore,
        audit: AuditStore,
        banks: Banks,
        access: Access,
        check: Validator,
        limits: LimitSettings,
    ) -> None:
        self._holds = holds
        self._audit = audit
        self._banks = banks
        self._access = access
        self._check = check
        self._limits = limits

    async def place_hold(self, caller: Caller, request: PlaceHold) -> Hold:
        """Place a hold."""
        bank_id, hold_id, reason = request.bank_id, request.hold_id, request.reason
        self._banks.require(caller, "PlaceHold", bank_id)
        field_checks.label(reason, "reason", self._limits.text_chars)
        field_checks.labels(request.memory_ids, "memory_ids", self._limits.memory_ids, self._limits.name_chars)
        field_checks.labels(request.tags, "tags", self._limits.tags, self._limits.tag_chars)
        if hold_id is not None:
            _check_hold_id(hold_id)
        if request.expires_at is not None:
            field_checks.instant(request.expires_at, "expires_at")
        self._check.request_id(request.request_id)
        bank = self._banks.current(caller, "PlaceHold", bank_id)
        named = tuple(dict.fromkeys(request.memory_ids)), tuple(dict.fromkeys(request.tags))
        new = NewHold(hold_id or f"hold-{uuid.uuid4().hex}", *named, reason, optional_ms(request.expires_at))
        ends = filter(None, [request.expires_at])
        key = key_of(request.request_id, "place_hold", bank_id, hold_id, *named, reason, *ends)
        return await self._holds.place(bank, new, by=self._access.name(caller), request=key)

    async def release_hold(self, caller: Caller, request: ReleaseHold) -> Hold:
        """Release a hold."""
        self._banks.require(caller, "ReleaseHold", request.bank_id)
        _check_hold_id(request.hold_id)
        self._check.request_id(request.request_id)
        bank = self._banks.current(caller, "ReleaseHold", request.bank_id)
        key = key_of(request.request_id, "release_hold", request.bank_id, request.hold_id)
        return await self._holds.release(bank, request.hold_id, by=self._access.name(caller), request=key)

    async def list_holds(self, caller: Caller, request: ListHolds) -> HoldPage:
        """A page of holds."""
        bank_id, released = request.bank_id, request.include_released
        if not bank_id:
            self._access.require_pattern(caller, "ListHolds", NO_BANK)
        bank = self._banks.current(caller, "ListHolds", bank_id) if bank_id else None
        limit = self._check.page_limit(request.page_size)
        scope = ("holds", caller.tenant, bank_id, released)
        after = decode_place(request.page_token, scope)
        rows = self._holds.listed(caller.tenant, bank=bank, released=released, after=after, limit=limit.entries + 1)
        holds, last = cut_page(rows, limit)
        return HoldPage(holds, "" if last is None else encode_token(scope, [last]))

    async def list_audit_events(self, caller: Caller, request: ListAuditEvents) -> AuditPage:
        """A page of the audit trail."""
        bank_id = request.bank_id
        if not bank_id:
            self._access.require_pattern(caller, "ListAuditEvents", NO_BANK)
        bank_key = self._banks.current(caller, "ListAuditEvents", bank_id).key if bank_id else None
        limit = self._check.page_limit(request.page_size)
        scope = ("audit", caller.tenant, bank_key, request.newest_first)
        after = decode_place(request.page_token, scope, newest_first=request.newest_first)
        read, head, digest = self._audit.read(
            caller.tenant,
            bank_key=bank_key,
            after=after,
            limit=limit.entries + 1,
            newest_first=request.newest_first,
        )
        events, last = cut_page([(event.sequence, event) for event in read], limit)
        return AuditPage(events, head, digest, "" if last is None else encode_token(scope, [last]))


def _check_hold_id(hold_id: object) -> None:
    if not isinstance(hold_id, str) or not _HOLD_ID.fullmatch(hold_id):
        raise ValidationError(
            "expected 1 to 64 characters of [A-Za-z0-9._:@-], the first one a letter or digit, got "
            f"{ascii(hold_id)[: field_checks.SHOWN_CHARS]}",
            field="hold_id",
        )
