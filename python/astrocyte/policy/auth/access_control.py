"""Access control: the policy, the grants, and the permissions that follow from them.

A decision depends on names alone, never on whether a bank exists; the exception, that whoever made a bank owns it,
looks a bank up and answers for a missing one as for one of somebody else. So a caller without read cannot tell the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import structlog

from astrocyte.api import Creates
from astrocyte.config import BankGrant, Settings
from astrocyte.errors import AccessDenied, ConfigError
from astrocyte.model import (
    ALL_PERMISSIONS,
    DEFAULT_PRINCIPAL,
    NO_PERMISSIONS,
    Bank,
    BankTemplate,
    Caller,
    Grant,
    Permission,
)
from astrocyte.policy.glob_patterns import ANY, covers, is_pattern, matches
from astrocyte.policy.permissions import creating, parse_permissions, required
from astrocyte.policy.settings.bank_templates import Templates
from astrocyte.stores.access import AccessStore
from astrocyte.stores.protocols import MemoryStore

log = structlog.get_logger(__name__)

# What everybody may do under the policy `open`.
OPEN_PERMISSIONS = frozenset({Permission.READ, Permission.WRITE})
# Decisions kept of one tenant; a caller can invent bank ids without end.
KEPT_DECISIONS = 4_096
# Tenants of which decisions are kept.
KEPT_TENANTS = 1_024
# Names what a refusal is about where that is no bank.
NO_BANK = "*"
# How a refusal calls a caller whom nobody named.
ANONYMOUS = "anonymous"
# Creates banks whatever ``auto_create`` says.
CREATE_BANK = "CreateBank"


class Grants:
    """The grants of a tenant, indexed for look-ups, with a cache of decisions."""

    def __init__(
        self,
        grants: Iterable[Grant],
        everybody: frozenset[Permission] = NO_PERMISSIONS,
        templates: Templates | None = None,
    ) -> None:
        self._everybody = everybody
        self._templates = templates
        self._named: dict[str, list[Grant]] = {}
        self._patterns: list[Grant] = []
        for grant in grants:
            if is_pattern(grant.principal):
                self._patterns.append(grant)
            else:
                self._named.setdefault(grant.principal, []).append(grant)
        self.answers: dict[tuple[str, str], frozenset[Permission]] = {}

    def permissions(self, principal: str, bank_id: str) -> frozenset[Permission]:
        """All permissions of the principal: by any grant, by the bank's template, and those of everybody."""
        key = (principal, bank_id)
        answer = self.answers.get(key)
        if answer is None:
            held = (grant.permissions for grant in self.of(principal) if matches(grant.bank_id, bank_id))
            answer = self._everybody.union(*held)
            template = self._templates.of[bank_id] if self._templates is not None else None
            if template is not None:
                answer |= template.permissions(principal)
            if len(self.answers) >= KEPT_DECISIONS:
                self.answers.clear()
            self.answers[key] = answer
        return answer

    def of(self, principal: str) -> list[Grant]:
        """The grants whose pattern matches the principal."""
        meant = [grant for grant in self._patterns if matches(grant.principal, principal)]
        return [*self._named.get(principal, ()), *meant]


