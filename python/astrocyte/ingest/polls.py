"""A consumer of a polled service: new items become memories, changed items new versions of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import structlog

from astrocyte.api import Backend
from astrocyte.config.sources.polls import PollSource
from astrocyte.errors import RateLimited, ValidationError
from astrocyte.ingest.board import SourceBoard
from astrocyte.ingest.groups import GroupWriter, Ready
from astrocyte.ingest.messages import IngestMessage, message_of
from astrocyte.ingest.versions import Complete, VersionSender
from astrocyte.model import RetainResult, RetentionAction, SourceState
from astrocyte.providers.ingest.protocols import PollDriver, PollItem, PollPage
from astrocyte.stores.ingest import IngestStore, KnownItem

# A service that asks for more is asked again after a day: its clock or its answer may be wrong.
LONGEST_REST_SECONDS = 86_400.0
# A rest of no length would be a loop of requests.
SHORTEST_REST_SECONDS = 0.1
# A cursor holds times, ids and addresses of a service.
MOST_CURSOR_BYTES = 65_536

log = structlog.get_logger("astrocyte.ingest")


class PollConsumer:
    """Moves the items of a source into banks. Used by one task.

    A page's cursor is written after its memories are durable. A page that comes again after a crash is retained under
    the same request ids, and gets its first results. An item whose memory exists becomes its next version.

    Args:
        source_id: The id of the source.
        source: Its settings.
        driver: Asks the service.
        backend: Retains and updates.
        store: Cursors and known items.
        board: Counts and health.
        complete: The item with what its profile and its bank add; they do so themselves at a retain.
        clock: Seconds that never go back.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of the application that it joins
        self,
        source_id: str,
        source: PollSource,
        driver: PollDriver,
        backend: Backend,
        store: IngestStore,
        board: SourceBoard,
        complete: Complete = lambda _, item: item,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._id = source_id
        self._source = source
        self._driver = driver
        self._store = store
        self._board = board
        self._clock = clock
        self._writer = GroupWriter(VersionSender(backend, complete), source.max_tries)
        self._due = 0.0
        self._written: str | None = None
        # The poll in progress, its page that is not stored yet, and what was settled of it; None is an unchanged item.
        self._pages: AsyncIterator[PollPage] | None = None
        self._page: PollPage | None = None
        self._settled: dict[bytes, KnownItem | None] = {}

    async def open(self) -> None:
        """Begin after the last page that is durable."""
        await self._drop()
        await self._driver.open()

    async def close(self) -> None:
        """Release connections."""
        await self._drop()
        await self._driver.close()

    async def step(self) -> None:
        """Store the next page, or try the rest of the last one again; wait first until the next poll is due.

        Raises:
            AstrocyteError: Items could not be stored for now; the next step tries them again.
            AstrocyteError, OSError: The service failed; the next step asks again from the last cursor on.
        """
        if self._page is None:
            self._page = await self._next()
        if self._page is not None:
            self._board.now(self._id, SourceState.RUNNING)
            await self._keep(self._page)
            self._page = None

    async def _next(self) -> PollPage | None:
        """The next page of a poll; None where the poll is at its end, or the service asks to wait."""
        if self._pages is None:
            await asyncio.sleep(max(0.0, self._due - self._clock()))
            self._pages = self._driver.pages(await self._cursor(), self._source.batch_size)
        try:
            page = await anext(self._pages, None)
        except RateLimited as error:
            rest = min(max(error.retry_after, SHORTEST_REST_SECONDS), LONGEST_REST_SECONDS)
            log.info("source_rate_limited", source=self._id, seconds=round(rest, 3))
            await self._rest(rest, SourceState.RESTING)
            return None
        except BaseException:
            self._pages = None
            raise
        if page is None:
            await self._rest(self._source.interval_seconds, SourceState.WAITING)
        return page

    async def _rest(self, seconds: float, state: SourceState) -> None:
        """End a poll; the service answered, so that it is healthy."""
        self._due = self._clock() + seconds
        await self._drop()
        self._board.reached(self._id)
        self._board.now(self._id, state)

    async def _drop(self) -> None:
        pages, self._pages, self._page = self._pages, None, None
        self._settled = {}
        if pages is not None and (close := getattr(pages, "aclose", None)) is not None:
            await close()

    async def _cursor(self) -> dict[str, Any]:
        text = await asyncio.to_thread(self._store.poll_cursor, self._id, self._driver.place)
        cursor: dict[str, Any] = {} if text is None else json.loads(text)
        self._written = text
        return cursor

    async def _keep(self, page: PollPage) -> None:
        """Store what is left of a page, then write its cursor."""
        cursor = json.dumps(page.cursor, separators=(",", ":"))
        if len(cursor.encode()) > MOST_CURSOR_BYTES:
            raise ValidationError(f"has more than {MOST_CURSOR_BYTES} bytes", field="cursor")
        items = {_key(self._driver.place, item.item_id): item for item in page.items}
        left = {key: item for key, item in items.items() if key not in self._settled}
        known = await asyncio.to_thread(self._store.known_items, self._id, left.keys())
        failure = await self._settle(left, known)
        # What is durable is known, even where the cursor has to wait for the rest.
        after = cursor if failure is None else self._written or "{}"
        rows = [item for item in self._settled.values() if item is not None]
        if rows or after != self._written:
            await self._store.advance_poll(self._id, self._driver.place, after, rows)
        self._written = after
        if failure is not None:
            self._settled = dict.fromkeys(self._settled)
            raise failure
        self._settled = {}
        if page.refused:
            self._refused(page.refused, "UNREADABLE")

    async def _settle(self, left: Mapping[bytes, PollItem], known: Mapping[bytes, KnownItem]) -> Exception | None:
        """Store new and changed items; returns why some have to be tried again."""
        ready: list[Ready] = []
        places: dict[str, KnownItem] = {}
        duplicates = 0
        for key, item in left.items():
            version = _digest(item.version)
            before = known.get(key)
            if before is not None and before.version == version:
                duplicates += 1
                self._settled[key] = None
                continue
            try:
                memory = self._memory(item)
            except ValidationError as error:
                # Its memory stays as it was, until there is a version that can be stored.
                bank_id, memory_id = ("", None) if before is None else (before.bank_id, before.memory_id)
                self._settled[key] = KnownItem(key, version, bank_id, memory_id)
                self._refused(1, error.reason)
                continue
            same_bank = before is not None and before.bank_id == memory.bank_id
            memory_id = before.memory_id if before is not None and same_bank else None
            places[key.hex()] = KnownItem(key, version, memory.bank_id, memory_id)
            ready.append(Ready(key.hex(), _request_id(self._id, key, version), memory, memory_id))
        outcome = await self._writer.store(ready)
        for position, result in outcome.done.items():
            self._settled[places[position].key] = _after(places[position], result)
        for position, refusal in outcome.refused.items():
            self._settled[places[position].key] = places[position]
            self._refused(1, refusal.reason)
        if outcome.done or duplicates:
            self._board.stored(self._id, count=len(outcome.done), duplicates=duplicates)
        return outcome.failure

    def _refused(self, count: int, reason: str) -> None:
        self._board.refused(self._id, count)
        log.warning("source_item_refused", source=self._id, reason=reason, count=count)

    def _memory(self, item: PollItem) -> IngestMessage:
        use_message = self._source.mapping is None and item.message is not None
        return message_of(self._source, item.message if use_message and item.message is not None else item.document)


def _after(item: KnownItem, result: RetainResult | None) -> KnownItem:
    """A stored item with the memory that is its own from now on."""
    if result is None:
        return item
    own = result.retention_action in {RetentionAction.CREATED.value, RetentionAction.QUEUED.value}
    if own or result.memory_id == item.memory_id:
        return KnownItem(item.key, item.version, item.bank_id, result.memory_id)
    # A duplicate: the memory is another item's, which must not change with this one.
    return KnownItem(item.key, item.version, item.bank_id, None)


def _key(place: str, item_id: str) -> bytes:
    return _digest(f"{place}\x00{item_id}")


def _digest(text: str) -> bytes:
    # A text of JSON can have halves of characters.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _request_id(source_id: str, key: bytes, version: bytes) -> str:
    """A UUID that is the same whenever the item comes in this version."""
    digest = hashlib.sha256(b"poll\x00" + source_id.encode() + b"\x00" + key + version).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))
