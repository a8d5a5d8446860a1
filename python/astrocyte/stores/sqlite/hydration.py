"""Reading the hits that the index proposes from the database, which decides what leaves.

The tenant, the bank, forgetting and both clocks are checked here again, in SQL, whatever the index believed. This is on
the path of every recall: one prepared statement for any number of passages, three look-ups by primary key for each.
Damaged rows are left out: a damaged page or row must not fail the answers of its whole bank.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from astrocyte.model import Bank
from astrocyte.stores.quarantine import HashFits, Quarantine
from astrocyte.stores.records import HydratedRow, Visibility
from astrocyte.stores.sqlite import damage
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.rows import PASSAGES_PER_ROW, Row, decode_metadata, decode_tags

# As `HydratedRow` has them; w is the passage asked for, m memories, c contents, k its chunk.
_COLUMNS = (
    "w.value, m.memory_id, m.version, c.content, k.text, m.fact_type, m.memory_layer, c.tags, c.metadata, c.source, "
    "m.session_id, c.speaker, m.principal, m.occurred_at, m.retained_at, m.chunk_count, m.token_count, m.row_key"
)
# CROSS JOIN keeps the order: the passages asked for first.
_PASSAGES = (
    f"SELECT {_COLUMNS} FROM carray(?1) w"
    f" CROSS JOIN memories m ON m.row_key = w.value / {PASSAGES_PER_ROW}"
    f" CROSS JOIN contents c ON c.row_key = w.value / {PASSAGES_PER_ROW}"
    " LEFT JOIN chunks k ON k.passage_key = w.value"
)
# The sub-select is evaluated once: no bank of this key, tenant and name, no rows.
_BANK = (
    " WHERE m.bank_key = (SELECT b.bank_key FROM banks b WHERE b.bank_key = ?2 AND b.tenant = ?3 AND b.bank_id = ?4)"
    " AND m.forgotten_at IS NULL"
)
_NOW = " AND m.known_until IS NULL"
_AS_OF = " AND m.known_from <= ?5 AND (m.known_until IS NULL OR m.known_until > ?5)"
# Both ends of a validity are in it.
_VALID = " AND (m.valid_from IS NULL OR m.valid_from <= ?6) AND (m.valid_until IS NULL OR m.valid_until >= ?6)"
# By (with as_of, with valid_at): the statement, and how many of its six values it takes.
_GUARDED = {
    (False, False): (_PASSAGES + _BANK + _NOW, 4),
    (True, False): (_PASSAGES + _BANK + _AS_OF, 5),
    (False, True): (_PASSAGES + _BANK + _NOW + _VALID, 6),
    (True, True): (_PASSAGES + _BANK + _AS_OF + _VALID, 6),
}
_UNGUARDED = (_PASSAGES, 1)
# Of several banks at once: whose each row is stands behind it. Their statements take no bank.
_EACH = (
    _PASSAGES.replace(" FROM carray", ", b.bank_key, b.tenant, b.bank_id FROM carray")
    + " CROSS JOIN banks b ON b.bank_key = m.bank_key WHERE m.forgotten_at IS NULL"
)
_GUARDED_EACH = {
    (False, False): (_EACH + _NOW, 1),
    (True, False): (_EACH + _AS_OF, 5),
    (False, True): (_EACH + _NOW + _VALID, 6),
    (True, True): (_EACH + _AS_OF + _VALID, 6),
}


# Answers of which one is compared with the content hashes of its rows, the first among them.
ANSWERS_PER_CHECK = 64


class Hydration:
    """Reads passages back.

    Args:
        connections: The store's.
        quarantine: Where damaged rows go.
        hash_fits: Tells whether a content hash fits; None checks none.
        guarded: False switches the checks off, for the test that shows that they are what holds.
    """

    def __init__(
        self,
        connections: Connections,
        quarantine: Quarantine,
        hash_fits: HashFits | None = None,
        *,
        guarded: bool = True,
    ) -> None:
        self._connections = connections
        self._quarantine = quarantine
        self._hash_fits = hash_fits
        self._guarded = guarded
        self._answers = 0

    def hydrate(self, bank: Bank, passages: Sequence[tuple[int, int]], visibility: Visibility) -> list[HydratedRow]:
        """See `MemoryStore.hydrate`."""
        if not passages:
            return []
        try:
            rows = self._read(bank, passages, visibility)
        except Exception as error:
            if damage.problem_of(error) is None:
                raise
            rows = self._around_damage(bank, passages, visibility)
        return self._checked(bank, rows)

    def _around_damage(
        self, bank: Bank, passages: Sequence[tuple[int, int]], visibility: Visibility
    ) -> list[HydratedRow]:
        """Return the rows that can be read, in the order of the passages."""
        by_row = {row_key: [one for one in passages if one[0] == row_key] for row_key, _ in passages}
        found = damage.around(
            lambda row_key: self._read(bank, by_row[row_key], visibility), iter(by_row), bank, self._quarantine
        )
        places = {passage: place for place, passage in reversed(list(enumerate(passages)))}
        return sorted((row for rows in found for row in rows), key=lambda row: places[row.row_key, row.ordinal])

    def _checked(self, bank: Bank, rows: list[HydratedRow]) -> list[HydratedRow]:
        """Return the rows that are not damaged, as far as that is known."""
        self._answers += 1
        if self._hash_fits is not None and self._answers % ANSWERS_PER_CHECK == 1:
            self._check_hashes(bank, rows)
        for row in rows:
            retained_at, occurred_at = row.retained_at, row.occurred_at
            # Decoded parts of their kinds, and times that can be shown. In line, for this is on the path of every hit.
            if not (
                type(row.metadata) is dict
                and type(retained_at) is int
                and damage.FIRST_TIME <= retained_at <= damage.LAST_TIME
                and (
                    occurred_at is None
                    or (type(occurred_at) is int and damage.FIRST_TIME <= occurred_at <= damage.LAST_TIME)
                )
            ):
                self._quarantine.add(bank.key, row.row_key, damage.ROW)
        if not self._quarantine.keys:
            return rows
        return [row for row in rows if row.row_key not in self._quarantine]

    def _check_hashes(self, bank: Bank, rows: list[HydratedRow]) -> None:
        if self._hash_fits is None or not rows:
            return
        keys = self._connections.numbers(array("q", [row.row_key for row in rows]))
        sql = "SELECT m.row_key, m.content_hash FROM carray(?) w CROSS JOIN memories m ON m.row_key = w.value"
        hashes: dict[int, bytes] = dict(self._connections.query(sql, (keys,)))
        for row in rows:
            stored = hashes.get(row.row_key, b"")
            if not self._hash_fits(stored, row.content, row.speaker, row.session_id, row.occurred_at):
                self._quarantine.add(bank.key, row.row_key, damage.HASH)

    def _read(self, bank: Bank, passages: Sequence[tuple[int, int]], visibility: Visibility) -> list[HydratedRow]:
        keys = array("q")
        for row_key, ordinal in passages:
            keys.append(row_key * PASSAGES_PER_ROW + ordinal + 1)
        as_of, valid_at = visibility.as_of, visibility.valid_at
        sql, count = _GUARDED[as_of is not None, valid_at is not None] if self._guarded else _UNGUARDED
        values = (self._connections.numbers(keys), bank.key, bank.tenant, bank.bank_id, as_of, valid_at)
        return _decoded(self._connections.query(sql, values[:count]))

    def hydrate_each(
        self, asked: Sequence[tuple[Bank, Sequence[tuple[int, int]]]], visibility: Visibility
    ) -> list[list[HydratedRow]]:
        """See `MemoryStore.hydrate_each`."""
        if len(asked) < 2 or not self._guarded:  # noqa: PLR2004 - one bank has a statement of its own
            return [self.hydrate(bank, passages, visibility) for bank, passages in asked]
        owners = {
            (row_key * PASSAGES_PER_ROW + ordinal + 1, bank.key, bank.tenant, bank.bank_id): place
            for place, (bank, passages) in enumerate(asked)
            for row_key, ordinal in passages
        }
        if not owners:
            return [[] for _ in asked]
        as_of, valid_at = visibility.as_of, visibility.valid_at
        sql, count = _GUARDED_EACH[as_of is not None, valid_at is not None]
        keys = self._connections.numbers(array("q", [passage for passage, *_ in owners]))
        rows: list[list[Row]] = [[] for _ in asked]
        try:
            for row in self._connections.query(sql, (keys, None, None, None, as_of, valid_at)[:count]):
                # A row comes once for each bank of which it was asked, and is that of one.
                place = owners.pop((row[0], *row[-3:]), None)
                if place is not None:
                    rows[place].append(row[:-3])
            return [self._checked(bank, _decoded(own)) for (bank, _), own in zip(asked, rows, strict=True)]
        except Exception as error:
            if damage.problem_of(error) is None:
                raise
            return [self.hydrate(bank, passages, visibility) for bank, passages in asked]


def _decoded(rows: list[Row]) -> list[HydratedRow]:
    """Rows of `_COLUMNS`. One loop over all of them: every recall decodes some ten."""
    decoded = []
    for row in rows:
        (
            passage, memory_id, version, content, chunk, fact_type, layer, tags, metadata, source, session_id, speaker,
            principal, occurred_at, retained_at, chunk_count, token_count, _,
        ) = row  # fmt: skip
        decoded.append(
            HydratedRow(
                passage // PASSAGES_PER_ROW,
                passage % PASSAGES_PER_ROW - 1,
                memory_id,
                version,
                content,
                content if chunk is None else chunk,
                fact_type,
                layer,
                () if tags == "[]" else decode_tags(tags),
                {} if metadata == "{}" else decode_metadata(metadata),
                source,
                session_id,
                speaker,
                principal,
                occurred_at,
                retained_at,
                chunk_count,
                token_count,
            )
        )
    return decoded
