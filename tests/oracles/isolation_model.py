"""The world of the isolation machine: who may do what, and what is where, decided a second time."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from astrocyte.api import Creates
from astrocyte.model import ALL_PERMISSIONS, NO_PERMISSIONS, Caller, Permission
from harness.calls import ROWS

TENANTS = ("acme", "beta", "core")
BANKS = ("b0", "b1", "b2", "b3")
PRINCIPALS = tuple(f"user:p{number}" for number in range(5))
# May grant everywhere in its tenant, and read nothing.
CLERK = PRINCIPALS[0]
CANARY = re.compile(r"canary\d{6}")
MEMORY_ID = re.compile(r"mem_[0-9a-f]{32}")

Place = tuple[str, str]


@dataclass
class Kept:
    """A memory as it should be; ``relevant`` are the other banks that it names."""

    place: Place
    canary: str
    visible: bool = True
    relevant: tuple[str, ...] = ()


@dataclass
class Model:
    """The permissions, and the places of all content."""

    owning: bool
    owners: dict[Place, str] = field(default_factory=dict)
    grants: dict[tuple[str, str, str], frozenset[Permission]] = field(default_factory=dict)
    memories: dict[str, Kept] = field(default_factory=dict)
    names: dict[str, Place] = field(default_factory=dict)
    # By canary, the other banks that its memory names.
    relevant: dict[str, tuple[str, ...]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    canaries: int = 0

    def canary(self, place: Place) -> str:
        self.canaries += 1
        made = f"canary{self.canaries:06}"
        self.names[made] = place
        return made

    def held(self, tenant: str, principal: str, bank: str) -> frozenset[Permission]:
        if self.owning and self.owners.get((tenant, bank)) == principal:
            return ALL_PERMISSIONS
        given = [
            permissions
            for (where, pattern, who), permissions in self.grants.items()
            if where == tenant and who == principal and fnmatchcase(bank, pattern)
        ]
        clerk = {Permission.ADMIN} if principal == CLERK else set()
        return NO_PERMISSIONS.union(clerk, *given)

    def passes(self, caller: Caller, operation: str, bank: str, needed: frozenset[Permission]) -> bool:
        own = self.held(caller.tenant, caller.principal, bank)
        free = self.owning and ROWS[operation].creates is Creates.BANK and (caller.tenant, bank) not in self.owners
        if not (needed <= own or free):
            return False
        return caller.on_behalf_of is None or needed <= self.held(caller.tenant, caller.on_behalf_of, bank)

    def reads(self, caller: Caller, bank: str) -> bool:
        return self.passes(caller, "Recall", bank, frozenset({Permission.READ}))

    def may_grant(self, caller: Caller, pattern: str) -> bool:
        if pattern in BANKS:
            return self.passes(caller, "Grant", pattern, frozenset({Permission.ADMIN}))
        covering = {"*": {"*"}, "b*": {"*", "b*"}}[pattern]
        return all(
            who == CLERK
            or any(
                Permission.ADMIN in permissions
                for (tenant, wide, principal), permissions in self.grants.items()
                if (tenant, principal) == (caller.tenant, who) and wide in covering
            )
            for who in filter(None, (caller.principal, caller.on_behalf_of))
        )

    def shows_beside(self, caller: Caller, source: Place, relevant: Collection[str], places: Collection[Place]) -> bool:
        """True if content of one bank may show in an answer about others: it names one, and both may be read."""
        tenant, bank = source
        named = any((tenant, one) in places for one in relevant)
        return named and tenant == caller.tenant and self.reads(caller, bank)

    def visible(self, place: Place) -> set[str]:
        return {memory for memory, kept in self.memories.items() if kept.place == place and kept.visible}

    def delete(self, place: Place) -> None:
        del self.owners[place]
        self.memories = {memory: kept for memory, kept in self.memories.items() if kept.place != place}
        # The canaries of a bank that is gone belong nowhere: whoever sees one sees too much.
        self.names = {canary: where for canary, where in self.names.items() if where != place}
        tenant, bank = place
        self.grants = {key: given for key, given in self.grants.items() if key[:2] != (tenant, bank)}
