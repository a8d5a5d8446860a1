"""What each call is held to: one table, by the names of the RPCs, which docs/policy.md shows.

A call takes a place of its kind while it runs, waits for one or is refused (`admission`), and is given its kind's
deadline where it has none. Rates are drawn from by the gate, so that they hold for every front door; the table says
which, and the tests hold the gate to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from astrocyte.config import ServerSettings
from astrocyte.policy.limits.rate_limits import Operation
from astrocyte.services.admission import Admission
from astrocyte.services.interceptors import Rules


class Places(NamedTuple):
    """Settings of a kind of calls: how many run at once, as many again may wait; and seconds imposed, if any are."""

    number: str
    deadline: str | None


class Held(NamedTuple):
    """What a call is held to: the kind of its place, and the rates and daily quotas that it counts for, if any."""

    places: str
    rate: Operation | None = None


PLACES: Mapping[str, Places] = {
    "read": Places("read_concurrency", "read_deadline_seconds"),
    "write": Places("write_concurrency", "write_deadline_seconds"),
    # Apart from reads: a language model that hangs must not keep recalls waiting.
    "reflect": Places("reflect_concurrency", "reflect_deadline_seconds"),
    "admin": Places("admin_concurrency", "read_deadline_seconds"),
    # They end when their callers end them.
    "stream": Places("stream_concurrency", None),
}

# Every method has an entry, or the server does not start.
METHODS: Mapping[str, Held] = {
    "Retain": Held("write", Operation.RETAIN),
    "BatchRetain": Held("write", Operation.RETAIN),
    "StreamRetain": Held("stream", Operation.RETAIN),
    "GetMemory": Held("read"),
    "ListMemories": Held("read"),
    "UpdateMemory": Held("write", Operation.RETAIN),
    "Recall": Held("read", Operation.RECALL),
    "BatchRecall": Held("read", Operation.RECALL),
    "Explain": Held("read", Operation.RECALL),
    "History": Held("read", Operation.RECALL),
    "Reflect": Held("reflect", Operation.REFLECT),
    "StreamReflect": Held("reflect", Operation.REFLECT),
    "Forget": Held("write"),
    "UndeleteMemory": Held("write"),
    "Watch": Held("stream"),
    "CreateBank": Held("admin"),
    "GetBank": Held("admin"),
    "ListBanks": Held("admin"),
    "UpdateBank": Held("admin"),
    "DeleteBank": Held("admin"),
    "GetBankStats": Held("admin"),
    "GetServerInfo": Held("admin"),
    "Grant": Held("admin"),
    "Revoke": Held("admin"),
    "ListGrants": Held("admin"),
    "CheckAccess": Held("admin"),
    "PlaceHold": Held("admin"),
    "ReleaseHold": Held("admin"),
    "ListHolds": Held("admin"),
    "ListAuditEvents": Held("admin"),
    "StartReindex": Held("admin"),
    "GetOperation": Held("admin"),
    "ListOperations": Held("admin"),
    # It may wait for minutes, and must not keep other administration from its places.
    "WaitOperation": Held("stream"),
    "CancelOperation": Held("admin"),
    "CreateApiKey": Held("admin"),
    "ListApiKeys": Held("admin"),
    "ListBankTemplates": Held("admin"),
    "ListBankGroups": Held("admin"),
    "ListEngines": Held("admin"),
    "RevokeApiKey": Held("admin"),
}


def rules_of(settings: ServerSettings) -> dict[str, Rules]:
    """Places and deadlines by kind, as the settings have them."""
    return {
        kind: Rules(
            Admission(kind, getattr(settings, places.number)),
            None if places.deadline is None else getattr(settings, places.deadline),
        )
        for kind, places in PLACES.items()
    }
