"""Directives: only principals that the settings name may write them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from astrocyte.api.requests import CreateDirective, DeleteDirective, ListDirectives
from astrocyte.errors import AccessDenied
from astrocyte.model import Caller, Directive, DirectivePage
from astrocyte.pipelines.query.time_windows import from_ms
from astrocyte.policy.glob_patterns import matches
from astrocyte.policy.operations.knowledge.items import Items
from astrocyte.policy.operations.parts import OperationParts
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_place, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.stores.knowledge.items import ItemKind, ItemRecord, NewItem, Removal

# Enough ranks for any order that somebody keeps by hand.
MOST_PRIORITY = 1_000
# As a refusal names what the caller lacks.
TRUST = "directives.allowed_principals"


def directive_of(record: ItemRecord) -> Directive:
    """A directive as callers see it."""
    return Directive(
        record.item_id,
        record.bank_id,
        record.current.body["rule_text"],
        record.scope,
        record.priority,
        record.created_by,
        from_ms(record.created_at),
        record.etag,
    )


def ranked(records: list[ItemRecord]) -> list[ItemRecord]:
    """Directives by descending priority; equal ones by age."""
    return sorted(records, key=lambda record: (-record.priority, record.key))


class Directives:
    """Handlers of CreateDirective, ListDirectives and DeleteDirective.

    Args:
        parts: What the operations share.
    """

    def __init__(self, parts: OperationParts) -> None:
        self._items = Items(parts)
        self._store = parts.knowledge
        self._banks = parts.banks
        self._access = parts.access
        self._check = parts.check
        self._settings = parts.settings.directives

    async def create_directive(self, caller: Caller, request: CreateDirective) -> Directive:
        """Create a directive."""
        bank_id, name = request.bank_id, "CreateDirective"
        self._banks.require(caller, name, bank_id)
        self.require_trust(caller, bank_id)
        await self._items.admit(caller, bank_id)
        text = self._items.text(request.rule_text, "rule_text")
        scope = self._items.scope(request.scope)
        field_checks.integer(request.priority, "priority", -MOST_PRIORITY, MOST_PRIORITY)
        if request.directive_id is not None:
            self._items.item_id(request.directive_id, "directive_id")
        self._check.request_id(request.request_id)
        bank = self._banks.expected(caller, name, bank_id)
        key = key_of(request.request_id, "create_directive", bank_id, text, scope, request.priority)
        text = await self._items.screened(bank_id, name, text, "rule_text", quiet=request.validate_only)
        item_id = request.directive_id or f"directive:{uuid.uuid4().hex}"
        by = self._access.name(caller)
        if request.validate_only:
            return Directive(item_id, bank_id, text, scope, request.priority, by, datetime.now(UTC), "")
        new = NewItem(
            ItemKind.DIRECTIVE,
            item_id,
            scope,
            {"rule_text": text},
            self._settings.max_per_bank,
            priority=request.priority,
        )
        bank = await self._banks.ready(caller, name, bank)
        return directive_of(await self._store.create(bank, new, by=by, request=key))

    async def list_directives(self, caller: Caller, request: ListDirectives) -> DirectivePage:
        """A page of directives."""
        self._banks.require(caller, "ListDirectives", request.bank_id)
        scope = self._items.scope(request.scope) if request.scope else ""
        limit = self._check.page_limit(request.page_size)
        bank = self._banks.current(caller, "ListDirectives", request.bank_id)
        listing = ("directives", caller.tenant, bank.key, scope)
        after = decode_place(request.page_token, listing)
        most = self._settings.max_per_bank
        rows = ranked(self._store.listed(bank, ItemKind.DIRECTIVE, scope=scope, after=0, limit=most))
        # A directive keeps its rank from page to page as long as none of a higher priority comes or goes.
        places = [(place, directive_of(row)) for place, row in enumerate(rows, 1)][after:]
        entries, last = cut_page(places[: limit.entries + 1], limit)
        return DirectivePage(entries, "" if last is None else encode_token(listing, [last]))

    async def delete_directive(self, caller: Caller, request: DeleteDirective) -> bool:
        """Delete a directive."""
        name, item_id = "DeleteDirective", request.directive_id
        bank_id = self._items.bank_id(caller, name, request.bank_id, ItemKind.DIRECTIVE, item_id)
        self._banks.require(caller, name, bank_id)
        self.require_trust(caller, bank_id)
        field_checks.label(item_id, "directive_id", field_checks.MOST_NAME_CHARS)
        self._check.request_id(request.request_id)
        bank = self._banks.handle(caller, name, bank_id)
        if request.validate_only:
            return self._store.changeable(bank, ItemKind.DIRECTIVE, item_id, request.etag)
        key = key_of(request.request_id, "delete_directive", bank_id, item_id, *filter(None, [request.etag]))
        by = self._access.name(caller)
        return await self._store.delete(bank, ItemKind.DIRECTIVE, item_id, Removal(request.etag), by=by, request=key)

    def require_trust(self, caller: Caller, bank_id: str) -> None:
        """Check that the caller, and the principal that it acts for, may write instructions.

        Raises:
            AccessDenied: The settings name one of them not.
        """
        if caller.operator:
            return
        for principal in filter(None, (self._access.name(caller), caller.on_behalf_of)):
            if not any(matches(pattern, principal) for pattern in self._settings.allowed_principals):
                raise AccessDenied(principal, bank_id, TRUST)
