"""The entity graphs of all banks in SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from astrocyte.errors import AstrocyteError
from astrocyte.model import AuditEventKind, Bank, EntityLink, KnownEntity, Metadata, NewEntityLink
from astrocyte.stores.graph.entity_graph import (
    ArchivedEntity,
    ArchivedLink,
    DerivedVersion,
    GraphView,
    Rebuild,
    Resolve,
    SourceVersion,
    Unjudged,
)
from astrocyte.stores.knowledge.items import Standing
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sharing import Told, Topic
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.graph import archives, derived_rows, feed, judgement
from astrocyte.stores.sqlite.graph.caller_changes import Changes
from astrocyte.stores.sqlite.graph.reader import SqliteGraphReader
from astrocyte.stores.sqlite.graph.readings import SOURCE_COLUMNS, SOURCE_JOINS, decode_source
from astrocyte.stores.sqlite.graph.resolution import resolve_some
from astrocyte.stores.sqlite.rows import fetch
from astrocyte.stores.sqlite.tables import audit, idempotency

_SOURCES = (
    f"SELECT {SOURCE_COLUMNS} FROM memories m {SOURCE_JOINS}"
    " WHERE m.row_key > ?1 AND m.row_key <= ?2 AND m.erasing IS NULL{} ORDER BY m.row_key LIMIT ?3"
)
_LARGEST = 2**63 - 1

T = TypeVar("T")


class SqliteEntityGraph:
    """Implements `astrocyte.stores.graph.entity_graph.EntityGraphStore`; see there for each method and its errors."""

    def __init__(self, writer: Writer, connections: Connections, announce: Callable[[], None]) -> None:
        self._writer = writer
        self._connections = connections
        # Tells those who follow the graphs of a change.
        self._announce = announce

    @contextmanager
    def reader(self, view: GraphView) -> Iterator[SqliteGraphReader]:
        """Reads of one committed state."""
        with self._connections.snapshot() as connection:
            yield SqliteGraphReader(connection, view)

    def progress(self) -> tuple[int, int]:
        """Row keys of the last version with graph rows, and of the last version."""
        ((done, last),) = self._connections.query(
            "SELECT row_key, (SELECT coalesce(max(row_key), 0) FROM memories) FROM entity_graph_progress"
        )
        return done, last

    def pending(self) -> int:
        """Number of versions without graph rows."""
        ((count,),) = self._connections.query(
            "SELECT count(*) FROM memories WHERE erasing IS NULL"
            " AND row_key > (SELECT row_key FROM entity_graph_progress)"
        )
        return int(count)

    def sources(
        self, after: int, *, limit: int, until: int | None = None, bank_key: int | None = None
    ) -> list[SourceVersion]:
        """Versions after a row key that may be derived."""
        bindings: list[object] = [after, _LARGEST if until is None else until, limit]
        which = ""
        if bank_key is not None:
            which = " AND m.bank_key = ?4"
            bindings.append(bank_key)
        return [decode_source(row) for row in self._connections.query(_SOURCES.format(which), bindings)]

    def unresolved(self) -> bool:
        """True if names wait to be resolved."""
        return bool(self._connections.query("SELECT 1 FROM graph_entities WHERE unresolved = 1 LIMIT 1"))

    def rebuilds(self) -> list[Rebuild]:
        """Rebuilds in progress, by bank."""
        rows = self._connections.query("SELECT bank_key, row_key, until_row_key FROM graph_rebuilds ORDER BY bank_key")
        return [Rebuild(*row) for row in rows]

    async def put(self, versions: Sequence[DerivedVersion], *, through: int, rebuild: int | None = None) -> None:
        """Replace the graph rows of versions."""

        def work(transaction: Transaction) -> None:
            connection = transaction.connection
            derived_rows.put(connection, versions)
            if rebuild is None:
                connection.execute("UPDATE entity_graph_progress SET row_key = max(row_key, ?)", (through,))
            else:
                connection.execute("UPDATE graph_rebuilds SET row_key = ? WHERE bank_key = ?", (through, rebuild))
                connection.execute(
                    "DELETE FROM graph_rebuilds WHERE bank_key = ? AND row_key >= until_row_key", (rebuild,)
                )

        await self._change(work, weight=max(1, len(versions)))

    async def resolve(self, resolve: Resolve, *, limit: int) -> int:
        """Decide on the aliases of new entities."""
        if not self.unresolved():
            return 0
        return await self._change(lambda transaction: resolve_some(transaction, resolve, limit))

    def unjudged(self, limit: int) -> list[Unjudged]:
        """Entities of which no language model was asked."""
        with self._connections.snapshot() as connection:
            return judgement.unjudged(connection, limit)

    def comparable(self, unjudged: Unjudged) -> dict[int, KnownEntity]:
        """Entities that may be the same one."""
        with self._connections.snapshot() as connection:
            return judgement.comparable(connection, unjudged)

    def passages(self, keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Passages that mention entities."""
        with self._connections.snapshot() as connection:
            return {key: judgement.passages(connection, key) for key in keys}

    async def judge(self, unjudged: Unjudged, target: int | None, evidence: str, confidence: float) -> None:
        """Note that a language model was asked."""
        await self._change(lambda transaction: judgement.judge(transaction, unjudged, target, evidence, confidence))

    async def start_rebuild(self, bank: Bank, *, by: str, request: RequestKey | None = None) -> None:
        """Let the bank's derived rows be made again."""

        def work(transaction: Transaction) -> None:
            connection = transaction.connection
            if idempotency.stored(connection, bank.tenant, request) is not None:
                return
            now = transaction.bank(bank).now
            if not fetch(connection, "SELECT 1 FROM graph_rebuilds WHERE bank_key = ?", (bank.key,)):
                feed.refill(connection, bank)
            connection.execute(
                "INSERT INTO graph_rebuilds SELECT ?1, 0, coalesce(max(row_key), 0) FROM memories WHERE bank_key = ?1"
                " HAVING count(*) > 0 ON CONFLICT (bank_key) DO NOTHING",
                (bank.key,),
            )
            event = AuditEventKind.GRAPH_REBUILD_STARTED
            audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={})
            if request is not None:
                idempotency.store(connection, bank.tenant, request, b"0", now, bank_key=bank.key)

        await self._change(work)

    async def clear(self, bank: Bank) -> list[str]:
        """Delete the entities that nothing names."""

        def work(transaction: Transaction) -> list[str]:
            transaction.bank(bank)
            return derived_rows.clear(transaction.connection, bank)

        return await self._change(work)

    async def create_links(
        self, bank: Bank, links: Sequence[NewEntityLink], *, by: str, request: RequestKey | None = None
    ) -> list[EntityLink]:
        """Store links of a caller."""

        def work(transaction: Transaction) -> list[int]:
            earlier: list[int] | None = Changes.answered(transaction, bank, request)
            return Changes(transaction, bank, by, request).create_links(links) if earlier is None else earlier

        keys = await self._change(work, weight=max(1, len(links)))
        with self.reader(GraphView(bank)) as reader:
            made = reader.links(keys)
        return [made[key] for key in keys if key in made]

    async def delete_link(self, bank: Bank, link_id: str, *, by: str, request: RequestKey | None = None) -> str:
        """Delete a link of a caller."""

        def work(transaction: Transaction) -> str:
            earlier: str | None = Changes.answered(transaction, bank, request)
            return Changes(transaction, bank, by, request).delete_link(link_id) if earlier is None else earlier

        return await self._change(work, frees=True)

    async def update_entity(  # noqa: PLR0913 - the signature of EntityGraphStore
        self,
        bank: Bank,
        entity_id: str,
        *,
        name: str | None,
        aliases: Sequence[str] | None,
        metadata: Metadata | None,
        words: Mapping[str, frozenset[str]],
        expected_etag: str | None,
        by: str,
        request: RequestKey | None = None,
    ) -> int:
        """Change the fields that are not None."""

        def work(transaction: Transaction) -> int:
            earlier: int | None = Changes.answered(transaction, bank, request)
            if earlier is not None:
                return earlier
            changes = Changes(transaction, bank, by, request)
            return changes.update(entity_id, name, aliases, metadata, words, expected_etag)

        return await self._change(work)

    async def merge(
        self,
        bank: Bank,
        entity_ids: Sequence[str],
        into: str,
        *,
        reason: str,
        by: str,
        request: RequestKey | None = None,
    ) -> int:
        """Merge entities into another one."""

        def work(transaction: Transaction) -> int:
            earlier: int | None = Changes.answered(transaction, bank, request)
            if earlier is not None:
                return earlier
            return Changes(transaction, bank, by, request).merge(entity_ids, into, reason)

        return await self._change(work)

    async def split(
        self, bank: Bank, entity_id: str, *, reason: str, by: str, request: RequestKey | None = None
    ) -> int:
        """Undo the merge of an entity."""

        def work(transaction: Transaction) -> int:
            earlier: int | None = Changes.answered(transaction, bank, request)
            return Changes(transaction, bank, by, request).split(entity_id, reason) if earlier is None else earlier

        return await self._change(work)

    async def record_export(self, bank: Bank, *, by: str) -> None:
        """Record in the audit log that the graph was exported."""
        event = AuditEventKind.GRAPH_EXPORTED
        await self._writer.submit(
            lambda transaction: audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={})
        )

    def archived_entities(self, bank: Bank, *, after: str, limit: int) -> list[ArchivedEntity]:
        """Entities that have fields or links of callers."""
        with self._connections.snapshot() as connection:
            return archives.entities(connection, bank, after, limit)

    def archived_links(self, bank: Bank, *, after: int, limit: int) -> tuple[list[ArchivedLink], int]:
        """Links of callers."""
        with self._connections.snapshot() as connection:
            return archives.links(connection, bank, after, limit)

    def standings(
        self, bank: Bank, rows: Sequence[ArchivedEntity | ArchivedLink], *, overwrite: bool
    ) -> list[Standing]:
        """The relation of each row of an archive to what the bank has."""
        with self._connections.snapshot() as connection:
            return archives.standings(connection, bank, rows, overwrite=overwrite)

    async def restore(
        self,
        bank: Bank,
        rows: Sequence[ArchivedEntity | ArchivedLink],
        words: Mapping[str, frozenset[str]],
        *,
        by: str,
        overwrite: bool,
    ) -> list[bool | AstrocyteError]:
        """Store rows of an archive."""

        def work(transaction: Transaction) -> list[bool | AstrocyteError]:
            return archives.restore(transaction, bank, rows, words, by, overwrite=overwrite)

        return await self._change(work, weight=max(1, len(rows)))

    async def _change(self, work: Callable[[Transaction], T], *, weight: int = 1, frees: bool = False) -> T:
        """Run a job of the writer that changes graphs."""

        def run(transaction: Transaction) -> T:
            transaction.tell(Told(Topic.WORK))
            return work(transaction)

        result = await self._writer.submit(run, weight=weight, frees=frees)
        self._announce()
        return result
