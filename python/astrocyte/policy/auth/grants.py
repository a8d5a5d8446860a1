"""Grants by call: the permissions for changing them, and their form."""

from __future__ import annotations

import re
from collections.abc import Iterable

from astrocyte.api import requests
from astrocyte.config.access import BANK_PATTERN
from astrocyte.errors import FailedPrecondition, ValidationError
from astrocyte.model import (
    ALL_PERMISSIONS,
    NO_PERMISSIONS,
    AccessCheck,
    Caller,
    Grant,
    GrantPage,
    Permission,
)
from astrocyte.policy.auth.access_control import NO_BANK, Access
from astrocyte.policy.glob_patterns import is_pattern, matches
from astrocyte.policy.permissions import CHECK_OTHERS
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.page_tokens import decode_token, encode_token
from astrocyte.policy.requests.pages import cut_page
from astrocyte.policy.requests.request_keys import key_of
from astrocyte.policy.requests.validation import Validator
from astrocyte.stores.access import AccessStore, GrantChange

_BANK = re.compile(BANK_PATTERN)
# Grants read at once for a page: most of a tenant's may be about other banks.
LISTED_AT_ONCE = 1_000


class Granting:
    """Handlers of the RPCs on grants.

    Args:
        store: Where the grants are.
        access: Who may give them.
        check: The limits of requests.
    """

    def __init__(self, store: AccessStore, access: Access, check: Validator) -> None:
        self._store = store
        self._access = access
        self._check = check

    async def grant(self, caller: Caller, request: requests.Grant) -> Grant:
        """Give permissions."""
        change = self._change(caller, "Grant", request.bank_id, request.principal, request.permissions)
        self._check.request_id(request.request_id)
        key = key_of(request.request_id, "grant", request.bank_id, request.principal, sorted(change.permissions))
        return await self._store.grant(caller.tenant, change, by=self._access.name(caller), request=key)

    async def revoke(self, caller: Caller, request: requests.Revoke) -> frozenset[Permission]:
        """Take permissions."""
        change = self._change(caller, "Revoke", request.bank_id, request.principal, request.permissions or ["*"])
        self._check.request_id(request.request_id)
        key = key_of(request.request_id, "revoke", request.bank_id, request.principal, sorted(change.permissions))
        return await self._store.revoke(caller.tenant, change, by=self._access.name(caller), request=key)

    async def list_grants(self, caller: Caller, request: requests.ListGrants) -> GrantPage:
        """A page of grants: those of the configuration first, then by age."""
        bank_id, principal, revoked = request.bank_id, request.principal, request.include_revoked
        page_token = request.page_token
        _check_bank(bank_id or NO_BANK)
        self._access.require_pattern(caller, "ListGrants", bank_id or NO_BANK)
        if principal:
            field_checks.name(principal, "principal")
        limit = self._check.page_limit(request.page_size)
        scope = ("grants", caller.tenant, bank_id, principal, revoked)
        # Those of the configuration have negative places.
        configured = self._access.configured(caller.tenant)
        after = int(decode_token(page_token, scope, int, 1)[0]) if page_token else -len(configured) - 1
        places = [(index - len(configured), grant) for index, grant in enumerate(configured)]
        wanted = [entry for entry in places if entry[0] > after]
        found = list(_about(wanted, bank_id, principal))
        last = max(after, 0)
        while len(found) <= limit.entries:
            rows = self._store.listed(caller.tenant, revoked=revoked, after=last, limit=LISTED_AT_ONCE)
            if not rows:
                break
            found += _about(rows, bank_id, principal)
            last = rows[-1][0]
        grants, end = cut_page(found, limit)
        return GrantPage(grants, "" if end is None else encode_token(scope, [end]))

    async def check_access(self, caller: Caller, request: requests.CheckAccess) -> AccessCheck:
        """The permissions of a principal in a bank."""
        bank_id, principal, permission = request.bank_id, request.principal, request.permission
        field_checks.bank_id(bank_id)
        if principal is None:
            self._access.require_name(caller, "CheckAccess")
            asked = caller
        else:
            self._access.require(caller, CHECK_OTHERS, bank_id)
            asked = Caller(caller.tenant, field_checks.principal(principal, "principal"))
        needed = _permissions([permission], "permission") if permission else NO_PERMISSIONS
        held = self._access.permissions(asked, bank_id)
        return AccessCheck(needed <= held if needed else bool(held), held)

    def _change(
        self, caller: Caller, operation: str, bank_id: str, principal: str, permissions: Iterable[str]
    ) -> GrantChange:
        _check_bank(bank_id)
        self._access.require_pattern(caller, operation, bank_id)
        field_checks.principal(principal, "principal")
        if not self._access.enabled:
            raise FailedPrecondition(
                "access control is off, so grants have no effect; set access_control.enabled first"
            )
        return GrantChange(bank_id, principal, _permissions(permissions, "permissions"))


def _check_bank(bank_id: object) -> None:
    if not isinstance(bank_id, str) or not _BANK.fullmatch(bank_id):
        raise ValidationError(
            "expected a bank id, or a pattern of its characters with * (any number) and ? (one), got "
            f"{ascii(bank_id)[: field_checks.SHOWN_CHARS]}",
            field="bank_id",
        )


def _permissions(names: Iterable[str], field: str) -> frozenset[Permission]:
    """The permissions of these names."""
    if isinstance(names, str):
        raise ValidationError("expected a list of permissions, got one text", field=field)
    found: set[Permission] = set()
    for name in names:
        if name == "*":
            found |= ALL_PERMISSIONS
            continue
        try:
            found.add(Permission(name))
        except ValueError:
            known = ", ".join(Permission)
            raise ValidationError(f"expected any of {known} and *, got {ascii(name)[:64]}", field=field) from None
    if not found:
        raise ValidationError("is empty; name at least one", field=field)
    return frozenset(found)


def _about(entries: Iterable[tuple[int, Grant]], bank_id: str, principal: str) -> Iterable[tuple[int, Grant]]:
    """Entries that mean the bank and the principal; a pattern is looked for as it is written."""
    for key, grant in entries:
        if _means(grant.bank_id, bank_id) and _means(grant.principal, principal):
            yield key, grant


def _means(granted: str, asked: str) -> bool:
    return not asked or granted == asked or (not is_pattern(asked) and matches(granted, asked))
