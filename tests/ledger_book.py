"""Requests and answers of the clients of the kill ledger, compared with a server's rows.

A call has three outcomes: acknowledged, refused, unknown. What is unknown because the server died may have happened or
not, but it must be one of the two, wholly, and stay so.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from astrocyte.api import Backend
from astrocyte.api.requests import GetGraphStats, GetMemory, ListEntities, ListMemories, Recall
from astrocyte.errors import MemoryNotFound
from astrocyte.model import Caller, DetailLevel, Memory, RecallQuery

ME = Caller()
TOKEN = re.compile(r"parcel ([a-z]{14})\b")
# Memories that one recall can return.
RECALLED_AT_ONCE = 200
PAGE_SIZE = 1_000
# The entity that a memory alone mentions; `company` is its name.
COMPANY = re.compile(r"org:([a-z]{14})-corp")
# Seconds in which the graph must have what the rows have.
PATIENCE = 30.0


def company(token: str) -> str:
    """The name of the entity that the memory with this token mentions."""
    return f"{token.title()} Corp"


@dataclass(eq=False)
class Entry:
    """One memory, from the client's view. ``token`` is a word that only this memory holds."""

    token: str
    content: str
    memory_id: str | None = None
    forgotten: bool = False
    open: Operation | None = None


@dataclass(eq=False)
class Operation:
    """A call that was sent and not yet answered."""

    kind: str
    request_id: str
    entry: Entry
    content: str = ""


@dataclass
class Book:
    """Everything asked of one bank."""

    bank_id: str
    entries: dict[str, Entry] = field(default_factory=dict)
    acknowledged: int = 0
    # Set at each acknowledgement.
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    violations: list[str] = field(default_factory=list)

    def begin(self, operation: Operation) -> None:
        """The call is about to be sent."""
        operation.entry.open = operation
        self.entries.setdefault(operation.entry.token, operation.entry)

    def acknowledge(self, operation: Operation, memory_id: str) -> None:
        """The server said that it is done."""
        entry = operation.entry
        entry.open = None
        self.acknowledged += 1
        self.answered.set()
        if entry.memory_id not in (None, memory_id):
            self.violations.append(f"{operation.kind} of {entry.token} answered {memory_id}, not {entry.memory_id}")
        entry.memory_id = memory_id
        if operation.kind == "forget":
            entry.forgotten = True
        else:
            entry.content = operation.content

    def refuse(self, operation: Operation) -> None:
        """The server said that nothing was changed."""
        operation.entry.open = None
        if operation.entry.memory_id is None:
            del self.entries[operation.entry.token]

    @property
    def unknown(self) -> list[Operation]:
        """Calls that were never answered."""
        return [entry.open for entry in self.entries.values() if entry.open is not None]

    @property
    def alive(self) -> list[Entry]:
        """Memories that must be there."""
        return [entry for entry in self.entries.values() if entry.memory_id and not entry.forgotten]

    @property
    def gone(self) -> list[Entry]:
        """Memories that must not be there."""
        return [entry for entry in self.entries.values() if entry.forgotten]

    def compare(self, rows: Iterable[Memory]) -> None:
        """Hold the rows of the bank against the book; what was unknown is what they say from now on."""
        by_token: dict[str, list[Memory]] = {}
        for row in rows:
            match = TOKEN.search(row.content)
            by_token.setdefault(match[1] if match else row.content, []).append(row)
        for token in by_token.keys() - self.entries.keys():
            self.violations.append(f"phantom: nobody stored {token}")
        for token, found in by_token.items():
            if len(found) > 1:
                self.violations.append(f"doubled: {token} is there {len(found)} times")
        for entry in list(self.entries.values()):
            self._compare(entry, by_token.get(entry.token, []))

    def _compare(self, entry: Entry, found: list[Memory]) -> None:
        operation, entry.open = entry.open, None
        kind = operation.kind if operation else None
        if not found:
            if kind == "forget":
                entry.forgotten = True
            elif kind == "retain":
                del self.entries[entry.token]
            elif not entry.forgotten:
                self.violations.append(f"lost: {entry.token} ({entry.memory_id}) was acknowledged")
            return
        row = found[0]
        if entry.forgotten:
            self.violations.append(f"resurrected: {entry.token} ({row.memory_id}) was forgotten")
        elif entry.memory_id not in (None, row.memory_id):
            self.violations.append(f"doubled: {entry.token} is {row.memory_id}, was {entry.memory_id}")
        elif row.content not in (entry.content, operation.content if operation else entry.content):
            self.violations.append(f"lost: {entry.token} holds {row.content!r}, acknowledged was {entry.content!r}")
        entry.memory_id, entry.content = row.memory_id, row.content


