"""Groups of entities that are one: what alias links connect, seen as the canonical one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import apsw

from astrocyte.stores.graph.entity_graph import ALIAS_OF, Group
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import fetch, key_array

# Members of a group that are looked at: beyond it a group is a mistake, and must not make every read of it slow.
MOST_MEMBERS = 256


class Aliases:
    """Reads alias links of a view.

    Args:
        connection: In a transaction.
        conditions: Those of the view.
    """

    def __init__(self, connection: apsw.Connection, conditions: Conditions) -> None:
        self._connection = connection
        self._bindings = conditions.bindings
        visible = f"{conditions.link} AND {conditions.together} AND {conditions.entity()}"
        self._query = " UNION ALL ".join(
            "SELECT * FROM (SELECT l.source_key, l.target_key FROM carray(:keys) w"
            f" CROSS JOIN entity_links l ON l.{end} = w.value AND l.link_type = '{ALIAS_OF}'"
            f" CROSS JOIN graph_entities e ON e.entity_key = l.{other}"
            f" LEFT JOIN memories m ON m.row_key = l.row_key WHERE {visible})"
            for end, other in (("source_key", "target_key"), ("target_key", "source_key"))
        )

    def links(self, keys: Iterable[int]) -> set[tuple[int, int]]:
        """Visible alias links from and to entities, as (alias, entity)."""
        bindings = {**self._bindings, "keys": key_array(keys)}
        return set(fetch(self._connection, self._query, bindings))  # type: ignore[arg-type]

    def groups(self, keys: Sequence[int]) -> dict[int, Group]:
        """The group of each entity."""
        seen, frontier = set(keys), list(dict.fromkeys(keys))
        links: set[tuple[int, int]] = set()
        most = len(seen) * MOST_MEMBERS
        while frontier and len(seen) <= most:
            found = self.links(frontier)
            links |= found
            frontier = sorted({key for link in found for key in link} - seen)
            seen.update(frontier)
        if not links:
            return {key: Group(key, (key,)) for key in keys}
        return _grouped(keys, links)


def _grouped(keys: Sequence[int], links: set[tuple[int, int]]) -> dict[int, Group]:
    beside: dict[int, set[int]] = {}
    for alias, entity in links:
        beside.setdefault(alias, set()).add(entity)
        beside.setdefault(entity, set()).add(alias)
    found: dict[int, Group] = {}
    for key in keys:
        if key not in beside:
            found[key] = Group(key, (key,))
        elif key not in found:
            members = _reached(key, beside)
            canonical = _canonical(members, links)
            group = Group(canonical, (canonical, *sorted(members - {canonical})))
            found |= dict.fromkeys(members, group)
    return {key: found[key] for key in keys}


def _reached(key: int, beside: Mapping[int, set[int]]) -> set[int]:
    members, waiting = {key}, [key]
    while waiting:
        for other in beside.get(waiting.pop(), ()):
            if other not in members:
                members.add(other)
                waiting.append(other)
    return members


def _canonical(members: set[int], links: set[tuple[int, int]]) -> int:
    """The member that is no alias; the oldest where there are several, or where the links close a circle."""
    aliases = {alias for alias, _ in links}
    return min(members - aliases or members)
