"""Mentions of entities as a view sees them, many entities to a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import Row, key_array

# Mentions that are read to find visible ones where a filter or a time may hide most of them.
_MENTIONS_READ = 2_048
# The row keys of an entity are one value of text: a row for each would cost more than the search for it.
_EACH = (
    "SELECT w.value, (SELECT group_concat(r.row_key) FROM (SELECT DISTINCT n.row_key FROM {} n"
    " CROSS JOIN memories m ON m.row_key = n.row_key WHERE {} ORDER BY n.row_key DESC LIMIT :most) r)"
    " FROM carray(:keys) w"
)
_ALL = "entity_mentions", "n.entity_key = w.value AND "
_NEWEST = (
    f"(SELECT row_key FROM entity_mentions WHERE entity_key = w.value ORDER BY row_key DESC LIMIT {_MENTIONS_READ})",
    "",
)
_BEYOND = (
    "SELECT w.value FROM carray(:keys) w WHERE"
    f" (SELECT 1 FROM entity_mentions WHERE entity_key = w.value LIMIT 1 OFFSET {_MENTIONS_READ}) IS NOT NULL"
)
# The entities of versions, each once.
_NAMED = (
    "SELECT DISTINCT o.row_key, o.entity_key FROM carray(:keys) w CROSS JOIN entity_mentions o ON o.row_key = w.value"
)


class Mentions:
    """Reads mentions, each once.

    Args:
        see: The conditions of the view.
        fetch: Runs a statement with the bindings of the view and more.
        narrow: True if the view may hide most mentions.
    """

    def __init__(self, see: Conditions, fetch: Callable[..., list[Row]], *, narrow: bool) -> None:
        self._fetch = fetch
        self._narrow = narrow
        table, which = _NEWEST if narrow else _ALL
        self._each = _EACH.format(table, which + see.memory)
        # By entity the versions that mention it, newest first, how many were asked for, and whether there are more.
        self._mentioning: dict[int, tuple[tuple[int, ...], int, bool]] = {}
        # By version the entities that it mentions.
        self._entities: dict[int, list[int]] = {}

    def of(self, keys: Sequence[int], limit: int) -> dict[int, tuple[tuple[int, ...], bool]]:
        """Row keys of the newest visible versions that mention each entity, and whether there are more."""
        known = self._mentioning
        # Neighbours are read for their links first, and then for the memories to show.
        unread = [key for key in keys if key not in known or (known[key][1] < limit and known[key][2])]
        if unread:
            self._read(unread, limit)
        found = {}
        for key in keys:
            rows, _, more = known[key]
            found[key] = rows[:limit], more or len(rows) > limit
        return found

    def named(self, row_keys: Iterable[int]) -> dict[int, list[int]]:
        """The entities that versions mention, each once, by row key."""
        unread = [row_key for row_key in row_keys if row_key not in self._entities]
        if unread:
            self._entities |= {row_key: [] for row_key in unread}
            for row_key, key in self._fetch(_NAMED, keys=key_array(unread)):
                self._entities[row_key].append(key)
        return self._entities

    def _read(self, keys: Sequence[int], limit: int) -> None:
        rows = self._fetch(self._each, keys=key_array(keys), most=limit + 1)
        found = {key: tuple(sorted(map(int, text.split(",")), reverse=True)) if text else () for key, text in rows}
        more = {key for key, own in found.items() if len(own) > limit}
        if self._narrow and len(more) < len(found):
            rest = [key for key in found if key not in more]
            more.update(key for (key,) in self._fetch(_BEYOND, keys=key_array(rest)))
        for key, own in found.items():
            self._mentioning[key] = own, limit, key in more
