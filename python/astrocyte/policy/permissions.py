"""Permissions that calls need beyond their rows in `astrocyte.api.rpcs`, and their names in settings and grants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from astrocyte.api.rpcs import ADMIN, RPCS, Creates
from astrocyte.model import ALL_PERMISSIONS, NO_PERMISSIONS, Permission

# Parts of calls that need other permissions than the rest: forgetting a whole bank at once, and checking the access of
# another principal.
FORGET_ALL = "Forget(scope=all)"
CHECK_OTHERS = "CheckAccess(principal)"
PARTS: Mapping[str, frozenset[Permission]] = {FORGET_ALL: ADMIN, CHECK_OTHERS: ADMIN}


def required() -> dict[str, frozenset[Permission]]:
    """Permissions on the bank that a call names, by the name of its RPC, or of its part."""
    return {**{rpc.name: rpc.permissions for rpc in RPCS.values()}, **PARTS}


def creating(*kinds: Creates) -> frozenset[str]:
    """Names of the RPCs that create the bank that they name, of these kinds."""
    return frozenset(rpc.name for rpc in RPCS.values() if rpc.creates in kinds)


def parse_permissions(names: Iterable[str]) -> frozenset[Permission]:
    """The permissions of these names; ``*`` is all four.

    Raises:
        ValueError: A name is not a permission.
    """
    return NO_PERMISSIONS.union(*(ALL_PERMISSIONS if name == "*" else {Permission(name)} for name in names))