class Access:
    """Decides on calls by the policy and the grants, and refuses those that are not allowed.

    Args:
        settings: The policy, the configured grants, and who callers without a name are.
        store: Where the banks are, with who made them.
        grants: Where the grants made by call are.

    Raises:
        ConfigError: A grant, or `identity.principal`, uses the name of callers without one.
    """

    def __init__(self, settings: Settings, store: MemoryStore, grants: AccessStore) -> None:
        self.enabled = settings.access_control.enabled
        self._open = settings.access_control.default_policy == "open"
        self._owning = settings.access_control.default_policy == "owner_only"
        self.unnamed = settings.identity.principal or DEFAULT_PRINCIPAL
        self._needed = required()
        self._creating = creating(Creates.BANK) if settings.bank_defaults.auto_create else frozenset({CREATE_BANK})
        self._creating_by_template = creating(Creates.BANK, Creates.BANK_OF_TEMPLATE)
        self._templates = Templates(settings)
        self._store = store
        self._grants = grants
        self._configured = configured_grants(settings)
        self._tenants: dict[str, tuple[int, Grants]] = {}

    def require(self, caller: Caller, operation: str, bank_id: str, known: Bank | None = None) -> None:
        """Check the caller's permission for the call; raise if it is missing.

        Args:
            caller: Who calls.
            operation: Name of an RPC, or of a part of one in `astrocyte.policy.permissions.PARTS`.
            bank_id: The bank that the call names, checked already.
            known: The bank as it was seen before; spares asking the store for its owner.

        Raises:
            AccessDenied: The caller, or whom it acts for, lacks a permission. The same for a bank that does not exist.
        """
        if not self.enabled or caller.operator:
            return
        needed = self._needed[operation]
        if caller.on_behalf_of is None and caller.principal != DEFAULT_PRINCIPAL:
            # What was answered in this epoch, on the path of every call.
            kept = self._tenants.get(caller.tenant)
            if kept is not None and kept[0] == self._grants.epoch(caller.tenant):
                answer = kept[1].answers.get((caller.principal, bank_id))
                if answer is not None and needed <= answer:
                    return
        principal = self._named(caller, bank_id, needed)
        if caller.on_behalf_of == DEFAULT_PRINCIPAL:
            raise AccessDenied(ANONYMOUS, bank_id, _words(needed or {Permission.READ}))
        self._require(caller.tenant, principal, operation, bank_id, known)
        if caller.on_behalf_of is not None:
            # Whom a call is made for makes nothing: it must have been granted what is done in its name.
            self._require(caller.tenant, caller.on_behalf_of, operation, bank_id, known, making=False)

    def require_each(
        self, caller: Caller, operation: str, bank_ids: Iterable[str], known: Mapping[tuple[str, str], Bank]
    ) -> None:
        """As `require` of every bank, in order; ``known`` has banks as they were seen before, by tenant and id."""
        if self.enabled and not caller.operator:
            for bank_id in bank_ids:
                self.require(caller, operation, bank_id, known.get((caller.tenant, bank_id)))

    def require_name(self, caller: Caller, operation: str) -> None:
        """Check that the caller of a call without a bank has a principal.

        Raises:
            AccessDenied: The caller has none.
        """
        if self.enabled and not caller.operator:
            self._named(caller, NO_BANK, self._needed[operation])

    def permissions(self, caller: Caller, bank_id: str, known: Bank | None = None) -> frozenset[Permission]:
        """The caller's permissions in a bank, whether it exists or not."""
        if not self.enabled or caller.operator:
            return ALL_PERMISSIONS
        principal = self.name(caller)
        if DEFAULT_PRINCIPAL in {principal, caller.on_behalf_of}:
            return NO_PERMISSIONS
        held = self._held(caller.tenant, principal, bank_id, known)
        if caller.on_behalf_of is not None:
            held &= self._held(caller.tenant, caller.on_behalf_of, bank_id, known)
        return held

    def readable(self, caller: Caller, banks: Sequence[Bank]) -> list[Bank]:
        """The banks of these that the caller may read."""
        return [bank for bank in banks if Permission.READ in self.permissions(caller, bank.bank_id, bank)]

    def require_pattern(self, caller: Caller, operation: str, pattern: str) -> None:
        """Check the caller's permission for every bank that a pattern matches; raise if it is missing.

        Raises:
            AccessDenied: No single grant gives the caller what is needed in all of them.
        """
        if not is_pattern(pattern):
            self.require(caller, operation, pattern)
            return
        if not self.enabled or caller.operator:
            return
        needed = self._needed[operation]
        for principal in filter(None, (self._named(caller, pattern, needed), caller.on_behalf_of)):
            held = [grant for grant in self._of(caller.tenant).of(principal) if covers(grant.bank_id, pattern)]
            if not any(needed <= grant.permissions for grant in held):
                raise AccessDenied(principal, pattern, _words(needed))

    def makes(self, caller: Caller, operation: str, bank_id: str) -> bool:
        """True if an admitted call creates the bank that it names, where it does not exist.

        Where a template says who may do what, it must give the caller, and whom it acts for, what the call needs: that
        another grant or the policy lets them pass is not enough to make one.
        """
        if not self._is_making(operation, bank_id):
            return False
        template = self._templates.of[bank_id]
        if template is None or not template.grants or not self.enabled or caller.operator:
            return True
        needed = self._needed[operation]
        principals = filter(None, (self.name(caller), caller.on_behalf_of))
        return all(needed <= template.permissions(principal) for principal in principals)

    def templates(self, caller: Caller) -> list[BankTemplate]:
        """The templates of the configuration.

        Raises:
            AccessDenied: The caller has not admin in all banks.
        """
        self.require_pattern(caller, "ListBankTemplates", ANY)
        return self._templates.listed()

    def configured(self, tenant: str) -> Sequence[Grant]:
        """The grants of a tenant from the configuration."""
        return self._configured.get(tenant, ())

    def name(self, caller: Caller) -> str:
        """The principal of the caller; `DEFAULT_PRINCIPAL` where neither it nor the settings name one."""
        return caller.principal if caller.principal != DEFAULT_PRINCIPAL else self.unnamed

    def _named(self, caller: Caller, bank_id: str, needed: frozenset[Permission]) -> str:
        principal = self.name(caller)
        if principal == DEFAULT_PRINCIPAL:
            raise AccessDenied(ANONYMOUS, bank_id, _words(needed or {Permission.READ}))
        return principal

    def _require(
        self, tenant: str, principal: str, operation: str, bank_id: str, known: Bank | None, *, making: bool = True
    ) -> None:
        needed = self._needed[operation]
        held = self._granted(tenant, principal, bank_id)
        if needed <= held:
            return
        if self._may_own(bank_id):
            if known is not None and known.created_by == principal:
                return
            bank = self._store.get_bank(tenant, bank_id)
            free = bank is None and making and self._is_making(operation, bank_id)
            if free or (bank is not None and bank.created_by == principal):
                return
        raise AccessDenied(principal, bank_id, _words(needed - held))

    def _held(self, tenant: str, principal: str, bank_id: str, known: Bank | None) -> frozenset[Permission]:
        if self._may_own(bank_id):
            bank = known or self._store.get_bank(tenant, bank_id)
            if bank is not None and bank.created_by == principal:
                return ALL_PERMISSIONS
        return self._granted(tenant, principal, bank_id)

    def _granted(self, tenant: str, principal: str, bank_id: str) -> frozenset[Permission]:
        return self._of(tenant).permissions(principal, bank_id)

    def _may_own(self, bank_id: str) -> bool:
        """True if the creator of a bank owns it: false where a template has grants."""
        template = self._templates.of[bank_id]
        return self._owning and (template is None or not template.grants)

    def _is_making(self, operation: str, bank_id: str) -> bool:
        """True if an operation creates a bank that does not exist."""
        template = self._templates.of[bank_id]
        if template is None or operation == CREATE_BANK:
            return operation in self._creating
        return template.settings.auto_create and operation in self._creating_by_template

    def _of(self, tenant: str) -> Grants:
        """The tenant's grants as of now: those of the configuration, and those of this epoch."""
        # Read before the grants: a change in between is then seen by the next call, never missed.
        epoch = self._grants.epoch(tenant)
        kept = self._tenants.get(tenant)
        if kept is not None and kept[0] == epoch:
            return kept[1]
        if len(self._tenants) >= KEPT_TENANTS:
            self._tenants.clear()
        everybody = OPEN_PERMISSIONS if self._open else NO_PERMISSIONS
        grants = Grants([*self.configured(tenant), *self._grants.holding(tenant)], everybody, self._templates)
        self._tenants[tenant] = (epoch, grants)
        return grants


