"""Reads of one committed state of an entity graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import apsw

from astrocyte.errors import BankNotFound
from astrocyte.model import EntityLink, GraphEntity, GraphStats
from astrocyte.stores.graph.entity_graph import ALIAS_OF, Edge, GraphMemory, GraphView, Group
from astrocyte.stores.memory_filter import EVERYTHING
from astrocyte.stores.sqlite.graph.edges import Edges
from astrocyte.stores.sqlite.graph.groups import Aliases
from astrocyte.stores.sqlite.graph.memory_links import SqliteMemoryLinks
from astrocyte.stores.sqlite.graph.mentions import Mentions
from astrocyte.stores.sqlite.graph.records import entity_of, link_of
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import Array, Row, fetch, key_array
from astrocyte.stores.sqlite.tables.vectors import table_of

# Entities of one word that a search looks at.
MOST_CANDIDATES = 2_000
# Greater than any character of a word.
_END = "\U0010ffff"
_LINK_COLUMNS = (
    "l.link_key, s.entity_id, t.entity_id, l.link_type, l.origin,"
    " CASE WHEN l.row_key IS NULL THEN l.evidence"
    " ELSE substr(c.content, l.first_char + 1, l.end_char - l.first_char) END,"
    " l.confidence, coalesce(m.known_from, l.created_at), l.metadata, m.memory_id,"
    " coalesce(l.valid_from, m.valid_from), coalesce(l.valid_until, m.valid_until)"
)
_LINK_JOINS = (
    " CROSS JOIN graph_entities s ON s.entity_key = l.source_key"
    " CROSS JOIN graph_entities t ON t.entity_key = l.target_key"
    " LEFT JOIN memories m ON m.row_key = l.row_key LEFT JOIN contents c ON c.row_key = l.row_key"
)


class SqliteGraphReader:
    """Implements `astrocyte.stores.graph.entity_graph.GraphReader`; see there for what each method returns.

    Args:
        connection: In a transaction.
        view: The part that is seen.

    Raises:
        BankNotFound: The bank was deleted.
    """

    def __init__(self, connection: apsw.Connection, view: GraphView) -> None:
        bank = view.bank
        # The bank exists, and is the caller's: a handle is not taken at its word.
        sql = "SELECT 1 FROM banks WHERE bank_key = ? AND tenant = ? AND bank_id = ?"
        if not fetch(connection, sql, (bank.key, bank.tenant, bank.bank_id)):
            raise BankNotFound(bank.bank_id)
        self._connection = connection
        self._now = view.as_of is None
        self._see = Conditions(view)
        self._aliases = Aliases(connection, self._see)
        self.memory_links = SqliteMemoryLinks(self._see, self._fetch, partial(table_of, connection, bank.key))
        narrow = (view.as_of, view.valid_at, view.only) != (None, None, EVERYTHING)
        self._mentions = Mentions(self._see, self._fetch, narrow=narrow)
        self._edges = Edges(self._see, self._fetch, self._mentions)
        # What one search reads again and again; the state that is read does not change.
        self._groups: dict[int, Group] = {}

    def keys(self, entity_ids: Sequence[str]) -> dict[str, int]:
        """The keys of visible entities by id."""
        rows = self._fetch(
            "SELECT e.entity_id, e.entity_key FROM carray(:ids) w CROSS JOIN graph_entities e"
            f" ON e.bank_key = :bank AND e.entity_id = w.value WHERE {self._see.entity()}",
            ids=Array(tuple(entity_ids)),
        )
        return dict(rows)

    def groups(self, keys: Sequence[int]) -> dict[int, Group]:
        """The group of each entity."""
        new = [key for key in keys if key not in self._groups]
        if new:
            self._groups |= self._aliases.groups(new)
        return {key: self._groups[key] for key in keys}

    def entities(self, groups: Sequence[Group]) -> list[GraphEntity]:
        """The entities of groups."""
        keys = [key for group in groups for key in group.members]
        rows = {row[0]: row for row in self._fetch(self._details(), keys=key_array(keys))}
        return [entity_of([rows[key] for key in group.members if key in rows]) for group in groups]

    def search(self, text: str, words: Sequence[str], entity_types: Sequence[str], limit: int) -> list[int]:
        """Keys of the entities whose names match, best first."""
        scores: dict[int, float] = {}
        for place, word in enumerate(words):
            found = self._by_word(word)
            scores = found if place == 0 else {key: scores[key] + found[key] for key in scores.keys() & found.keys()}
        if not scores and text:
            # A walk over all names of the bank, for what no word begins with.
            inside = self._fetch(
                f"SELECT e.entity_key FROM graph_entities e WHERE e.bank_key = :bank AND {self._see.entity()}"
                " AND instr(substr(e.entity_id, instr(e.entity_id, ':')), :text) > 0 LIMIT :most",
                text=text,
                most=MOST_CANDIDATES,
            )
            scores = dict.fromkeys((key for (key,) in inside), 0.0)
        rows = self._fetch(
            "SELECT e.entity_key, e.entity_id, e.mention_count, e.entity_type FROM carray(:keys) w"
            f" CROSS JOIN graph_entities e ON e.entity_key = w.value WHERE {self._see.entity()}",
            keys=key_array(scores),
        )
        kinds = frozenset(entity_types)
        ranked = sorted(
            (entity_id.partition(":")[2] != text, -scores[key], -count, entity_id, key)
            for key, entity_id, count, kind in rows
            if not kinds or kind in kinds
        )
        return self._distinct([one[-1] for one in ranked], limit)

    def listed(self, after: str, entity_type: str | None, limit: int) -> list[tuple[str, int]]:
        """Ids and keys of visible entities that are merged into no other, by id."""
        found: list[tuple[str, int]] = []
        kind = "" if entity_type is None else " AND e.entity_type = :kind"
        while len(found) < limit:
            rows = self._fetch(
                "SELECT e.entity_id, e.entity_key FROM graph_entities e WHERE e.bank_key = :bank"
                f" AND e.entity_id > :after AND {self._see.entity()}{kind} ORDER BY e.entity_id LIMIT :most",
                after=after,
                most=limit,
                **({} if entity_type is None else {"kind": entity_type}),
            )
            groups = self.groups([key for _, key in rows])
            found += [(name, key) for name, key in rows if groups[key].canonical == key]
            if len(rows) < limit:
                break
            after = rows[-1][0]
        return found[:limit]

    def each(self, after: str, limit: int) -> list[GraphEntity]:
        """Visible entities by id, each by itself."""
        rows = self._fetch(
            f"SELECT e.entity_key FROM graph_entities e WHERE e.bank_key = :bank AND e.entity_id > :after"
            f" AND {self._see.entity()} ORDER BY e.entity_id LIMIT :most",
            after=after,
            most=limit,
        )
        return self.entities([Group(key, (key,)) for (key,) in rows])

    def edges(
        self, keys: Sequence[int], link_types: Sequence[str], memories: int, fan_out: int
    ) -> tuple[list[Edge], bool]:
        """Edges at entities, heaviest first, and whether a bound cut them."""
        return self._edges.at(keys, link_types, memories, fan_out)

    def ids(self, keys: Sequence[int]) -> dict[int, str]:
        """The ids of entities, each by itself."""
        rows = self._fetch(
            "SELECT e.entity_key, e.entity_id FROM carray(:keys) w"
            " CROSS JOIN graph_entities e ON e.entity_key = w.value",
            keys=key_array(keys),
        )
        return dict(rows)

    def links(self, link_keys: Sequence[int]) -> dict[int, EntityLink]:
        """Visible links by key."""
        if not link_keys:
            return {}
        rows = self._fetch(
            f"SELECT {_LINK_COLUMNS} FROM carray(:keys) w CROSS JOIN entity_links l ON l.link_key = w.value"
            f" AND l.bank_key = :bank{_LINK_JOINS} WHERE {self._see.link}",
            keys=key_array(link_keys),
        )
        return {row[0]: link_of(row) for row in rows}

    def all_links(self, after: int, limit: int) -> list[tuple[int, EntityLink]]:
        """Visible stored links of the bank by key."""
        rows = self._fetch(
            f"SELECT {_LINK_COLUMNS} FROM entity_links l{_LINK_JOINS} WHERE l.bank_key = :bank AND l.link_key > :after"
            f" AND {self._see.link} AND {self._see.entity('s')} AND {self._see.entity('t')}"
            " ORDER BY l.link_key LIMIT :most",
            after=after,
            most=limit,
        )
        return [(row[0], link_of(row)) for row in rows]

    def mentioning(self, keys: Sequence[int], limit: int) -> dict[int, tuple[tuple[int, ...], bool]]:
        """Row keys of the newest visible versions that mention each entity, and whether there are more."""
        return self._mentions.of(keys, limit)

    def memories(self, row_keys: Sequence[int]) -> list[GraphMemory]:
        """Visible versions with these row keys."""
        rows = self._fetch(
            "SELECT m.row_key, m.memory_id, c.content FROM carray(:keys) w"
            " CROSS JOIN memories m ON m.row_key = w.value CROSS JOIN contents c ON c.row_key = w.value"
            f" WHERE m.bank_key = :bank AND {self._see.memory} ORDER BY m.row_key",
            keys=key_array(row_keys),
        )
        return [GraphMemory(*row) for row in rows]

    def mention_counts(self, entities: int | None = None) -> int:
        """Number of the current mentions of the bank, or of so many of its entities."""
        ((count,),) = self._fetch(
            "SELECT coalesce(sum(mention_count), 0) FROM (SELECT mention_count FROM graph_entities"
            " WHERE bank_key = :bank AND mention_count > 0 LIMIT :most)",
            most=-1 if entities is None else entities,
        )
        return int(count)

    def counts(self, keys: Sequence[int]) -> dict[int, int]:
        """Numbers of current mentions of entities, by key."""
        rows = self._fetch(
            "SELECT e.entity_key, e.mention_count FROM carray(:keys) w"
            " CROSS JOIN graph_entities e ON e.entity_key = w.value",
            keys=key_array(keys),
        )
        return dict(rows)

    def known_words(self, words: Collection[str]) -> set[str]:
        """Those of the words that the name of an entity has."""
        if not words:
            return set()
        rows = self._fetch(
            "SELECT w.value FROM carray(:words) w WHERE EXISTS"
            " (SELECT 1 FROM entity_words x WHERE x.bank_key = :bank AND x.word = w.value)",
            words=Array(tuple(words)),
        )
        return {word for (word,) in rows}

    def stats(self) -> GraphStats:
        """Counts of the bank."""
        kinds = self._fetch(
            f"SELECT e.entity_type, count(*) FROM graph_entities e WHERE e.bank_key = :bank AND {self._see.entity()}"
            " GROUP BY e.entity_type ORDER BY e.entity_type"
        )
        links = self._fetch(
            "SELECT l.link_type, count(*) FROM entity_links l CROSS JOIN graph_entities s ON s.entity_key ="
            " l.source_key CROSS JOIN graph_entities t ON t.entity_key = l.target_key LEFT JOIN memories m ON"
            f" m.row_key = l.row_key WHERE l.bank_key = :bank AND {self._see.link} AND {self._see.entity('s')}"
            f" AND {self._see.entity('t')} GROUP BY l.link_type ORDER BY l.link_type"
        )
        aliases = self._fetch(
            f"SELECT l.source_key FROM entity_links l WHERE l.bank_key = :bank AND l.link_type = '{ALIAS_OF}'"
        )
        groups = self.groups(sorted({key for (key,) in aliases}))
        merged = len({key for group in groups.values() for key in group.members[1:]})
        return GraphStats(
            entities=sum(count for _, count in kinds) - merged,
            entities_by_type=dict(kinds),
            mentions=self.mention_counts(),
            links_by_type=dict(links),
            merged=merged,
            pending_memories=0,
        )

    def _fetch(self, sql: str, **named: Any) -> list[Row]:  # noqa: ANN401 - values of bindings
        return self._connection.execute(sql, {**self._see.bindings, **named}).fetchall()

    def _by_word(self, word: str) -> dict[int, float]:
        """Entities with a word that begins so: 1 for the whole word, less for a longer one."""
        rows = self._fetch(
            "SELECT x.entity_key, max(x.word = :word) FROM entity_words x WHERE x.bank_key = :bank"
            " AND x.word >= :word AND x.word < :end GROUP BY x.entity_key LIMIT :most",
            word=word,
            end=word + _END,
            most=MOST_CANDIDATES,
        )
        return {key: 1.0 if whole else 0.5 for key, whole in rows}

    def _distinct(self, keys: Sequence[int], limit: int) -> list[int]:
        """The first key of each group."""
        found: dict[int, int] = {}
        for start in range(0, len(keys), limit):
            part = keys[start : start + limit]
            groups = self.groups(part)
            for key in part:
                found.setdefault(groups[key].canonical, key)
            if len(found) >= limit:
                break
        return list(found.values())[:limit]

    def _details(self) -> str:
        seen = (
            "FROM entity_mentions n CROSS JOIN memories m ON m.row_key = n.row_key"
            f" WHERE n.entity_key = e.entity_key AND {self._see.memory}"
        )
        count = "e.mention_count" if self._now else f"(SELECT count(*) {seen})"
        return (
            "SELECT e.entity_key, e.entity_id, e.entity_type, e.given_name, e.aliases, e.metadata, e.revision,"
            f" {count},"
            f" (SELECT n.name {seen} ORDER BY n.row_key, n.first_char LIMIT 1),"
            f" (SELECT m.known_from {seen} ORDER BY n.row_key LIMIT 1),"
            f" (SELECT m.known_from {seen} ORDER BY n.row_key DESC LIMIT 1)"
            " FROM carray(:keys) w CROSS JOIN graph_entities e ON e.entity_key = w.value"
        )
