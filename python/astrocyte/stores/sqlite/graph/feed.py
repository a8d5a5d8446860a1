"""The changes of entity graphs that external graph stores follow; triggers of the schema note them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import apsw

from astrocyte.model import Bank
from astrocyte.stores.following import FollowedEntity, FollowedLink, GraphChange, GraphChangeKind
from astrocyte.stores.graph.entity_graph import ALIAS_OF, GraphView
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.graph import archives
from astrocyte.stores.sqlite.graph.groups import Aliases
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank, fetch, key_array

_CHANGED = (
    f"SELECT {BANK_COLUMNS} FROM banks WHERE tenant <> '' AND bank_key IN"
    " (SELECT bank_key FROM graph_changes WHERE number > ?) ORDER BY bank_key"
)
_OF_CALLERS = " OR ".join(
    f"EXISTS (SELECT 1 FROM entity_links k WHERE k.{end} = e.entity_key AND k.origin = 'caller')"
    for end in ("source_key", "target_key")
)
# In the order in which stores take them: the ends before the links.
_REFILL = (
    "DELETE FROM graph_changes WHERE bank_key = ?1",
    f"INSERT INTO graph_changed VALUES (?1, '{GraphChangeKind.REFILL}', 0)",
    (
        "INSERT INTO graph_changed SELECT bank_key, 'entity', entity_key FROM graph_entities e WHERE bank_key = ?1"
        f" AND (given_name IS NOT NULL OR aliases <> '[]' OR metadata <> '{{}}' OR {_OF_CALLERS} OR"
        f" EXISTS (SELECT 1 FROM entity_links a WHERE a.source_key = e.entity_key AND a.link_type = '{ALIAS_OF}') OR"
        f" EXISTS (SELECT 1 FROM entity_links a WHERE a.target_key = e.entity_key AND a.link_type = '{ALIAS_OF}'))"
        " ORDER BY entity_key"
    ),
    (
        "INSERT INTO graph_changed SELECT bank_key, 'link', link_key FROM entity_links"
        " WHERE bank_key = ?1 AND origin = 'caller' ORDER BY link_key"
    ),
)


class SqliteGraphFeed:
    """Implements `astrocyte.stores.following.FollowedGraphs`; see there for what each method does."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._listeners: list[Callable[[], None]] = []

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call the listener after transactions that may have changed a graph."""
        self._listeners.append(listener)

    def announce(self) -> None:
        """Call the listeners."""
        for listener in self._listeners:
            listener()

    def changed(self, after: int) -> tuple[list[Bank], int]:
        """Banks with a change above a number, and the number of the last change."""
        with self._connections.snapshot() as connection:
            ((last,),) = fetch(connection, "SELECT coalesce(max(number), 0) FROM graph_changes", ())
            banks = [decode_bank(row) for row in fetch(connection, _CHANGED, (after,))] if last > after else []
        return banks, int(last)

    def last(self, bank: Bank) -> int:
        """The number of the bank's last change."""
        sql = "SELECT coalesce(max(number), 0) FROM graph_changes WHERE bank_key = ?"
        ((number,),) = self._connections.query(sql, (bank.key,))
        return int(number)

    def changes(self, bank: Bank, *, after: int, limit: int) -> list[GraphChange]:
        """Changes of the bank above a number."""
        rows = self._connections.query(
            "SELECT number, kind, item_key FROM graph_changes WHERE bank_key = ? AND number > ?"
            " ORDER BY number LIMIT ?",
            (bank.key, after, limit),
        )
        return [GraphChange(number, GraphChangeKind(kind), key) for number, kind, key in rows]

    def entities(self, bank: Bank, keys: Sequence[int]) -> list[FollowedEntity]:
        """Of these entities those that an external store holds."""
        with self._connections.snapshot() as connection:
            if not _there(connection, bank):
                return []
            see = Conditions(GraphView(bank))
            found = archives.by_keys(connection, bank, keys)
            targets: dict[int, list[int]] = {}
            for alias, target in sorted(Aliases(connection, see).links(found)):
                targets.setdefault(alias, []).append(target)
            ids: dict[int, str] = dict(
                fetch(
                    connection,
                    "SELECT e.entity_key, e.entity_id FROM carray(?1) w"
                    " CROSS JOIN graph_entities e ON e.entity_key = w.value",
                    (key_array({one for several in targets.values() for one in several}),),
                )
            )
            linked = _linked(connection, see, found)
        return [
            FollowedEntity(key, entity, tuple(sorted(ids[one] for one in targets.get(key, ()))))
            for key, entity in found.items()
            if entity.is_changed or key in targets or key in linked
        ]

    def links(self, bank: Bank, keys: Sequence[int]) -> list[FollowedLink]:
        """Of these links those that an external store holds."""
        with self._connections.snapshot() as connection:
            if not _there(connection, bank):
                return []
            return [FollowedLink(*one) for one in archives.links_by_keys(connection, bank, keys)]


def refill(connection: apsw.Connection, bank: Bank) -> None:
    """Let external graph stores begin a bank anew. What tells them to delete goes: they will have nothing to delete."""
    for sql in _REFILL:
        connection.execute(sql, (bank.key,))


def _linked(connection: apsw.Connection, see: Conditions, keys: Iterable[int]) -> set[int]:
    """Those of the entities that a link of a caller has, to or from a visible entity."""
    found: set[int] = set()
    for end, other in (("source_key", "target_key"), ("target_key", "source_key")):
        rows = fetch(
            connection,
            f"SELECT DISTINCT k.{end} FROM carray(?1) w CROSS JOIN entity_links k ON k.{end} = w.value"
            f" CROSS JOIN graph_entities o ON o.entity_key = k.{other} WHERE k.origin = 'caller' AND {see.entity('o')}",
            (key_array(keys),),
        )
        found.update(key for (key,) in rows)
    return found


def _there(connection: apsw.Connection, bank: Bank) -> bool:
    """False for a deleted bank, whose rows are on their way out."""
    sql = "SELECT 1 FROM banks WHERE bank_key = ? AND tenant = ? AND bank_id = ?"
    return bool(fetch(connection, sql, (bank.key, bank.tenant, bank.bank_id)))
