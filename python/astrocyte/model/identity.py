"""Callers, permissions, grants and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

# Used where no credential says otherwise: one process, one user, on loopback or in a library.
DEFAULT_TENANT = "default"
DEFAULT_PRINCIPAL = "local"
# What an identity can be; its principal is the word, a colon and its id.
ACTOR_TYPES = ("user", "agent", "service", "team")


class Permission(StrEnum):
    """A permission of a grant. The four are independent: none implies another."""

    READ = "read"
    WRITE = "write"
    FORGET = "forget"
    ADMIN = "admin"


ALL_PERMISSIONS = frozenset(Permission)
NO_PERMISSIONS: frozenset[Permission] = frozenset()


@dataclass(frozen=True, slots=True)
class ActorIdentity:
    """A user, agent, service or team: ``type`` is one of these words."""

    type: str
    id: str
    claims: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class AstrocyteContext:
    """Caller identity for the in-process API; over the wire it must agree with the credential.

    ``actor`` says in parts who the principal is: the principal is its id, or its type and id with a colon between. An
    actor who is somebody else, or who has claims, is refused. ``on_behalf_of`` names another for whom the principal
    acts: the call may then do only what both may do.
    """

    principal: str
    actor: ActorIdentity | None = None
    on_behalf_of: ActorIdentity | None = None
    tenant_id: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller as the gate sees it: never from a request message.

    ``on_behalf_of`` is the principal for whom this one acts. ``operator`` marks whoever holds the data directory, such
    as the command line on it: there is nothing to keep from them, so no grant is asked for. ``hops`` counts the servers
    that the call passed before this one: what asks on beyond a limit would go in a circle.
    """

    tenant: str = DEFAULT_TENANT
    principal: str = DEFAULT_PRINCIPAL
    on_behalf_of: str | None = None
    operator: bool = False
    hops: int = 0


@dataclass(frozen=True, slots=True)
class Grant:
    """Permissions of a principal on a bank, each a name or a pattern.

    Those of the configuration have no times. One that was revoked, or replaced by another for the same names, says so.
    """

    bank_id: str
    principal: str
    permissions: frozenset[Permission]
    granted_by: str = ""
    granted_at: datetime | None = None
    revoked_by: str | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class GrantPage:
    """A page of grants; an empty token ends the list."""

    grants: tuple[Grant, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class AccessCheck:
    """A principal's permissions in a bank. ``allowed`` answers for the permission asked about, or for any at all."""

    allowed: bool
    permissions: frozenset[Permission]


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """An API key, without what makes it one. ``last_used_at`` may be a minute behind."""

    key_id: str
    tenant: str
    name: str
    principal: str
    created_by: str
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_by: str | None = None
    revoked_at: datetime | None = None


class NewApiKey(NamedTuple):
    """An API key that was created, and the key itself, which is never shown again; "" for a repeated request."""

    api_key: KeyInfo
    secret: str
