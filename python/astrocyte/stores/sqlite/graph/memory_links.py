"""Links between memories: turns of one session, and the vectors by which others are near."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter

from astrocyte.stores.graph.memory_links import SessionNeighbor
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import PASSAGES_PER_ROW, Row, key_array

# Turns that are read to find visible ones: others are forgotten, replaced, or outside the filter.
_TURNS_READ = 16


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
        found: list[SessionNeighbor] = []
        for sign, order in (("<", "DESC"), (">", "ASC")):
            rows = self._fetch(
                "SELECT s.row_key, n.row_key, abs(coalesce(s.occurred_at, s.retained_at)"
                " - coalesce(n.occurred_at, n.retained_at)) FROM carray(:keys) w"
                " CROSS JOIN memories s ON s.row_key = w.value"
                " CROSS JOIN memories n ON n.row_key IN (SELECT t.row_key FROM memories t"
                " WHERE t.bank_key = s.bank_key AND t.session_id = s.session_id"
                f" AND t.row_key {sign} s.row_key ORDER BY t.row_key {order} LIMIT {_TURNS_READ})"
                " CROSS JOIN memories m ON m.row_key = n.row_key"
                f" WHERE s.bank_key = :bank AND {self._see.memory} ORDER BY s.row_key, n.row_key {order}",
                keys=key_array(row_keys),
            )
            for _, several in groupby(rows, key=itemgetter(0)):
                nearest = list(several)[:distance]
                found += [
                    SessionNeighbor(row_key, other, apart, steps)
                    for steps, (row_key, other, apart) in enumerate(nearest, start=1)
                ]
        return found

    def memory_ids(self, row_keys: Sequence[int]) -> dict[int, str]:
        """Ids of the memories of visible versions, by row key."""
        rows = self._fetch(
            "SELECT m.row_key, m.memory_id FROM carray(:keys) w CROSS JOIN memories m ON m.row_key = w.value"
            f" WHERE m.bank_key = :bank AND {self._see.memory}",
            keys=key_array(row_keys),
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
