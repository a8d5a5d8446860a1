"""Concurrency limits and deadlines of calls from the server's settings; docs/policy.md has the table.

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
    """Settings of a kind of calls.

    Attributes:
        number: Names the setting of the calls that run at once.
        deadline: Names the setting of the deadline imposed; None imposes none.
        queued: Whether as many again may wait; the others are refused at once.
    """

    number: str
    deadline: str | None
    queued: bool = True


PLACES: Mapping[Concurrency, Places] = {
    Concurrency.READ: Places("read_concurrency", "read_deadline_seconds"),
    Concurrency.WRITE: Places("write_concurrency", "write_deadline_seconds"),
    Concurrency.REFLECT: Places("reflect_concurrency", "reflect_deadline_seconds"),
    Concurrency.ADMIN: Places("admin_concurrency", "read_deadline_seconds"),
    # Their callers end such calls, so a queue for their places would not move. Each kind counts apart: watches that
    # only listen must not keep writers out, nor calls that wait for minutes either of them.
    Concurrency.STREAM: Places("stream_concurrency", None, queued=False),
    Concurrency.WATCH: Places("stream_concurrency", None, queued=False),
    Concurrency.WAIT: Places("stream_concurrency", None, queued=False),
    Concurrency.ARCHIVE: Places("archive_concurrency", None, queued=False),
}


def rules_of(settings: ServerSettings) -> dict[Concurrency, Rules]:
    """Concurrency limit and deadline of each kind, as the settings have them."""
    return {
        kind: Rules(
            Admission(kind, getattr(settings, places.number), None if places.queued else 0),
            None if places.deadline is None else getattr(settings, places.deadline),
        )
        for kind, places in PLACES.items()
    }