async def rows_of(backend: Backend, bank_id: str) -> list[Memory]:
    """All memories of a bank."""
    rows: list[Memory] = []
    token = ""
    while True:
        page = await backend.call(ME, ListMemories(bank_id, page_size=PAGE_SIZE, page_token=token))
        rows += page.memories
        token = page.next_page_token
        if not token:
            return rows


async def check(backend: Backend, book: Book, *, newest: int | None = None) -> None:
    """Hold the server against the book, by every way of reading.

    Args:
        backend: The server.
        book: Gets the violations.
        newest: How many of the latest memories to look for in the index; None for all.
    """
    book.compare(await rows_of(backend, book.bank_id))
    alive = [entry for entry in book.alive if entry.memory_id][-newest if newest else 0 :]
    gone = book.gone[-newest if newest else 0 :]
    for part in _parts(alive):
        ids = {entry.memory_id for entry in part}
        found, _ = await _recalled(backend, book, part)
        if found != ids:
            book.violations.append(
                f"index: {len(ids - found)} of {len(ids)} rows are missing, {len(found - ids)} extra"
            )
    for part in _parts(gone):
        for as_of in (None, datetime.now(UTC)):
            found, proposed = await _recalled(backend, book, part, as_of)
            if found or proposed:
                book.violations.append(f"resurrected: recall as of {as_of} proposes {proposed}, returns {found}")
    for entry in gone[:: max(1, len(gone) // 20)]:
        try:
            await backend.call(ME, GetMemory(book.bank_id, entry.memory_id or ""))
        except MemoryNotFound:
            continue
        book.violations.append(f"resurrected: {entry.token} can be read")
    await _check_graph(backend, book)


async def _check_graph(backend: Backend, book: Book) -> None:
    """Each memory's entity is there with one mention, and nothing else is."""
    try:
        async with asyncio.timeout(PATIENCE):
            while (await backend.call(ME, GetGraphStats(book.bank_id))).pending_memories:  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.05)
    except TimeoutError:
        book.violations.append("graph: memories are never derived")
        return
    counts: dict[str, int] = {}
    token = ""
    while True:
        page = await backend.call(ME, ListEntities(book.bank_id, page_size=PAGE_SIZE, page_token=token))
        found = ((COMPANY.fullmatch(entity.id), entity.mention_count) for entity in page.entities)
        counts.update((match[1], count) for match, count in found if match)
        token = page.next_page_token
        if not token:
            break
    alive = {entry.token for entry in book.alive}
    if alive - counts.keys():
        book.violations.append(f"graph: {len(alive - counts.keys())} entities of {len(alive)} memories are missing")
    if counts.keys() - alive:
        book.violations.append(f"graph: {len(counts.keys() - alive)} entities are of no memory that is there")
    miscounted = {name for name in alive & counts.keys() if counts[name] != 1}
    if miscounted:
        book.violations.append(f"graph: {len(miscounted)} entities are not counted once")


async def _recalled(
    backend: Backend, book: Book, entries: list[Entry], as_of: datetime | None = None
) -> tuple[set[str | None], int]:
    """Ids that a recall restricted to these memories returns, and how many the index proposed."""
    query = RecallQuery(
        "parcel",
        book.bank_id,
        max_results=RECALLED_AT_ONCE,
        memory_ids=tuple(entry.memory_id or "" for entry in entries),
        detail_level=DetailLevel.TITLES,
        as_of=as_of,
    )
    result = await backend.call(ME, Recall(query))
    return {hit.memory_id for hit in result.hits}, result.total_available


def _parts(entries: list[Entry]) -> Iterator[list[Entry]]:
    for start in range(0, len(entries), RECALLED_AT_ONCE):
        yield entries[start : start + RECALLED_AT_ONCE]
