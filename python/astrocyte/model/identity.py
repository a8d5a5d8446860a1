"""Who calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Used where no credential says otherwise: one process, one user, on loopback or in a library.
DEFAULT_TENANT = "default"
DEFAULT_PRINCIPAL = "local"


@dataclass(frozen=True, slots=True)
class ActorIdentity:
    """A user, agent or service behind a call."""

    type: str
    id: str
    claims: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class AstrocyteContext:
    """Caller identity for the in-process API; over the wire it comes from the credential alone.

    ``actor`` says in parts who the principal is: the principal is its id, or its type and id with a colon between. An
    actor who is somebody else, or who has claims, is refused, as is ``on_behalf_of``, until there is delegation.
    """

    principal: str
    actor: ActorIdentity | None = None
    on_behalf_of: ActorIdentity | None = None
    tenant_id: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who the gate sees: always complete, never from a request message."""

    tenant: str = DEFAULT_TENANT
    principal: str = DEFAULT_PRINCIPAL
