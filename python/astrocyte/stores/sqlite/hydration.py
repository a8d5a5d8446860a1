"""Recall's last word: what the index proposed is read back, and the database decides what leaves.

The tenant, the bank, forgetting and both clocks are checked here again, in SQL, whatever the index believed. This is on
the path of every recall: one prepared statement for up to 8, 16, 32 ... passages, two look-ups by primary key for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from astrocyte.model import Bank
from astrocyte.stores.protocols import HydratedRow, Passage, Visibility
from astrocyte.stores.sqlite.connections import Connections
from astrocyte.stores.sqlite.rows import MEMORY_COLUMNS, PASSAGES_PER_ROW, Row, batched, decode_memory

# Passages of one statement; each size is one prepared statement per kind of visibility.
SIZES = (1, 8, 16, 32, 64, 128, 256)

_BANK = (
    " WHERE m.bank_key = ?1 AND m.forgotten_at IS NULL"
    " AND EXISTS (SELECT 1 FROM banks b WHERE b.bank_key = ?1 AND b.tenant = ?2 AND b.bank_id = ?3)"
)
_NOW = " AND m.known_until IS NULL"
_AS_OF = " AND m.known_from <= ?4 AND (m.known_until IS NULL OR m.known_until > ?4)"
# Both ends of a validity are in it.
_VALID = " AND (m.valid_from IS NULL OR m.valid_from <= ?5) AND (m.valid_until IS NULL OR m.valid_until >= ?5)"
# Places of bank key, tenant, bank id, as_of and valid_at come before those of the passages.
_FIXED = 5


class Hydration:
    """Reads passages back.

    Args:
        connections: The store's.
        guarded: False switches the checks off, for the test that shows that they are what holds.
    """

    def __init__(self, connections: Connections, *, guarded: bool = True) -> None:
        self._connections = connections
        self._guarded = guarded

    def hydrate(self, bank: Bank, passages: Sequence[Passage], visibility: Visibility) -> list[HydratedRow]:
        """See `MemoryStore.hydrate`."""
        found: list[HydratedRow] = []
        fixed = (bank.key, bank.tenant, bank.bank_id, visibility.as_of, visibility.valid_at)
        past = visibility.as_of is not None
        valid = visibility.valid_at is not None
        bank_id = bank.bank_id
        for part in batched(passages, SIZES[-1]):
            size = next(size for size in SIZES if size >= len(part))
            wanted: list[int | None] = []
            for passage in part:
                wanted += (passage.row_key, passage.ordinal)
            wanted += [None] * (2 * (size - len(part)))
            rows = self._connections.query(_statement(size, past, valid, self._guarded), (*fixed, *wanted))
            found += [_decode(row, bank_id) for row in rows]
        return found


def _decode(row: Row, bank_id: str) -> HydratedRow:
    memory = decode_memory(row[:-1], bank_id)
    text = row[-1]
    return HydratedRow(row[0], memory, memory.content if text is None else text)


@cache
def _statement(size: int, past: bool, valid: bool, guarded: bool) -> str:  # noqa: FBT001 - a key of the cache
    marks = ", ".join(f"(?{_FIXED + 1 + 2 * place}, ?{_FIXED + 2 + 2 * place})" for place in range(size))
    checks = f"{_BANK}{_AS_OF if past else _NOW}{_VALID if valid else ''}" if guarded else ""
    # CROSS JOIN keeps the order: the wanted first.
    return (
        f"WITH wanted (row_key, ordinal) AS (VALUES {marks}) SELECT {MEMORY_COLUMNS}, k.text FROM wanted w"
        " CROSS JOIN memories m ON m.row_key = w.row_key CROSS JOIN contents c ON c.row_key = w.row_key"
        f" LEFT JOIN chunks k ON w.ordinal >= 0 AND k.passage_key = w.row_key * {PASSAGES_PER_ROW} + w.ordinal + 1"
        f"{checks}"
    )
