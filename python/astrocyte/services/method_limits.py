"""Concurrency limits and deadlines of calls, from the settings of the server; docs/policy.md has the table.

A call takes a place of its kind while it runs, waits for one or is refused (`admission`), and is given its kind's
deadline where it has none. Rates are drawn from by the gate, so that they hold for every front door.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from astrocyte.api import Concurrency
from astrocyte.config import ServerSettings
from astrocyte.services.admission import Admission
from astrocyte.services.interceptors import Rules


class Places(NamedTuple):
    """Settings of a kind of calls: how many run at once, as many again may wait; and the deadline, if any."""

    number: str
    deadline: str | None


PLACES: Mapping[Concurrency, Places] = {
    Concurrency.READ: Places("read_concurrency", "read_deadline_seconds"),
    Concurrency.WRITE: Places("write_concurrency", "write_deadline_seconds"),
    Concurrency.REFLECT: Places("reflect_concurrency", "reflect_deadline_seconds"),
    Concurrency.ADMIN: Places("admin_concurrency", "read_deadline_seconds"),
    # Its callers end such a call.
    Concurrency.STREAM: Places("stream_concurrency", None),
}


def rules_of(settings: ServerSettings) -> dict[Concurrency, Rules]:
    """Concurrency limit and deadline of each kind, as the settings have them."""
    return {
        kind: Rules(
            Admission(kind, getattr(settings, places.number)),
            None if places.deadline is None else getattr(settings, places.deadline),
        )
        for kind, places in PLACES.items()
    }
