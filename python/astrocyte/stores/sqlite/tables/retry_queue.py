"""The rows of the retry queue: insertion, reading, and deletion with their content."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import apsw

from astrocyte.errors import Conflict, NotFound, RateLimited
from astrocyte.model import Bank, ContentPart, DedupAction, Embedding, ForgetSelector, PartKind, RetainItem
from astrocyte.stores.queue import QueuedItem
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.data_directory import note_unclean
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.rows import fetch, key_array, to_milliseconds
from astrocyte.stores.sqlite.tables import idempotency

# When a caller may try again whom a full queue refused: a provider that is back empties it at hundreds a second.
RETRY_AFTER_SECONDS = 30.0
COLUMNS = "memory_id, principal, item, queue_key, group_key, behalf, hops"

_DATES = ("occurred_at", "valid_from", "valid_until")


def enqueue(
    transaction: Transaction,
    bank: Bank,
    items: Sequence[QueuedItem],
    limit: int,
    responses: Sequence[tuple[RequestKey, bytes]],
) -> None:
    """Put items at the end; see `RetryQueue.enqueue`."""
    connection, work = transaction.connection, transaction.bank(bank)
    transaction.tell(Told(Topic.QUEUE, bank.key))
    ((waiting,),) = fetch(connection, "SELECT count(*) FROM queued_retains")
    if waiting + len(items) > limit:
        raise RateLimited(
            f"{waiting} memories are queued for a provider, the limit is {limit}; nothing was changed; retry later",
            retry_after=RETRY_AFTER_SECONDS,
            metadata={"kind": "retry_queue", "limit": str(limit)},
        )
    group = 0
    for one in items:
        connection.execute(
            "INSERT INTO queued_retains"
            " (bank_key, group_key, memory_id, principal, queued_at, occurred_at, item, behalf, hops)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                bank.key,
                group,
                one.memory_id,
                one.principal,
                work.now,
                None if one.item.occurred_at is None else to_milliseconds(one.item.occurred_at),
                encode_item(one.item),
                one.behalf,
                one.hops,
            ),
        )
        if not group:
            group = connection.last_insert_rowid()
            connection.execute("UPDATE queued_retains SET group_key = queue_key WHERE queue_key = ?", (group,))
    for key, response in responses:
        if idempotency.stored(connection, bank.tenant, key) is not None:
            raise Conflict(
                f"request_id {key.request_id!r} has been answered before; send that request alone to get its answer",
                metadata={"request_id": key.request_id},
            )
        idempotency.store(connection, bank.tenant, key, response, work.now, bank_key=bank.key)


def dequeue(connection: apsw.Connection, bank: Bank, keys: Sequence[int]) -> None:
    """Dequeue items, in the transaction that stores them.

    Raises:
        NotFound: One is no longer there: it was forgotten meanwhile.
    """
    connection.execute(
        "DELETE FROM queued_retains WHERE bank_key = ? AND queue_key IN (SELECT value FROM carray(?))",
        (bank.key, key_array(keys)),
    )
    if connection.changes() != len(keys):
        raise NotFound("a memory in the retry queue was forgotten before it was stored")


def selection(bank: Bank, selector: ForgetSelector) -> tuple[str, list[object]]:
    """A condition on `queued_retains` for the items that a selector meets, as it would meet them when stored."""
    clauses = ["bank_key = ?"]
    bindings: list[object] = [bank.key]
    if selector.memory_ids:
        clauses.append("memory_id IN (SELECT value FROM json_each(?))")
        bindings.append(json.dumps(selector.memory_ids))
    if selector.tags:
        clauses.append(
            "EXISTS (SELECT 1 FROM json_each(item, '$.tags') t WHERE t.value IN (SELECT value FROM json_each(?)))"
        )
        bindings.append(json.dumps(selector.tags))
    if selector.before_date is not None:
        clauses.append("coalesce(occurred_at, queued_at) < ?")
        bindings.append(to_milliseconds(selector.before_date))
    return " AND ".join(clauses), bindings


def drop(connection: apsw.Connection, bank: Bank, selector: ForgetSelector) -> list[str]:
    """Delete the selected items with their text; returns the ids of their memories, in order."""
    condition, bindings = selection(bank, selector)
    ids = fetch(connection, f"SELECT memory_id FROM queued_retains WHERE {condition} ORDER BY queue_key", bindings)
    if ids:
        # They are gone at once and for good: nothing of them can be brought back, so nothing may be left in a file.
        note_unclean(connection, unclean=True)
        connection.execute(f"DELETE FROM queued_retains WHERE {condition}", bindings)
    return [row[0] for row in ids]


def encode_item(item: RetainItem) -> str:
    """An item as JSON."""
    values: dict[str, Any] = {field.name: getattr(item, field.name) for field in fields(item)}
    for name in _DATES:
        values[name] = None if values[name] is None else values[name].isoformat()
    values["metadata"] = dict(item.metadata)
    values["parts"] = [
        [str(part.kind), part.text, base64.b64encode(part.data).decode(), part.url, part.media_type]
        for part in item.parts
    ]
    values["embedding"] = None
    if item.embedding is not None:
        vector = base64.b64encode(item.embedding.values).decode()
        values["embedding"] = [item.embedding.model, item.embedding.dimensions, vector]
    return json.dumps(values, separators=(",", ":"))


def decode_item(text: str) -> RetainItem:
    """The inverse of `encode_item`, of this version or an earlier one."""
    known = {field.name for field in fields(RetainItem)}
    values = {name: value for name, value in json.loads(text).items() if name in known}
    for name in _DATES:
        values[name] = None if values[name] is None else datetime.fromisoformat(values[name])
    values["tags"] = tuple(values["tags"])
    values["parts"] = tuple(
        ContentPart(PartKind(kind), text, base64.b64decode(data), url, media_type)
        for kind, text, data, url, media_type in values.get("parts", ())
    )
    if values["dedup_action"] is not None:
        values["dedup_action"] = DedupAction(values["dedup_action"])
    if values["embedding"] is not None:
        model, dimensions, vector = values["embedding"]
        values["embedding"] = Embedding(model, dimensions, base64.b64decode(vector))
    return RetainItem(**values)


def decode_row(row: Sequence[Any]) -> QueuedItem:
    """A row of `COLUMNS`."""
    memory_id, principal, item, key, group, behalf, hops = row
    return QueuedItem(memory_id, principal, decode_item(item), key, group, behalf, hops)
