"""Requests about legal holds and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from astrocyte.api.requests.base import Request
from astrocyte.model import AuditPage, Hold, HoldPage


@dataclass(slots=True)
class PlaceHold(Request[Hold]):
    """Protect memories from being forgotten, erased or given other content, and their bank from deletion.

    ``memory_ids`` and ``tags`` name them, also those that come later; without both it is the whole bank. None as
    ``hold_id`` generates one. It holds from the next call on, until it is released. After ``expires_at`` it stands,
    and `DiagnoseBank` reports it.

    Raises:
        AlreadyExists: There is, or was, a hold of that id.
        MemoryNotFound: The bank has no such memory, not even a forgotten one.
    """

    bank_id: str
    reason: str
    memory_ids: Sequence[str] = ()
    tags: Sequence[str] = ()
    hold_id: str | None = None
    request_id: str | None = None
    expires_at: datetime | None = None


@dataclass(slots=True)
class ReleaseHold(Request[Hold]):
    """End a hold; one that was released before stays as it is.

    Raises:
        NotFound: The bank has no such hold.
    """

    bank_id: str
    hold_id: str
    request_id: str | None = None


@dataclass(slots=True)
class ListHolds(Request[HoldPage]):
    """A page of the active holds, by age; ``include_released`` adds the released ones.

    Without ``bank_id`` the caller needs admin in all banks.
    """

    bank_id: str = ""
    include_released: bool = False
    page_size: int = 0
    page_token: str = ""


@dataclass(slots=True)
class ListAuditEvents(Request[AuditPage]):
    """A page of the tenant's audit trail, oldest first unless ``newest_first``; of one bank, or all.

    Without ``bank_id`` the caller needs admin in all banks. `astrocyte.policy.governance.audit_verification.verify`
    checks the whole trail.
    """

    bank_id: str = ""
    page_size: int = 0
    page_token: str = ""
    newest_first: bool = False
