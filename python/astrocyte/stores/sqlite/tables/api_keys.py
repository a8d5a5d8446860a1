"""API keys in SQLite, and the live ones in memory, where every call looks."""

from __future__ import annotations

from collections.abc import Mapping

from astrocyte.errors import FailedPrecondition, NotFound
from astrocyte.model import AuditEventKind, Caller, KeyInfo
from astrocyte.stores.access import MOST_LIVE_KEYS, LiveKey, NewKey
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import Row, fetch, to_datetime
from astrocyte.stores.sqlite.tables import audit, idempotency

COLUMNS = "key_id, tenant, name, principal, created_by, created_at, expires_at, last_used_at, revoked_by, revoked_at"
_ONE = f"SELECT {COLUMNS} FROM api_keys WHERE key_id = ? AND tenant = ?"
_LIVE = "SELECT key_id, digest, tenant, principal, expires_at FROM api_keys WHERE revoked_at IS NULL"


class SqliteKeys:
    """Implements `astrocyte.stores.access.KeyStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections
        # The writer's thread keeps this equal to the rows, and what other processes tell.
        self._live: dict[str, LiveKey] = dict(map(_decode_live, connections.query(_LIVE)))
        self._sharing = writer.sharing
        if self._sharing is not None:
            self._sharing.follow(self._on_told)

    def _on_told(self, told: Told) -> None:
        """Read the key that another process made or ended."""
        if told.topic is Topic.KEY:
            self._end(told.name)
            self._live.update(map(_decode_live, self._connections.query(f"{_LIVE} AND key_id = ?", (told.name,))))

    def live(self, key_id: str) -> LiveKey | None:
        """The hash that a key is checked against."""
        if self._sharing is not None:
            # A key is looked up before the gate, which does the same.
            self._sharing.refresh()
        return self._live.get(key_id)

    def listed(self, tenant: str) -> list[KeyInfo]:
        """All keys of a tenant."""
        sql = f"SELECT {COLUMNS} FROM api_keys WHERE tenant = ? ORDER BY created_at, key_id"
        return [_decode(row) for row in self._connections.query(sql, (tenant,))]

    async def create(self, new: NewKey, *, by: str, request: RequestKey | None = None) -> tuple[KeyInfo, bool]:
        """Keep a key."""
        return await self._writer.submit(lambda transaction: self._create(transaction, new, by, request))

    async def revoke(self, tenant: str, key_id: str, *, by: str, request: RequestKey | None = None) -> KeyInfo:
        """End a key."""
        return await self._writer.submit(lambda transaction: self._revoke(transaction, tenant, key_id, by, request))

    async def note_uses(self, uses: Mapping[str, int]) -> None:
        """Store the times of the last use of keys."""

        def note(transaction: Transaction) -> None:
            for key_id, moment in uses.items():
                transaction.connection.execute(
                    "UPDATE api_keys SET last_used_at = ? WHERE key_id = ?", (moment, key_id)
                )

        await self._writer.submit(note)

    def _create(
        self, transaction: Transaction, new: NewKey, by: str, request: RequestKey | None
    ) -> tuple[KeyInfo, bool]:
        connection, now = transaction.connection, transaction.clock()
        earlier = idempotency.stored(connection, new.tenant, request)
        if earlier is not None:
            return _decode(fetch(connection, _ONE, (earlier.decode(), new.tenant))[0]), False
        ((count,),) = fetch(
            connection,
            "SELECT count(*) FROM api_keys WHERE tenant = ? AND name = ? AND revoked_at IS NULL"
            " AND (expires_at IS NULL OR expires_at > ?)",
            (new.tenant, new.name, now),
        )
        if count >= MOST_LIVE_KEYS:
            raise FailedPrecondition(
                f"there are {count} live keys of the name {new.name!r}, which is the limit; revoke one first",
                metadata={"name": new.name},
            )
        connection.execute(
            "INSERT INTO api_keys (key_id, tenant, name, principal, digest, created_by, created_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (new.key_id, new.tenant, new.name, new.principal, new.digest, by, now, new.expires_at),
        )
        details = {"key_id": new.key_id}
        audit.record(transaction, new.tenant, AuditEventKind.KEY_CREATED, by, details=details)
        _keep(transaction, new.tenant, request, new.key_id)
        live = LiveKey(new.digest, Caller(new.tenant, new.principal), new.expires_at)
        transaction.after_commit(lambda: self._live.__setitem__(new.key_id, live))
        transaction.tell(Told(Topic.KEY, name=new.key_id))
        return _decode(fetch(connection, _ONE, (new.key_id, new.tenant))[0]), True

    def _revoke(
        self, transaction: Transaction, tenant: str, key_id: str, by: str, request: RequestKey | None
    ) -> KeyInfo:
        connection = transaction.connection
        # Raises where the id was used by another request; an equal one finds the key as it left it.
        idempotency.stored(connection, tenant, request)
        connection.execute(
            "UPDATE api_keys SET revoked_by = ?, revoked_at = ? WHERE key_id = ? AND tenant = ? AND revoked_at IS NULL",
            (by, transaction.clock(), key_id, tenant),
        )
        revoked = connection.changes()
        rows = fetch(connection, _ONE, (key_id, tenant))
        if not rows:
            raise NotFound(f"there is no key {key_id!r}", metadata={"key_id": key_id})
        if revoked:
            event, details = AuditEventKind.KEY_REVOKED, {"key_id": key_id}
            audit.record(transaction, tenant, event, by, details=details)
        _keep(transaction, tenant, request, key_id)
        transaction.after_commit(lambda: self._end(key_id))
        transaction.tell(Told(Topic.KEY, name=key_id))
        return _decode(rows[0])

    def _end(self, key_id: str) -> None:
        self._live.pop(key_id, None)


def _keep(transaction: Transaction, tenant: str, request: RequestKey | None, key_id: str) -> None:
    if request is not None:
        now = transaction.clock()
        idempotency.store(
            transaction.connection, tenant, request, key_id.encode(), now, bank_key=None, outlives_bank=True
        )


def _decode_live(row: Row) -> tuple[str, LiveKey]:
    key_id, digest, tenant, principal, expires_at = row
    return key_id, LiveKey(digest, Caller(tenant, principal), expires_at)


def _decode(row: Row) -> KeyInfo:
    """A key from `COLUMNS`."""
    key_id, tenant, name, principal, created_by, created_at, *rest = row
    expires_at, last_used_at, revoked_by, revoked_at = rest
    times = [None if moment is None else to_datetime(moment) for moment in (expires_at, last_used_at, revoked_at)]
    return KeyInfo(
        key_id, tenant, name, principal, created_by, to_datetime(created_at), times[0], times[1], revoked_by, times[2]
    )
