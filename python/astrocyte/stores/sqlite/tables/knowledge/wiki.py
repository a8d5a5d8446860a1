"""The store of wiki pages in SQLite."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

import apsw

from astrocyte.errors import FailedPrecondition, LegalHoldActive, MemoryNotFound
from astrocyte.model import BANK_SCOPE, ENTITY_SCOPE, TAG_SCOPE, AuditEventKind, Bank, PageKind, RevisionCause
from astrocyte.stores.knowledge.items import Change, ItemKind, ItemRecord, NewItem
from astrocyte.stores.knowledge.wiki import Member, Outcome, PageDraft, PageState, Topic
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import MEMORY_COLUMNS, PASSAGES_PER_ROW, Array, decode_memory, fetch, key_array
from astrocyte.stores.sqlite.tables import audit, idempotency
from astrocyte.stores.sqlite.tables.knowledge import changes
from astrocyte.stores.sqlite.tables.knowledge.rows import ITEMS, delete_items, items
from astrocyte.stores.sqlite.tables.knowledge.store import SqliteKnowledge
from astrocyte.stores.sqlite.tables.vectors import table_of

KIND = ItemKind.WIKI_PAGE
# The ids of pages of clusters begin with it.
_CLUSTER = f"{PageKind.CLUSTER}:"
_CURRENT = "m.known_until IS NULL AND m.forgotten_at IS NULL"
_TAGS = f"SELECT t.tag, t.row_key FROM tags t JOIN memories m USING (row_key) WHERE t.bank_key = ? AND {_CURRENT}"
_NAMES = (
    "SELECT replace(e.folded, '-', ' '), e.row_key FROM entities e JOIN memories m USING (row_key)"
    f" WHERE e.bank_key = ? AND {_CURRENT}"
)
_GRAPH = (
    "SELECT g.entity_key, g.entity_id, n.row_key FROM graph_entities g JOIN entity_mentions n USING (entity_key)"
    f" JOIN memories m USING (row_key) WHERE g.bank_key = ? AND {_CURRENT} ORDER BY g.entity_key, n.row_key"
)


class SqliteWiki:
    """Implements `astrocyte.stores.knowledge.wiki.WikiStore`; see there for what each method does."""

    def __init__(self, writer: Writer, connections: Connections, knowledge: SqliteKnowledge) -> None:
        self._writer = writer
        self._connections = connections
        self._knowledge = knowledge

    def topics(self, bank: Bank, scope: str) -> tuple[list[Topic], int]:
        """The topics of a scope, and the number of memories of the bank."""
        found: list[Topic] = []
        with self._connections.snapshot() as connection:
            ((count,),) = fetch(
                connection, f"SELECT count(*) FROM memories m WHERE m.bank_key = ? AND {_CURRENT}", (bank.key,)
            )
            if scope == BANK_SCOPE or scope.startswith(TAG_SCOPE):
                which = "" if scope == BANK_SCOPE else " AND t.tag = ?"
                rows = fetch(connection, _TAGS + which, _bindings(bank, scope, TAG_SCOPE))
                found += _grouped(PageKind.TOPIC, TAG_SCOPE, rows)
            if scope == BANK_SCOPE or scope.startswith(ENTITY_SCOPE):
                which = "" if scope == BANK_SCOPE else " AND replace(e.folded, '-', ' ') = ?"
                rows = fetch(connection, _NAMES + which, _bindings(bank, scope, ENTITY_SCOPE))
                found += _grouped(PageKind.ENTITY, ENTITY_SCOPE, rows)
            if scope == BANK_SCOPE:
                known = {topic.name for topic in found if topic.kind is PageKind.ENTITY}
                found += _of_graph(fetch(connection, _GRAPH, (bank.key,)), known)
        return found, count

    def members(self, bank: Bank, topic: Topic, row_keys: Sequence[int]) -> list[Member]:
        """The memories of these row keys that are current."""
        if not row_keys:
            return []
        chosen = Array(array("q", row_keys))
        with self._connections.snapshot() as connection:
            rows = fetch(
                connection,
                f"SELECT {MEMORY_COLUMNS} FROM carray(?1) w CROSS JOIN memories m ON m.row_key = w.value"
                f" JOIN contents c USING (row_key) WHERE m.bank_key = ?2 AND {_CURRENT}"
                " ORDER BY coalesce(m.occurred_at, m.retained_at), m.row_key",
                (chosen, bank.key),
            )
            names: dict[int, list[str]] = defaultdict(list)
            if topic.entity_key:
                for row_key, name in fetch(
                    connection,
                    "SELECT row_key, name FROM entity_mentions WHERE entity_key = ?"
                    " AND row_key IN (SELECT value FROM carray(?)) ORDER BY row_key, first_char",
                    (topic.entity_key, chosen),
                ):
                    names[row_key].append(name)
        made = []
        for row in rows:
            memory = decode_memory(row, bank.bank_id)
            called = names.get(row[0], [topic.name] if topic.kind is PageKind.TOPIC else [])
            if topic.kind is PageKind.ENTITY and not topic.entity_key:
                called = [one.name for one in memory.entities if one.folded.replace("-", " ") == topic.name]
            made.append(Member(row[0], memory, tuple(called)))
        return made

    def states(self, bank: Bank) -> list[PageState]:
        """The pages of a bank by key."""
        rows = self._connections.query(
            "SELECT i.item_key, i.item_id, i.revision, i.scope, r.body ->> 'fingerprint' FROM knowledge_items i"
            " JOIN knowledge_revisions r ON r.item_key = i.item_key AND r.revision = i.revision"
            " WHERE i.bank_key = ? AND i.kind = ? AND i.deleted_at IS NULL ORDER BY i.item_key",
            (bank.key, str(KIND)),
        )
        return [PageState(*row) for row in rows]

    def unnamed(self, bank: Bank, row_keys: Collection[int], limit: int) -> list[tuple[int, str, bytes]]:
        """The newest current memories that are not among these, with their vectors."""
        named = key_array(sorted(row_keys))
        with self._connections.snapshot() as connection:
            table = table_of(connection, bank.key, bank.embedding_model)
            rows = fetch(
                connection,
                f"SELECT m.row_key, m.memory_id, p.vector FROM memories m JOIN {table} p"
                f" ON p.passage_key = m.row_key * {PASSAGES_PER_ROW} AND p.model = ?2"
                f" WHERE m.bank_key = ?1 AND {_CURRENT} AND length(p.vector) > 0"
                " AND m.row_key NOT IN (SELECT value FROM carray(?3)) ORDER BY m.row_key DESC LIMIT ?4",
                (bank.key, bank.embedding_model, named, limit),
            )
        return [(row_key, memory_id, vector) for row_key, memory_id, vector in reversed(rows)]

    def clusters(self, bank: Bank) -> dict[str, frozenset[int]]:
        """The current sources of the pages of clusters."""
        found: dict[str, set[int]] = defaultdict(set)
        for page_id, row_key in self._connections.query(
            "SELECT i.item_id, m.row_key FROM knowledge_items i"
            " JOIN knowledge_sources s ON s.item_key = i.item_key AND s.revision = i.revision"
            f" JOIN memories m ON m.bank_key = s.bank_key AND m.memory_id = s.memory_id AND {_CURRENT}"
            f" WHERE i.bank_key = ? AND i.kind = ? AND substr(i.item_id, 1, {len(_CLUSTER)}) = ?"
            " AND i.deleted_at IS NULL",
            (bank.key, str(KIND), _CLUSTER),
        ):
            found[page_id].add(row_key)
        return {page_id: frozenset(keys) for page_id, keys in found.items()}

    def held(self, bank: Bank, states: Sequence[PageState]) -> set[str]:
        """Pages that a hold keeps as they are."""
        held = set()
        with self._connections.snapshot() as connection:
            for state in states:
                try:
                    _check_hold(connection, bank, state)
                except LegalHoldActive:
                    held.add(state.page_id)
        return held

    async def write(
        self, bank: Bank, drafts: Sequence[PageDraft], *, by: str, most: int, keep_revisions: int
    ) -> list[Outcome]:
        """Write pages in one transaction."""

        def run(transaction: Transaction) -> list[Outcome]:
            transaction.bank(bank)
            count = changes.count_of(transaction.connection, bank, KIND)
            done = []
            for draft in drafts:
                done.append(_written(transaction, bank, draft, by, room=count < most, keep=keep_revisions))
                count += done[-1] is Outcome.CREATED
            return done

        return await self._change(bank, run, len(drafts))

    async def remove(self, bank: Bank, states: Sequence[PageState], *, by: str) -> list[Outcome]:
        """Delete pages."""

        def run(transaction: Transaction) -> list[Outcome]:
            transaction.bank(bank)
            return [_removed(transaction, bank, state, by) for state in states]

        return await self._change(bank, run, len(states))

    async def remember(self, bank: Bank, request: RequestKey, response: str) -> None:
        """Store the response to a request."""

        def run(transaction: Transaction) -> None:
            now = transaction.bank(bank).now
            if idempotency.stored(transaction.connection, bank.tenant, request) is None:
                text = response.encode()
                idempotency.store(transaction.connection, bank.tenant, request, text, now, bank_key=bank.key)

        await self._writer.submit(run)

    def linked(self, bank: Bank, key: int, limit: int) -> list[tuple[ItemRecord, int]]:
        """The pages that share current sources with a page."""
        with self._connections.snapshot() as connection:
            shared: dict[int, int] = dict(
                fetch(
                    connection,
                    "SELECT o.item_key, count(*) FROM knowledge_items p"
                    " JOIN knowledge_sources s ON s.item_key = p.item_key AND s.revision = p.revision"
                    " JOIN memories m ON m.bank_key = s.bank_key AND m.memory_id = s.memory_id"
                    f" AND {_CURRENT}"
                    " JOIN knowledge_sources o ON o.bank_key = s.bank_key AND o.memory_id = s.memory_id"
                    " AND o.item_key <> s.item_key"
                    " JOIN knowledge_items i ON i.item_key = o.item_key AND i.revision = o.revision"
                    " AND i.kind = p.kind AND i.deleted_at IS NULL"
                    " WHERE p.item_key = ? AND p.bank_key = ?"
                    " GROUP BY o.item_key ORDER BY count(*) DESC, o.item_key LIMIT ?",
                    (key, bank.key, limit),
                )
            )
            if not shared:
                return []
            rows = fetch(
                connection,
                f"{ITEMS} WHERE i.item_key IN (SELECT value FROM carray(?1)) AND i.bank_key = ?2",
                (Array(array("q", shared)), bank.key),
            )
            found = {record.key: record for record in items(connection, rows)}
        return [(found[one], count) for one, count in shared.items() if one in found]

    async def _change(self, bank: Bank, work: Callable[[Transaction], list[Outcome]], weight: int) -> list[Outcome]:
        def run(transaction: Transaction) -> list[Outcome]:
            self._knowledge.changing(transaction, bank)
            return work(transaction)

        return await self._writer.submit(run, weight=max(1, weight))


def _bindings(bank: Bank, scope: str, prefix: str) -> tuple[int | str, ...]:
    return (bank.key,) if scope == BANK_SCOPE else (bank.key, scope[len(prefix) :])


def _grouped(kind: PageKind, prefix: str, rows: Iterable[Sequence[object]]) -> list[Topic]:
    """Topics of rows of a name and a row key."""
    found: dict[str, set[int]] = defaultdict(set)
    for name, row_key in rows:
        found[str(name)].add(int(str(row_key)))
    return [Topic(kind, name, prefix + name, array("q", sorted(keys))) for name, keys in sorted(found.items())]


def _of_graph(rows: Iterable[Sequence[object]], known: set[str]) -> list[Topic]:
    """Topics of the entities of the graph; those are left out whose name is known already."""
    found: dict[int, tuple[str, set[int]]] = {}
    for key, entity_id, row_key in rows:
        found.setdefault(int(str(key)), (str(entity_id), set()))[1].add(int(str(row_key)))
    return [
        Topic(PageKind.ENTITY, entity_id, BANK_SCOPE, array("q", sorted(keys)), key)
        for key, (entity_id, keys) in found.items()
        if entity_id.rpartition(":")[2].replace("-", " ") not in known
    ]


def _written(transaction: Transaction, bank: Bank, draft: PageDraft, by: str, *, room: bool, keep: int) -> Outcome:
    connection, state = transaction.connection, draft.state
    expected = None if state is None else (state.key, state.revision)
    if _revision(connection, bank, draft.page_id) != expected:
        return Outcome.OUTDATED
    if state is None and not room:
        return Outcome.FULL
    try:
        # Before anything is written: what is refused must leave nothing behind in the shared transaction.
        changes.cited(connection, bank, draft.scope, draft.source_ids)
        if state is not None:
            _check_hold(connection, bank, state)
    except LegalHoldActive:
        return Outcome.HELD
    except (MemoryNotFound, FailedPrecondition):
        return Outcome.OUTDATED
    cause, sources = RevisionCause.COMPILED, draft.source_ids
    if state is None:
        item = NewItem(KIND, draft.page_id, draft.scope, draft.body, 0, sources, cause=cause)
        changes.insert(transaction, bank, item, by)
        return Outcome.CREATED
    change = Change(draft.body, sources, cause)
    changes.write_next(transaction, bank, state.key, state.revision + 1, draft.scope, change, by)
    _prune(connection, state.key, state.revision + 1 - keep)
    return Outcome.UPDATED


def _removed(transaction: Transaction, bank: Bank, state: PageState, by: str) -> Outcome:
    connection = transaction.connection
    if _revision(connection, bank, state.page_id) != (state.key, state.revision):
        return Outcome.OUTDATED
    try:
        _check_hold(connection, bank, state)
    except LegalHoldActive:
        return Outcome.HELD
    delete_items(connection, [state.key])
    details: dict[str, str | int] = {"kind": str(KIND), "item": state.key}
    event = AuditEventKind.KNOWLEDGE_DELETED
    audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details=details)
    return Outcome.DELETED


def _revision(connection: apsw.Connection, bank: Bank, page_id: str) -> tuple[int, int] | None:
    """Key and revision of a page."""
    rows = fetch(
        connection,
        "SELECT item_key, revision FROM knowledge_items WHERE bank_key = ? AND kind = ? AND item_id = ?",
        (bank.key, str(KIND), page_id),
    )
    return (rows[0][0], rows[0][1]) if rows else None


def _check_hold(connection: apsw.Connection, bank: Bank, state: PageState) -> None:
    """Refuse to change a page of which a source is held, hidden ones included.

    Raises:
        LegalHoldActive: A hold covers the bank, or a source.
    """
    rows = fetch(connection, f"{ITEMS} WHERE i.item_key = ?", (state.key,))
    changes.check_holds(connection, bank, items(connection, rows, hidden=True))


def _prune(connection: apsw.Connection, key: int, last: int) -> None:
    """Delete the revisions of a page up to a number."""
    for table in ("knowledge_sources", "knowledge_revisions"):
        connection.execute(f"DELETE FROM {table} WHERE item_key = ? AND revision <= ?", (key, last))
