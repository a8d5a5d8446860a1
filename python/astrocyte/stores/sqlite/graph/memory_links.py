"""Links between memories: turns of one session, and the vectors by which others are near."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from astrocyte.stores.graph.memory_links import SessionNeighbor
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import PASSAGES_PER_ROW, Row, key_array

# Turns that are read to find visible ones: others are forgotten, replaced, or outside the filter.
_TURNS_READ = 16
# The row keys on one side of a turn are one value of text: joined to the turn, PostgreSQL would look for them among all
# memories.
_SIDE = (
    "(SELECT group_concat(r.row_key) FROM (SELECT t.row_key FROM memories t WHERE t.bank_key = s.bank_key"
    f" AND t.session_id = s.session_id AND t.row_key {{}} s.row_key ORDER BY t.row_key {{}} LIMIT {_TURNS_READ}) r)"
)
_TIME = "coalesce({0}.occurred_at, {0}.retained_at)"
_SESSION = (
    f"SELECT s.row_key, {_TIME.format('s')}, {_SIDE.format('<', 'DESC')}, {_SIDE.format('>', 'ASC')}"
    " FROM carray(:keys) w CROSS JOIN memories s ON s.row_key = w.value"
    " WHERE s.bank_key = :bank AND s.session_id IS NOT NULL"
)


class SqliteMemoryLinks:
    """Implements `astrocyte.stores.graph.memory_links.MemoryLinks`; see there for what each method returns.

    Args:
        see: The conditions of the view.
        fetch: Runs a statement with the bindings of the view and more.
        table_of: The table with the bank's vectors of a model.
    """

    def __init__(self, see: Conditions, fetch: Callable[..., list[Row]], table_of: Callable[[str], str]) -> None:
        self._see = see
        self._fetch = fetch
        self._table_of = table_of

    def beside(self, row_keys: Sequence[int], distance: int) -> list[SessionNeighbor]:
        """The nearest visible turns of the same session, before and after each version."""
        turns = sorted(self._fetch(_SESSION, keys=key_array(row_keys)))
        # The turns before each, and those after it, the nearest first.
        sides = (
            [(row_key, time, sorted(_keys(before), reverse=True)) for row_key, time, before, _ in turns],
            [(row_key, time, sorted(_keys(after))) for row_key, time, _, after in turns],
        )
        times = self._times({key for side in sides for *_, keys in side for key in keys})
        return [
            SessionNeighbor(row_key, other, abs(time - times[other]), steps)
            for side in sides
            for row_key, time, keys in side
            for steps, other in enumerate([key for key in keys if key in times][:distance], start=1)
        ]

    def memory_ids(self, row_keys: Sequence[int]) -> dict[int, str]:
        """Ids of the memories of visible versions, by row key."""
        rows = self._fetch(
            "SELECT m.row_key, m.memory_id FROM carray(:keys) w CROSS JOIN memories m ON m.row_key = w.value"
            f" WHERE m.bank_key = :bank AND {self._see.memory}",
            keys=key_array(row_keys),
        )
        return dict(rows)

    def _times(self, row_keys: Collection[int]) -> dict[int, int]:
        """When visible versions happened, or were retained, in milliseconds, by row key."""
        if not row_keys:
            return {}
        rows = self._fetch(
            f"SELECT m.row_key, {_TIME.format('m')} FROM carray(:keys) w CROSS JOIN memories m ON m.row_key = w.value"
            f" WHERE m.bank_key = :bank AND {self._see.memory}",
            keys=key_array(sorted(row_keys)),
        )
        return dict(rows)

    def vectors(self, row_keys: Sequence[int], model: str) -> dict[int, bytes]:
        """The vectors of versions as wholes, by row key."""
        rows = self._fetch(
            "SELECT v.passage_key / :passages, v.vector FROM carray(:keys) w"
            f" CROSS JOIN {self._table_of(model)} v ON v.passage_key = w.value * :passages WHERE v.model = :model",
            keys=key_array(row_keys),
            passages=PASSAGES_PER_ROW,
            model=model,
        )
        return dict(rows)


def _keys(text: str | None) -> list[int]:
    return [int(key) for key in text.split(",")] if text else []
