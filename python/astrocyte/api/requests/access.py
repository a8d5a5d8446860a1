"""Requests about grants and API keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from astrocyte.api.requests.base import Request
from astrocyte.model import AccessCheck, GrantPage, KeyInfo, NewApiKey, Permission
from astrocyte.model import Grant as AccessGrant


@dataclass(slots=True)
class Grant(Request[AccessGrant]):
    """Add permissions to the grant of a principal on a bank.

    Both names may be patterns, in which ``*`` stands for any characters and ``?`` for one. ``permissions`` are any of
    read, write, forget and admin; ``*`` is all four. A grant holds from the next call on.

    Raises:
        AccessDenied: The caller has no admin there; for a pattern, in every bank that it may match.
        FailedPrecondition: Access control is off.
    """

    bank_id: str
    principal: str
    permissions: Sequence[str]
    request_id: str | None = None


@dataclass(slots=True)
class Revoke(Request[frozenset[Permission]]):
    """Remove permissions (none named: all) from the grant for these two names; returns those that it gave.

    It holds from the next call on, and ends open watches. Permissions of another grant, such as one of a pattern or of
    the configuration, stay. Raises what `Grant` does.
    """

    bank_id: str
    principal: str
    permissions: Sequence[str] = ()
    request_id: str | None = None


@dataclass(slots=True)
class ListGrants(Request[GrantPage]):
    """A page of the tenant's grants: those of the configuration, which have no times, then by age.

    A name keeps the grants that match it, by a pattern too; a pattern keeps those written alike. ``include_revoked``
    adds those that no longer hold. Without ``bank_id`` the caller needs admin in all banks.
    """

    bank_id: str = ""
    principal: str = ""
    include_revoked: bool = False
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class CheckAccess(Request[AccessCheck]):
    """The permissions of a principal (None: the caller) in a bank, whether it exists or not.

    Another principal than the caller needs admin there.
    """

    bank_id: str
    principal: str | None = None
    permission: str | None = None


@dataclass(slots=True)
class CreateApiKey(Request[NewApiKey]):
    """Create an API key of the caller's tenant; returns it with its secret, which is never shown again.

    A name has at most two live keys: the current one and its replacement. A repeated request returns the key that it
    created and no secret, because only its digest was kept.

    Raises:
        AccessDenied: The caller has no admin in all banks.
        FailedPrecondition: There are two, or access control is off and the caller holds no data directory.
    """

    name: str
    principal: str
    expires_at: datetime | None = None
    request_id: str | None = None


@dataclass(slots=True)
class ListApiKeys(Request[list[KeyInfo]]):
    """All API keys of the tenant that were ever created by call, by age."""


@dataclass(slots=True)
class RevokeApiKey(Request[KeyInfo]):
    """End an API key from the next call on; streams end before their next answer. Raises what `CreateApiKey` does.

    Raises:
        NotFound: The tenant has no such key.
    """

    key_id: str
    request_id: str | None = None