def configured_grants(settings: Settings) -> dict[str, list[Grant]]:
    """The grants of the configuration by tenant.

    Raises:
        ConfigError: A principal is the name of callers without one.
    """
    by_tenant: dict[str, list[Grant]] = {}
    written: list[tuple[str, str, BankGrant]] = [
        (f"access_grants.{index}", grant.bank_id, grant) for index, grant in enumerate(settings.access_grants)
    ]
    for bank_id, bank in settings.banks.items():
        written += [(f"banks.{bank_id}.access.{index}", bank_id, grant) for index, grant in enumerate(bank.access)]
    keys = [key for key, *_ in written]
    keys += [f"bank_templates.{name}.access.0" for name, one in settings.bank_templates.items() if one.access]
    if keys and not settings.access_control.enabled:
        # Who writes grants believes that others are refused.
        log.warning("grants_have_no_effect", key=keys[0], reason="access_control.enabled is false")
    for key, bank_id, grant in written:
        _check_named(grant.principal, f"{key}.principal")
        made = Grant(bank_id, grant.principal, parse_permissions(grant.permissions))
        by_tenant.setdefault(grant.tenant, []).append(made)
    for name, template in settings.bank_templates.items():
        for index, one in enumerate(template.access):
            _check_named(one.principal, f"bank_templates.{name}.access.{index}.principal")
    _check_named(settings.identity.principal, "identity.principal")
    return by_tenant


def _check_named(principal: str | None, key: str) -> None:
    if principal == DEFAULT_PRINCIPAL:
        raise ConfigError(
            f"{key}: {DEFAULT_PRINCIPAL!r} is reserved for callers without a principal; choose another name",
            metadata={"key": key},
        )


def _words(permissions: Iterable[Permission]) -> str:
    """The permissions in their own order."""
    chosen = set(permissions)
    return " and ".join(permission for permission in Permission if permission in chosen)
