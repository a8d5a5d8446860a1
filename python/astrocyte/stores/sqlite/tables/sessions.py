"""Turns of sessions, in the order in which they were stored."""

from __future__ import annotations

import json
from collections.abc import Sequence

from astrocyte.model import Bank
from astrocyte.stores.sqlite.engine.connections import Connections

# By the index of (bank_key, session_id, row_key).
_BEFORE = (
    "SELECT m.memory_id, (SELECT n.memory_id FROM memories n WHERE n.bank_key = m.bank_key"
    " AND n.session_id = m.session_id AND n.row_key < m.row_key AND +n.known_until IS NULL"
    " AND n.forgotten_at IS NULL ORDER BY n.row_key DESC LIMIT 1) FROM memories m"
    " WHERE m.bank_key = ?1 AND m.memory_id IN (SELECT value FROM json_each(?2))"
    " AND +m.known_until IS NULL AND m.forgotten_at IS NULL"
    " AND EXISTS (SELECT 1 FROM banks b WHERE b.bank_key = ?1 AND b.tenant = ?3 AND b.bank_id = ?4)"
)


def turns_before(connections: Connections, bank: Bank, memory_ids: Sequence[str]) -> dict[str, str]:
    """See `MemoryStore.turns_before`."""
    values = (bank.key, json.dumps(list(memory_ids)), bank.tenant, bank.bank_id)
    return {memory_id: before for memory_id, before in connections.query(_BEFORE, values) if before is not None}
