"""Reads of one committed state of an entity graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import apsw

from astrocyte.errors import BankNotFound
from astrocyte.model import EntityLink, GraphEntity, GraphStats
from astrocyte.stores.graph.entity_graph import ALIAS_OF, CO_OCCURS, DISTINCT_FROM, Edge, GraphMemory, GraphView, Group
from astrocyte.stores.memory_filter import EVERYTHING
from astrocyte.stores.sqlite.graph.groups import Aliases
from astrocyte.stores.sqlite.graph.memory_links import SqliteMemoryLinks
from astrocyte.stores.sqlite.graph.records import entity_of, link_of
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import Array, Row, fetch, key_array
from astrocyte.stores.sqlite.tables.vectors import table_of

# Entities of one word that a search looks at.
MOST_CANDIDATES = 2_000
# Links of one direction that are read to find the heaviest.
MOST_LINKS_READ = 2_048
# Greater than any character of a word.
_END = "\U0010ffff"
# Mentions that are read to find visible ones where a filter or a time may hide most of them.
_MENTIONS_READ = 2_048
_MENTIONING = (
    (
        "SELECT DISTINCT n.row_key FROM entity_mentions n CROSS JOIN memories m ON m.row_key = n.row_key"
        " WHERE n.entity_key = :key AND {} ORDER BY n.row_key DESC LIMIT :most"
    ),
    (
        "SELECT DISTINCT n.row_key FROM (SELECT row_key FROM entity_mentions WHERE entity_key = :key"
        f" ORDER BY row_key DESC LIMIT {_MENTIONS_READ}) n CROSS JOIN memories m ON m.row_key = n.row_key"
        " WHERE {} ORDER BY n.row_key DESC LIMIT :most"
    ),
)
_BEYOND = f"SELECT 1 FROM entity_mentions WHERE entity_key = :key LIMIT 1 OFFSET {_MENTIONS_READ}"
# The entities of versions, each once.
_NAMED = (
    "SELECT DISTINCT o.row_key, o.entity_key FROM carray(:keys) w CROSS JOIN entity_mentions o ON o.row_key = w.value"
)

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
        self._narrow = (view.as_of, view.valid_at, view.only) != (None, None, EVERYTHING)
        self._aliases = Aliases(connection, self._see)
        self.memory_links = SqliteMemoryLinks(self._see, self._fetch, partial(table_of, connection, bank.key))
        # By entity the versions that mention it, how many were asked for, and whether there are more.
        self._mentioning: dict[int, tuple[tuple[int, ...], int, bool]] = {}

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
        return self._aliases.groups(keys)

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
        kinds = [one for one in link_types if one != CO_OCCURS]
        found: list[Edge] = []
        cut = False
        if kinds or not link_types:
            for end, other, forward in (("source_key", "target_key", True), ("target_key", "source_key", False)):
                rows = self._stored_edges(keys, end, other, kinds)
                cut = cut or len(rows) == MOST_LINKS_READ
                found += [Edge(key, to, kind, weight, link, forward) for key, to, kind, weight, link in rows]
        if not link_types or CO_OCCURS in link_types:
            found += self._co_occurring(keys, memories)
        found.sort(key=lambda edge: (-edge.weight, edge.target, edge.link_type))
        kept: list[Edge] = []
        counts: Counter[tuple[int, bool, bool]] = Counter()
        for edge in found:
            kind = (edge.origin, edge.link_key is None, edge.forward)
            counts[kind] += 1
            if counts[kind] <= fan_out:
                kept.append(edge)
        return kept, cut or len(kept) < len(found)

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

    def mentioning(self, key: int, limit: int) -> tuple[list[int], bool]:
        """Row keys of the newest visible versions that mention an entity, and whether there are more."""
        # Neighbours are read for their links first, and then for the memories to show.
        found, most, more = self._mentioning.get(key, ((), -1, True))
        if most < limit and more:
            rows = self._fetch(_MENTIONING[self._narrow].format(self._see.memory), key=key, most=limit + 1)
            found = tuple(row_key for (row_key,) in rows)
            more = len(found) > limit or (self._narrow and bool(self._fetch(_BEYOND, key=key)))
            self._mentioning[key] = found, limit, more
        return list(found[:limit]), more or len(found) > limit

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

    def _stored_edges(self, keys: Sequence[int], end: str, other: str, kinds: Sequence[str]) -> list[Row]:
        which = " AND l.link_type IN (SELECT value FROM carray(:kinds))" if kinds else ""
        return self._fetch(
            f"SELECT w.value, l.{other}, l.link_type, l.confidence, l.link_key FROM carray(:keys) w"
            f" CROSS JOIN entity_links l ON l.{end} = w.value CROSS JOIN graph_entities e ON e.entity_key = l.{other}"
            " LEFT JOIN memories m ON m.row_key = l.row_key"
            f" WHERE l.bank_key = :bank AND l.link_type NOT IN ('{ALIAS_OF}', '{DISTINCT_FROM}')"
            f"{which} AND {self._see.link} AND {self._see.entity()} LIMIT {MOST_LINKS_READ}",
            keys=key_array(keys),
            **({"kinds": Array(tuple(kinds))} if kinds else {}),
        )

    def _co_occurring(self, keys: Sequence[int], memories: int) -> list[Edge]:
        """Edges to the entities of the newest memories of each entity; the more memories, the heavier."""
        rows_of = {key: self.mentioning(key, memories)[0] for key in keys}
        every = sorted({row_key for rows in rows_of.values() for row_key in rows})
        named: dict[int, set[int]] = {}
        for row_key, key in self._fetch(_NAMED, keys=key_array(every)):
            named.setdefault(row_key, set()).add(key)
        found: list[Edge] = []
        for key, rows in rows_of.items():
            shared = Counter(other for row_key in rows for other in named[row_key])
            found += [
                # One shared memory weighs a half, two weigh two thirds.
                Edge(key, other, CO_OCCURS, count / (count + 1), None, forward=True)
                for other, count in shared.items()
                if other != key
            ]
        return found

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
