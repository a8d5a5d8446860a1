"""Legal holds in SQLite: rows that are closed, never changed, and checked in the transaction of a deletion."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from astrocyte.errors import AlreadyExists, LegalHoldActive, MemoryNotFound, NotFound
from astrocyte.model import AuditEventKind, Bank, ForgetSelector, Hold
from astrocyte.stores.holds import NewHold
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import Row, fetch, to_datetime
from astrocyte.stores.sqlite.tables import audit, idempotency, retry_queue

COLUMNS = (
    "h.hold_key, h.hold_id, b.bank_id, h.memory_ids, h.tags, h.reason, h.placed_by, h.placed_at, h.released_by,"
    " h.released_at, h.expires_at"
)
_HOLDS = f"SELECT {COLUMNS} FROM holds h JOIN banks b USING (bank_key)"
_STANDING = "SELECT hold_id, memory_ids, tags FROM holds WHERE bank_key = ? AND released_at IS NULL ORDER BY hold_key"
# Any version counts, so that a memory does not slip from under a hold by a change of its tags.
_TAGGED = (
    "SELECT m.memory_id FROM tags t JOIN memories m USING (row_key)"
    " WHERE t.bank_key = ? AND t.tag IN (SELECT value FROM json_each(?))"
)
# Whether a standing hold covers the memory m.
HELD = (
    "EXISTS (SELECT 1 FROM holds h WHERE h.bank_key = m.bank_key AND h.released_at IS NULL AND ("
    "(h.memory_ids = '[]' AND h.tags = '[]')"
    " OR m.memory_id IN (SELECT value FROM json_each(h.memory_ids))"
    " OR EXISTS (SELECT 1 FROM memories v JOIN tags t ON t.bank_key = v.bank_key AND t.row_key = v.row_key"
    " WHERE v.bank_key = m.bank_key AND v.memory_id = m.memory_id"
    " AND t.tag IN (SELECT value FROM json_each(h.tags)))))"
)


def check_memories(connection: apsw.Connection, bank: Bank, memory_ids: Sequence[str]) -> None:
    """Refuse the deletion of memories that a hold covers.

    Raises:
        LegalHoldActive: One does; it names all that do.
    """
    standing = fetch(connection, _STANDING, (bank.key,))
    if not standing or not memory_ids:
        return
    going = set(memory_ids)
    holding = []
    for hold_id, listed, tags in standing:
        named = json.loads(listed)
        if (
            (not named and tags == "[]")
            or not going.isdisjoint(named)
            or (tags != "[]" and any(one in going for (one,) in fetch(connection, _TAGGED, (bank.key, tags))))
        ):
            holding.append(hold_id)
    if holding:
        raise LegalHoldActive(bank.bank_id, holding)


def check_queue(connection: apsw.Connection, bank: Bank, selector: ForgetSelector) -> None:
    """Refuse the deletion of selected items in the retry queue that a hold covers.

    Raises:
        LegalHoldActive: One covers it.
    """
    standing = fetch(connection, _STANDING, (bank.key,))
    if not standing:
        return
    condition, bindings = retry_queue.selection(bank, selector)
    waiting = fetch(
        connection, f"SELECT memory_id, json_extract(item, '$.tags') FROM queued_retains WHERE {condition}", bindings
    )
    holding = []
    for hold_id, listed, tags in standing:
        named, tagged = set(json.loads(listed)), set(json.loads(tags))
        if any(
            (not named and not tagged) or one in named or not tagged.isdisjoint(json.loads(own or "[]"))
            for one, own in waiting
        ):
            holding.append(hold_id)
    if holding:
        raise LegalHoldActive(bank.bank_id, holding)


def check_bank(connection: apsw.Connection, bank: Bank) -> None:
    """Refuse the deletion of a bank with any hold, even one that covers no memory yet.

    Raises:
        LegalHoldActive: One does.
    """
    standing = fetch(connection, _STANDING, (bank.key,))
    if standing:
        raise LegalHoldActive(bank.bank_id, [hold_id for hold_id, _, _ in standing])


def check_whole_bank(connection: apsw.Connection, bank: Bank) -> None:
    """Refuse the deletion of what belongs to the bank and to no memory, where a hold covers all of the bank.

    Raises:
        LegalHoldActive: One does.
    """
    standing = fetch(connection, _STANDING, (bank.key,))
    holding = [hold_id for hold_id, named, tags in standing if named == "[]" and tags == "[]"]
    if holding:
        raise LegalHoldActive(bank.bank_id, holding)


class SqliteHolds:
    """Implements `astrocyte.stores.holds.HoldStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    async def place(self, bank: Bank, hold: NewHold, *, by: str, request: RequestKey | None = None) -> Hold:
        """Place a hold."""
        return await self._writer.submit(lambda transaction: _place(transaction, bank, hold, by, request))

    async def release(self, bank: Bank, hold_id: str, *, by: str, request: RequestKey | None = None) -> Hold:
        """Release a hold."""
        return await self._writer.submit(lambda transaction: _release(transaction, bank, hold_id, by, request))

    def listed(
        self, tenant: str, *, bank: Bank | None, released: bool, after: int, limit: int
    ) -> list[tuple[int, Hold]]:
        """Holds with their keys."""
        which = "" if released else " AND h.released_at IS NULL"
        bindings: list[object] = [tenant, after]
        if bank is not None:
            which += " AND h.bank_key = ?"
            bindings.append(bank.key)
        # A bank without tenant is one whose rows are going.
        clauses = f"h.tenant = ? AND b.tenant = h.tenant AND h.hold_key > ?{which}"
        rows = self._connections.query(f"{_HOLDS} WHERE {clauses} ORDER BY h.hold_key LIMIT ?", (*bindings, limit))
        return [(row[0], _decode(row)) for row in rows]


def _place(transaction: Transaction, bank: Bank, hold: NewHold, by: str, request: RequestKey | None) -> Hold:
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return _read(connection, int(earlier))
    now = transaction.bank(bank).now
    for memory_id in hold.memory_ids:
        sql = "SELECT 1 FROM memories WHERE bank_key = ? AND memory_id = ? AND erasing IS NULL LIMIT 1"
        if not fetch(connection, sql, (bank.key, memory_id)):
            raise MemoryNotFound(memory_id, bank.bank_id)
    try:
        connection.execute(
            "INSERT INTO holds (tenant, hold_id, bank_key, memory_ids, tags, reason, placed_by, placed_at,"
            " expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                bank.tenant,
                hold.hold_id,
                bank.key,
                json.dumps(hold.memory_ids),
                json.dumps(hold.tags),
                hold.reason,
                by,
                now,
                hold.expires_at,
            ),
        )
    except apsw.ConstraintError as error:
        raise AlreadyExists(
            f"hold {hold.hold_id!r} exists or existed; use another id", metadata={"hold_id": hold.hold_id}
        ) from error
    key = connection.last_insert_rowid()
    kind = "bank" if not (hold.memory_ids or hold.tags) else "memories"
    details: dict[str, str | int] = {"hold": key, "scope": kind}
    audit.record(transaction, bank.tenant, AuditEventKind.HOLD_PLACED, by, bank_key=bank.key, details=details)
    _keep(transaction, bank, request, key)
    return _read(connection, key)


def _release(transaction: Transaction, bank: Bank, hold_id: str, by: str, request: RequestKey | None) -> Hold:
    connection = transaction.connection
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        return _read(connection, int(earlier))
    now = transaction.bank(bank).now
    sql = "SELECT hold_key, released_at FROM holds WHERE tenant = ? AND hold_id = ? AND bank_key = ?"
    rows = fetch(connection, sql, (bank.tenant, hold_id, bank.key))
    if not rows:
        raise NotFound(
            f"there is no hold {hold_id!r} in bank {bank.bank_id!r}",
            metadata={"hold_id": hold_id, "bank_id": bank.bank_id},
        )
    key, released_at = rows[0]
    if released_at is None:
        connection.execute("UPDATE holds SET released_by = ?, released_at = ? WHERE hold_key = ?", (by, now, key))
        event = AuditEventKind.HOLD_RELEASED
        audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={"hold": key})
    _keep(transaction, bank, request, key)
    return _read(connection, key)


def _keep(transaction: Transaction, bank: Bank, request: RequestKey | None, key: int) -> None:
    """Store an answer for retries of its request: the hold's key, whose row has the rest."""
    if request is not None:
        now = transaction.bank(bank).now
        idempotency.store(transaction.connection, bank.tenant, request, str(key).encode(), now, bank_key=bank.key)


def _read(connection: apsw.Connection, key: int) -> Hold:
    return _decode(fetch(connection, f"{_HOLDS} WHERE h.hold_key = ?", (key,))[0])


def _decode(row: Row) -> Hold:
    """A hold from `COLUMNS`."""
    _, hold_id, bank_id, memory_ids, tags, reason, placed_by, placed_at, released_by, released_at, expires_at = row
    return Hold(
        hold_id,
        bank_id,
        tuple(json.loads(memory_ids)),
        tuple(json.loads(tags)),
        reason,
        placed_by,
        to_datetime(placed_at),
        released_by,
        None if released_at is None else to_datetime(released_at),
        None if expires_at is None else to_datetime(expires_at),
    )
