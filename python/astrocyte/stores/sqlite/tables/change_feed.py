"""The change feed that external stores follow."""

from __future__ import annotations

import json
from collections.abc import Sequence

from astrocyte.model import Bank
from astrocyte.stores.records import VersionRecord
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, decode_bank
from astrocyte.stores.sqlite.tables.version_records import records

# Ends of versions are told as they are now, whatever the position.
_NOW = 2**63 - 1


class SqliteFollowing:
    """Implements `astrocyte.stores.following.FollowedStore`; see there for what each method does."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.installation: str = connections.query("SELECT id FROM installation")[0][0]

    def banks(self, *, after: int, limit: int) -> list[Bank]:
        """Banks of all tenants, by key."""
        rows = self._connections.query(
            f"SELECT {BANK_COLUMNS} FROM banks WHERE bank_key > ? AND tenant <> '' ORDER BY bank_key LIMIT ?",
            (after, limit),
        )
        return [decode_bank(row) for row in rows]

    def versions(self, bank: Bank, memory_ids: Sequence[str]) -> list[VersionRecord]:
        """All versions of these memories that recall may ever see."""
        clause = (
            "m.bank_key = ? AND m.memory_id IN (SELECT value FROM json_each(?)) AND m.forgotten_at IS NULL"
            # A deleted bank's rows are on their way out.
            " AND EXISTS (SELECT 1 FROM banks b WHERE b.bank_key = m.bank_key AND b.tenant = ? AND b.bank_id = ?)"
        )
        bindings = (bank.key, json.dumps(list(memory_ids)), bank.tenant, bank.bank_id)
        with self._connections.snapshot() as connection:
            return records(connection, bank, clause, bindings, at_position=_NOW)
