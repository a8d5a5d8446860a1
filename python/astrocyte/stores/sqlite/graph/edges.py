"""Edges of the traversal at many entities: stored links, and co-occurrence in the newest memories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from astrocyte.stores.graph.entity_graph import ALIAS_OF, CO_OCCURS, DISTINCT_FROM, Edge
from astrocyte.stores.sqlite.graph.mentions import Mentions
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import Array, Row, key_array

# Links of one direction that are read to find the heaviest.
MOST_LINKS_READ = 2_048
# The plus keeps the statement from the index of the bank, whose links are many more than those of an entity.
_LINKS = (
    "SELECT * FROM (SELECT w.value AS key, l.{other} AS other, l.link_type, l.confidence, l.link_key, l.origin,"
    " {direction} AS direction FROM carray(:keys) w CROSS JOIN entity_links l ON l.{end} = w.value"
    " CROSS JOIN graph_entities e ON e.entity_key = l.{other} LEFT JOIN memories m ON m.row_key = l.row_key"
    f" WHERE l.link_type NOT IN ('{ALIAS_OF}', '{DISTINCT_FROM}') AND +l.bank_key = :bank"
    f"{{which}} AND {{seen}} LIMIT {MOST_LINKS_READ})"
)
_OF_TYPES = " AND l.link_type IN (SELECT value FROM carray(:kinds))"

# Heaviest first; of equals the order of the target, the type, the direction, the entity, the origin and the link.
_Ranked = tuple[float, int, str, int, int, str, int]
_DIRECTIONS = 3
_FORWARD, _BACKWARD, _SHARED = range(_DIRECTIONS)


class Edges:
    """Reads edges.

    Args:
        see: The conditions of the view.
        fetch: Runs a statement with the bindings of the view and more.
        mentions: Reads mentions of the same view.
    """

    def __init__(self, see: Conditions, fetch: Callable[..., list[Row]], mentions: Mentions) -> None:
        self._seen = f"{see.link} AND {see.entity()}"
        self._fetch = fetch
        self._mentions = mentions

    def at(
        self, keys: Sequence[int], link_types: Sequence[str], memories: int, fan_out: int
    ) -> tuple[list[Edge], bool]:
        """Edges at entities, heaviest first, and whether a bound cut them."""
        kinds = [one for one in link_types if one != CO_OCCURS]
        places = {key: place for place, key in enumerate(keys)}
        found: list[_Ranked] = []
        cut = False
        if kinds or not link_types:
            rows = self._stored(keys, kinds)
            back = sum(row[6] for row in rows)
            cut = MOST_LINKS_READ in (back, len(rows) - back)
            found += [
                (-weight, other, kind, direction, places[key], origin, link)
                for key, other, kind, weight, link, origin, direction in rows
            ]
        if not link_types or CO_OCCURS in link_types:
            found += self._co_occurring(places, memories)
        found.sort()
        kept: list[Edge] = []
        left = [fan_out] * (_DIRECTIONS * len(keys))
        for weight, target, kind, direction, place, _, link in found:
            own = _DIRECTIONS * place + direction
            if left[own]:
                left[own] -= 1
                stored = None if direction == _SHARED else link
                kept.append(Edge(keys[place], target, kind, -weight, stored, direction != _BACKWARD))
        return kept, cut or len(kept) < len(found)

    def _stored(self, keys: Sequence[int], kinds: Sequence[str]) -> list[Row]:
        which = _OF_TYPES if kinds else ""
        sql = " UNION ALL ".join(
            _LINKS.format(end=end, other=other, direction=direction, which=which, seen=self._seen)
            for direction, end, other in (
                (_FORWARD, "source_key", "target_key"),
                (_BACKWARD, "target_key", "source_key"),
            )
        )
        return self._fetch(sql, keys=key_array(keys), **({"kinds": Array(tuple(kinds))} if kinds else {}))

    def _co_occurring(self, places: dict[int, int], memories: int) -> Iterator[_Ranked]:
        """Edges to the entities of the newest memories of each entity; the more memories, the heavier."""
        rows_of = {key: rows for key, (rows, _) in self._mentions.of(list(places), memories).items()}
        named = self._mentions.named(dict.fromkeys(row_key for rows in rows_of.values() for row_key in rows))
        for key, rows in rows_of.items():
            shared = Counter(chain.from_iterable([named[row_key] for row_key in rows]))
            # One shared memory weighs a half, two weigh two thirds.
            yield from (
                (-count / (count + 1), other, CO_OCCURS, _SHARED, places[key], "", 0)
                for other, count in shared.items()
                if other != key
            )
