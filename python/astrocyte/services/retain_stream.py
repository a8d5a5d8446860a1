"""StreamRetain: queued items are stored in one batch, and each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from astrocyte.api import Backend
from astrocyte.api.requests import StreamRetain
from astrocyte.errors import AstrocyteError, ValidationError
from astrocyte.model import Caller, RetainItem, RetainResult
from astrocyte.services.convert import ITEMS, RETAIN_RESULTS
from astrocyte.services.draining import Draining
from astrocyte.services.status import to_status
from astrocyte.v1 import memory_pb2

# Items per call of the gate, so per transaction: enough to share a sync of the disk, few enough to answer soon.
BATCH_ITEMS = 64
# Unanswered items from which on the stream is not read; the protocol promises this number.
IN_FLIGHT_ITEMS = 256

Requests = AsyncIterator[memory_pb2.StreamRetainRequest]


@dataclass(frozen=True, slots=True)
class End:
    """The end of the stream: the caller is done, or ``error`` ended the reading."""

    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An item of the stream, or the error that prevents its storage."""

    sequence: int
    bank_id: str
    item: RetainItem | None
    request_id: str | None
    error: AstrocyteError | None = None


async def retain_stream(
    backend: Backend, caller: Caller, requests: Requests, draining: Draining
) -> AsyncIterator[memory_pb2.StreamRetainResponse]:
    """Store items as they come and answer in their order.

    Raises:
        Unavailable: The server stops; every item that was read has been answered.
        ValidationError: A message cannot be parsed; every item before it has been answered.
    """
    # A batch that is being stored and one that is being answered are in flight as well.
    queue: asyncio.Queue[Entry | End] = asyncio.Queue(IN_FLIGHT_ITEMS - 2 * BATCH_ITEMS)
    reader = asyncio.create_task(_read(requests, queue, draining))
    storing = asyncio.create_task(_store_next(backend, caller, queue))
    try:
        end = None
        while end is None:
            responses, end = await storing
            if end is None:
                # The next batch is stored while this one's answers go out; only one, so that items keep their order.
                storing = asyncio.create_task(_store_next(backend, caller, queue))
            for response in responses:
                yield response
        if end.error is not None:
            raise end.error
    finally:
        reader.cancel()
        storing.cancel()
        await asyncio.gather(reader, storing, return_exceptions=True)


async def _read(requests: Requests, queue: asyncio.Queue[Entry | End], draining: Draining) -> None:
    """Put items on the queue until the caller, the server or a failure ends it; the end comes last."""
    bank_id = ""
    end = End()
    try:
        while True:
            # Only the wait for the caller is interrupted: what was read is put on the queue, however long that takes.
            with draining.interrupting():
                request = await anext(requests, None)
            if request is None:
                break
            bank_id = request.bank_id or bank_id
            await queue.put(_entry(request, bank_id))
    except Exception as error:  # noqa: BLE001 - it ends the stream, after the answers that are due
        end = End(error)
    await queue.put(end)


async def _store_next(
    backend: Backend, caller: Caller, queue: asyncio.Queue[Entry | End]
) -> tuple[list[memory_pb2.StreamRetainResponse], End | None]:
    """Store the queued items; returns the answers, and the end if it was reached."""
    entries, end = await _gather(queue)
    return await _store(backend, caller, entries), end


async def _gather(queue: asyncio.Queue[Entry | End]) -> tuple[list[Entry], End | None]:
    """The queued items, at least one before the end, and the end if it was reached."""
    entries: list[Entry] = []
    waiting = await queue.get()
    while isinstance(waiting, Entry):
        entries.append(waiting)
        if len(entries) == BATCH_ITEMS or queue.empty():
            return entries, None
        waiting = queue.get_nowait()
    return entries, waiting


def _entry(request: memory_pb2.StreamRetainRequest, bank_id: str) -> Entry:
    item, error = None, None
    if not bank_id:
        error = ValidationError("is empty; the first item of a stream must name a bank", field="bank_id")
    elif not request.HasField("item"):
        error = ValidationError("is missing", field="item")
    else:
        try:
            item = ITEMS.decode(request.item, "item.")
        except ValidationError as refusal:
            error = refusal
    return Entry(request.sequence, bank_id, item, request.request_id or None, error)


async def _store(backend: Backend, caller: Caller, entries: Sequence[Entry]) -> list[memory_pb2.StreamRetainResponse]:
    """Store the valid items, bank by bank; answers in the order of the entries."""
    outcomes: list[RetainResult | AstrocyteError | None] = [entry.error for entry in entries]
    places: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        if entry.item is not None:
            places.setdefault(entry.bank_id, []).append(place)
    for bank_id, chosen in places.items():
        results = await _store_in_bank(backend, caller, bank_id, [entries[place] for place in chosen])
        for place, result in zip(chosen, results, strict=True):
            outcomes[place] = result
    return [_response(entry, outcome) for entry, outcome in zip(entries, outcomes, strict=True)]


async def _store_in_bank(
    backend: Backend, caller: Caller, bank_id: str, entries: Sequence[Entry]
) -> Sequence[RetainResult | AstrocyteError]:
    items = [entry.item for entry in entries if entry.item is not None]
    request_ids = [entry.request_id for entry in entries]
    try:
        return await backend.call(caller, StreamRetain(bank_id, items, request_ids))
    except AstrocyteError as error:
        # It concerns the bank, so each of its items; those of other banks go on.
        return [error] * len(items)


def _response(entry: Entry, outcome: RetainResult | AstrocyteError | None) -> memory_pb2.StreamRetainResponse:
    if isinstance(outcome, RetainResult):
        return memory_pb2.StreamRetainResponse(sequence=entry.sequence, result=RETAIN_RESULTS.encode(outcome))
    error = outcome or AstrocyteError("internal error: the item has no outcome")
    return memory_pb2.StreamRetainResponse(sequence=entry.sequence, error=to_status(error))
