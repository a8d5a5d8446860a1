"""Verification of an audit trail: the reader recomputes every hash, and trusts no stored one."""

from __future__ import annotations

from dataclasses import dataclass

from astrocyte.api import Backend
from astrocyte.api.requests import ListAuditEvents
from astrocyte.model import GENESIS, AuditEvent, Caller, event_hash


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a check.

    ``broken_at`` is the sequence of the first row that is wrong or missing, None where the trail is whole; ``problem``
    says what is wrong with it. ``rows`` were in order before that. ``head_hash`` is the last of their hashes: noted
    elsewhere, with its sequence ``rows``, it lets a later check prove that nothing before it was changed or cut off.
    """

    rows: int
    head_hash: bytes
    broken_at: int | None = None
    problem: str = ""

    @property
    def intact(self) -> bool:
        """True if every row is present and right."""
        return self.broken_at is None


async def verify(backend: Backend, caller: Caller, *, noted: tuple[int, bytes] | None = None) -> Verification:
    """Read the whole trail of the caller's tenant and check it; needs admin in all banks.

    Args:
        backend: The gate, or a server.
        caller: Who checks.
        noted: Sequence and hash of a row, as an earlier check gave them. Who can write to the database can cut rows off
            the end and correct what says where it is; only such a note shows that.
    """
    checker = _Checker(noted)
    token = ""
    while True:
        page = await backend.call(caller, ListAuditEvents(page_token=token))
        for event in page.events:
            if checker.problem(event, page.head_sequence):
                return checker.found
        token = page.next_page_token
        if not token:
            return checker.end(page.head_sequence, page.head_hash)


class _Checker:
    """Verifies the rows of a trail in order."""

    def __init__(self, noted: tuple[int, bytes] | None) -> None:
        self.found = Verification(0, GENESIS)
        self._noted = noted

    def problem(self, event: AuditEvent, head: int) -> bool:
        """True if the next row is wrong."""
        expected = self.found.rows + 1
        if event.sequence != expected:
            return self._broken(expected, f"the row is missing; the next one there is {event.sequence}")
        if event_hash(self.found.head_hash, event) != event.hash:
            return self._broken(expected, "the row is not what was written, or not in its place")
        if expected > head:
            return self._broken(expected, f"the row comes after the end of the trail, which is {head}")
        if self._noted is not None and self._noted[0] == expected and self._noted[1] != event.hash:
            return self._broken(expected, "the row has another hash than was noted")
        self.found = Verification(expected, event.hash)
        return False

    def end(self, head: int, digest: bytes) -> Verification:
        """The result, when no row is left."""
        following = self.found.rows + 1
        if self.found.rows < head:
            self._broken(following, f"the row is missing; the trail goes on to {head}")
        elif self.found.head_hash != digest:
            self._broken(max(head, 1), "the end of the trail has another hash than its last row")
        elif self._noted is not None and self.found.rows < self._noted[0]:
            self._broken(following, f"the row is missing; the trail went on to {self._noted[0]} when that was noted")
        return self.found

    def _broken(self, sequence: int, problem: str) -> bool:
        self.found = Verification(self.found.rows, self.found.head_hash, sequence, problem)
        return True
