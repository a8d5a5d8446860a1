"""Look-up of memories by the names in them."""

from __future__ import annotations

from collections.abc import Sequence

from astrocyte.model import Bank
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.rows import Array, fetch

# Counting stops beyond the limit: a name that every memory holds must not cost a walk over all of them.
_RARE = (
    "SELECT w.value FROM carray(?1) w WHERE (SELECT count(*) FROM (SELECT 1 FROM entities e"
    " WHERE e.bank_key = ?2 AND e.folded = w.value LIMIT ?3 + 1)) BETWEEN 1 AND ?3"
)
_NAMING = (
    "SELECT DISTINCT w.value, m.memory_id FROM carray(?1) w"
    " CROSS JOIN entities e ON e.bank_key = ?2 AND e.folded = w.value"
    " CROSS JOIN memories m ON m.row_key = e.row_key"
    " WHERE m.forgotten_at IS NULL"
    " AND m.bank_key = (SELECT b.bank_key FROM banks b WHERE b.bank_key = ?2 AND b.tenant = ?3 AND b.bank_id = ?4)"
)
_NOW = " AND m.known_until IS NULL"
_AS_OF = " AND m.known_from <= ?5 AND (m.known_until IS NULL OR m.known_until > ?5)"


def naming(
    connections: Connections, bank: Bank, names: Sequence[str], as_of: int | None, most: int
) -> dict[str, list[str]]:
    """See `EntityStore.naming`."""
    found: dict[str, list[str]] = {}
    if not names:
        return found
    with connections.snapshot() as connection:
        rare = [name for (name,) in fetch(connection, _RARE, (Array(tuple(names)), bank.key, most))]
        if not rare:
            return found
        values = (Array(tuple(rare)), bank.key, bank.tenant, bank.bank_id)
        if as_of is None:
            rows = fetch(connection, _NAMING + _NOW, values)
        else:
            rows = fetch(connection, _NAMING + _AS_OF, (*values, as_of))
    for name, memory_id in rows:
        found.setdefault(name, []).append(memory_id)
    return found
