"""Lists of the revisions of an item of knowledge."""

from __future__ import annotations

from collections.abc import Callable

from astrocyte.api.requests import Request
from astrocyte.cli.connection import Session
from astrocyte.cli.output import OUT, grid, print_json, stamp
from astrocyte.model import KnowledgeRevision, RevisionPage


async def print_revisions(session: Session, page_of: Callable[[str], Request[RevisionPage]]) -> None:
    """Print all revisions, newest first; ``page_of`` makes the request of a page from its token."""
    found: list[KnowledgeRevision] = []
    token = ""
    while True:
        page = await session.backend.call(session.caller, page_of(token))
        found.extend(page.revisions)
        token = page.next_page_token
        if not token:
            break
    if session.as_json:
        print_json(found)
        return
    table = grid(("revision", "time", "cause", "principal", "memories"))
    for one in found:
        count = str(len(one.source_ids))
        table.add_row(str(one.revision), stamp(one.changed_at), str(one.cause), one.changed_by, count)
    OUT.print(table)
