"""What each call needs: one table, by the names of the RPCs, that every front door is held to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from astrocyte.model import ALL_PERMISSIONS, NO_PERMISSIONS, Permission

_READ = frozenset({Permission.READ})
_WRITE = frozenset({Permission.WRITE})
_FORGET = frozenset({Permission.FORGET})
_ADMIN = frozenset({Permission.ADMIN})

# Permissions on the bank that the call names, all of them needed. Whatever answers with content needs read, besides
# what it does: an update and an undelete return the memory. With none, the caller only needs a name: the answer is made
# of what that caller may read, or holds nothing of any bank.
REQUIRED: Mapping[str, frozenset[Permission]] = {
    "Retain": _WRITE,
    "BatchRetain": _WRITE,
    "StreamRetain": _WRITE,
    "GetMemory": _READ,
    "ListMemories": _READ,
    "UpdateMemory": _READ | _WRITE,
    "Recall": _READ,
    "BatchRecall": _READ,
    "Explain": _READ,
    "History": _READ,
    "Reflect": _READ,
    "StreamReflect": _READ,
    "Forget": _FORGET,
    "UndeleteMemory": _READ | _ADMIN,
    "Watch": _READ,
    "CreateBank": _ADMIN,
    "GetBank": _READ,
    "ListBanks": NO_PERMISSIONS,
    "UpdateBank": _READ | _ADMIN,
    "DeleteBank": _ADMIN,
    "GetBankStats": _READ,
    "GetServerInfo": NO_PERMISSIONS,
    "Grant": _ADMIN,
    "Revoke": _ADMIN,
    "ListGrants": _ADMIN,
    "CheckAccess": NO_PERMISSIONS,
    "PlaceHold": _ADMIN,
    "ReleaseHold": _ADMIN,
    "ListHolds": _ADMIN,
    "ListAuditEvents": _ADMIN,
    "StartReindex": _ADMIN,
    "GetOperation": _ADMIN,
    "ListOperations": _ADMIN,
    "WaitOperation": _ADMIN,
    "CancelOperation": _ADMIN,
    # In every bank: a key can stand for anybody in the tenant.
    "CreateApiKey": _ADMIN,
    "ListApiKeys": _ADMIN,
    "ListBankTemplates": _ADMIN,
    "ListBankGroups": _ADMIN,
    "ListEngines": _ADMIN,
    "RevokeApiKey": _ADMIN,
}
# Parts of calls that need other permissions than the rest: forgetting a whole bank at once, and asking what somebody
# else may do.
FORGET_ALL = "Forget(scope=all)"
CHECK_OTHERS = "CheckAccess(principal)"
PARTS: Mapping[str, frozenset[Permission]] = {FORGET_ALL: _ADMIN, CHECK_OTHERS: _ADMIN}

# What may make the bank that it names. Where the policy lets whoever makes a bank own it, these pass on a free name.
MAKING = frozenset({"Retain", "BatchRetain", "StreamRetain", "CreateBank"})
# What makes a bank that a template says is made at its first use.
MAKING_BY_TEMPLATE = MAKING | {"Recall", "BatchRecall", "Reflect", "StreamReflect"}


def parse_permissions(names: Iterable[str]) -> frozenset[Permission]:
    """The permissions that the names stand for; ``*`` stands for all four.

    Raises:
        ValueError: A name is none of these.
    """
    return NO_PERMISSIONS.union(*(ALL_PERMISSIONS if name == "*" else {Permission(name)} for name in names))
