"""The store of observations, mental models and directives in SQLite."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from astrocyte.errors import AstrocyteError
from astrocyte.model import Bank, RevisionCause
from astrocyte.stores.knowledge.items import (
    Body,
    Change,
    ItemHistory,
    ItemKind,
    ItemRecord,
    NewItem,
    Removal,
    RevisionRecord,
    SourceRecord,
    Standing,
    shown,
)
from astrocyte.stores.records import IndexBatch, RequestKey
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, Array, decode_bank, fetch
from astrocyte.stores.sqlite.tables import archives
from astrocyte.stores.sqlite.tables.knowledge import changes
from astrocyte.stores.sqlite.tables.knowledge.rows import ITEMS, decode_body, items, sources_of

T = TypeVar("T")
# Banks of a tenant that are named for one id: enough to say that there are several.
MOST_BANKS = 100
# Banks of which the kinds of items are kept in memory; a caller can invent banks without end.
KEPT_BANKS = 100_000
# Revisions read for one page entry at least: hidden ones are passed over.
LEAST_READ = 64


class SqliteKnowledge:
    """Implements `astrocyte.stores.knowledge.items.KnowledgeStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections
        self._epochs: defaultdict[int, int] = defaultdict(int)
        self._kinds: dict[int, tuple[int, frozenset[ItemKind]]] = {}
        # Looked into by every recall, which spares most of them a call.
        self.itemless: set[int] = set()
        writer.subscribe(self._on_commit, "erased")
        if writer.sharing is not None:
            writer.sharing.follow(self._on_told)

    def _on_told(self, told: Told) -> None:
        """Note that another process may have changed items of a bank."""
        if told.topic is Topic.KNOWLEDGE or (told.topic is Topic.CHANGES and told.erased):
            self._changed(told.bank)

    def _on_commit(self, batch: IndexBatch) -> None:
        """Note that an erasure may have taken items of a bank."""
        self.bump(batch.bank)

    async def create(self, bank: Bank, item: NewItem, *, by: str, request: RequestKey | None = None) -> ItemRecord:
        """Store an item."""
        return await self._change(bank, lambda transaction: changes.create(transaction, bank, item, by, request))

    async def revise(  # noqa: PLR0913 - the signature of KnowledgeStore
        self,
        bank: Bank,
        kind: ItemKind,
        item_id: str,
        change: Change,
        *,
        by: str,
        request: RequestKey | None = None,
        note: str = "",
    ) -> tuple[ItemRecord, str]:
        """Make a new revision."""
        return await self._change(
            bank, lambda transaction: changes.revise(transaction, bank, kind, item_id, change, by, request, note)
        )

    async def delete(
        self,
        bank: Bank,
        kind: ItemKind,
        item_id: str,
        removal: Removal,
        *,
        by: str,
        request: RequestKey | None = None,
    ) -> bool:
        """Delete an item, or hide it."""
        return await self._change(
            bank, lambda transaction: changes.delete(transaction, bank, kind, item_id, removal, by, request)
        )

    def changeable(self, bank: Bank, kind: ItemKind, item_id: str, expected_etag: str | None) -> bool:
        """True if there is an item that may be changed or deleted."""
        with self._connections.snapshot() as connection:
            return changes.changeable(connection, bank, kind, item_id, expected_etag) is not None

    async def undelete(
        self, bank: Bank, kind: ItemKind, item_id: str, *, by: str, request: RequestKey | None = None
    ) -> ItemRecord:
        """Show a hidden item again."""
        return await self._change(
            bank, lambda transaction: changes.undelete(transaction, bank, kind, item_id, by, request)
        )

    def hidden(self, bank: Bank, kind: ItemKind, item_id: str) -> ItemRecord | None:
        """The item, hidden or not."""
        with self._connections.snapshot() as connection:
            return changes.named(connection, bank, kind, item_id, hidden=True)

    async def invalidate(
        self, bank: Bank, memory_ids: Sequence[str], *, by: str, request: RequestKey | None = None
    ) -> int:
        """Delete the observations that rest on memories."""
        return await self._change(
            bank, lambda transaction: changes.invalidate(transaction, bank, memory_ids, by, request)
        )

    def invalidated(self, bank: Bank, memory_ids: Sequence[str]) -> int:
        """The number of observations that rest on memories."""
        with self._connections.snapshot() as connection:
            return len(changes.resting(connection, bank, memory_ids))

    def sources(self, bank: Bank, scope: str, memory_ids: Sequence[str]) -> tuple[SourceRecord, ...]:
        """The memories as an item of the scope would cite them."""
        with self._connections.snapshot() as connection:
            return tuple(changes.cited(connection, bank, scope, memory_ids))

    def naming(self, bank: Bank, name: str, limit: int) -> list[str]:
        """Ids of the newest current memories that name an entity."""
        rows = self._connections.query(
            "SELECT DISTINCT m.memory_id FROM entities e JOIN memories m USING (row_key)"
            " WHERE e.bank_key = ? AND replace(e.folded, '-', ' ') = ? AND m.known_until IS NULL"
            " AND m.forgotten_at IS NULL ORDER BY m.row_key DESC LIMIT ?",
            (bank.key, name, limit),
        )
        return [memory_id for (memory_id,) in rows]

    def get(self, bank: Bank, kind: ItemKind, item_id: str) -> ItemRecord | None:
        """The item, or None."""
        with self._connections.snapshot() as connection:
            return changes.named(connection, bank, kind, item_id)

    def listed(self, bank: Bank, kind: ItemKind, *, scope: str, after: int, limit: int) -> list[ItemRecord]:
        """The first items after a key."""
        which = " AND i.scope = ?" if scope else ""
        clause = f"i.bank_key = ? AND b.tenant = ? AND i.kind = ? AND i.deleted_at IS NULL AND i.item_key > ?{which}"
        with self._connections.snapshot() as connection:
            while True:
                bindings = (bank.key, bank.tenant, str(kind), after, *([scope] if scope else []), limit)
                rows = fetch(connection, f"{ITEMS} WHERE {clause} ORDER BY i.item_key LIMIT ?", bindings)
                found = items(connection, rows)
                if found or len(rows) < limit:
                    return found
                after = rows[-1][0]

    def of_keys(self, bank: Bank, keys: Sequence[int]) -> list[ItemRecord]:
        """The items of these keys that are shown."""
        if not keys:
            return []
        with self._connections.snapshot() as connection:
            rows = fetch(
                connection,
                f"{ITEMS} WHERE i.item_key IN (SELECT value FROM carray(?1)) AND i.bank_key = ?2 AND b.tenant = ?3"
                " AND i.deleted_at IS NULL",
                (Array(array("q", keys)), bank.key, bank.tenant),
            )
            found = {record.key: record for record in items(connection, rows)}
        return [found[key] for key in keys if key in found]

    def texts(self, bank: Bank, keys: Sequence[int]) -> list[tuple[int, ItemKind, int, Body]]:
        """Key, kind, revision and body of these items, hidden parts included."""
        rows = self._connections.query(
            f"{ITEMS} WHERE i.item_key IN (SELECT value FROM carray(?1)) AND i.bank_key = ?2 AND b.tenant = ?3"
            " AND i.deleted_at IS NULL",
            (Array(array("q", keys)), bank.key, bank.tenant),
        )
        return [(row[0], ItemKind(row[2]), row[10], decode_body(row[12])) for row in rows]

    def revisions(self, bank: Bank, kind: ItemKind, item_id: str, *, before: int, limit: int) -> list[RevisionRecord]:
        """The revisions before a number, newest first."""
        with self._connections.snapshot() as connection:
            item = changes.named(connection, bank, kind, item_id)
            if item is None:
                raise changes.missing(bank, kind, item_id)
            sources = sources_of(connection, [item.key], current_only=False)
            found: list[RevisionRecord] = []
            while len(found) < limit:
                rows = fetch(
                    connection,
                    "SELECT revision, cause, body, changed_by, changed_at FROM knowledge_revisions"
                    " WHERE item_key = ? AND revision < ? ORDER BY revision DESC LIMIT ?",
                    (item.key, before, max(limit, LEAST_READ)),
                )
                for revision, cause, body, changed_by, changed_at in rows:
                    own = tuple(sources.get((item.key, revision), ()))
                    record = RevisionRecord(
                        revision, RevisionCause(cause), decode_body(body), changed_by, changed_at, own
                    )
                    visible = shown(kind, record)
                    found += [] if visible is None else [visible]
                if not rows:
                    break
                before = rows[-1][0]
        return found[:limit]

    def histories(
        self, bank: Bank, kind: ItemKind, *, after: int, limit: int, at_position: int
    ) -> tuple[list[ItemHistory], int]:
        """The next items with their revisions."""
        with self._connections.snapshot() as connection:
            return archives.item_histories(connection, bank, kind, after, limit, at_position)

    def standings(self, bank: Bank, items: Sequence[ItemHistory], *, overwrite: bool) -> list[Standing]:
        """The relation of each item of an archive to what the bank has."""
        with self._connections.snapshot() as connection:
            return archives.item_standings(connection, bank, items, overwrite=overwrite)

    async def restore(
        self, bank: Bank, items: Sequence[tuple[ItemHistory, int]], *, by: str, overwrite: bool
    ) -> list[bool | AstrocyteError]:
        """Store items of an archive."""
        return await self._change(
            bank, lambda transaction: archives.restore_items(transaction, bank, items, by, overwrite=overwrite)
        )

    def current_revisions(self, bank: Bank, kinds: Collection[ItemKind]) -> dict[int, int]:
        """The current revision of each item of some kinds, by key."""
        rows = self._connections.query(
            "SELECT item_key, revision FROM knowledge_items WHERE bank_key = ?"
            " AND kind IN (SELECT value FROM json_each(?)) AND deleted_at IS NULL",
            (bank.key, json.dumps(sorted(kinds))),
        )
        return dict(rows)

    def banks_with(self, tenant: str, kind: ItemKind, item_id: str) -> list[Bank]:
        """The banks of a tenant that have such an item."""
        columns = ", ".join(f"b.{column}" for column in BANK_COLUMNS.split(", "))
        rows = self._connections.query(
            f"SELECT {columns} FROM banks b JOIN knowledge_items i USING (bank_key)"
            " WHERE b.tenant = ? AND i.kind = ? AND i.item_id = ? ORDER BY b.bank_id LIMIT ?",
            (tenant, str(kind), item_id, MOST_BANKS),
        )
        return [decode_bank(row) for row in rows]

    def kinds(self, bank: Bank) -> frozenset[ItemKind]:
        """The kinds of items that a bank has."""
        epoch = self.epoch(bank)
        known = self._kinds.get(bank.key)
        if known is None or known[0] != epoch:
            rows = self._connections.query(
                "SELECT DISTINCT kind FROM knowledge_items WHERE bank_key = ? AND deleted_at IS NULL", (bank.key,)
            )
            if len(self._kinds) >= KEPT_BANKS:
                self._kinds.clear()
                self.itemless.clear()
            known = self._kinds[bank.key] = (epoch, frozenset(ItemKind(kind) for (kind,) in rows))
            if not known[1]:
                self.itemless.add(bank.key)
                if self.epoch(bank) != epoch:
                    # An item was made since the query, perhaps before the line above.
                    self.itemless.discard(bank.key)
        return known[1]

    def epoch(self, bank: Bank) -> int:
        """A number that grows with each change of a bank's items."""
        return self._epochs.get(bank.key, 0)

    async def _change(self, bank: Bank, work: Callable[[Transaction], T]) -> T:
        """A write, after which what is kept of the bank counts no more."""

        def run(transaction: Transaction) -> T:
            self.changing(transaction, bank)
            return work(transaction)

        return await self._writer.submit(run)

    def changing(self, transaction: Transaction, bank: Bank) -> None:
        """Let go of what is kept of a bank's items, here and in other processes, when this is committed."""
        transaction.after_commit(lambda: self.bump(bank))
        transaction.tell(Told(Topic.KNOWLEDGE, bank.key))

    def bump(self, bank: Bank) -> None:
        """Note that items of a bank changed."""
        self._changed(bank.key)

    def _changed(self, bank_key: int) -> None:
        # In this order: see `kinds`.
        self._epochs[bank_key] += 1
        self.itemless.discard(bank_key)
