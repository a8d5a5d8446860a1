"""Entities that a language model compares, and the links that it finds."""

from __future__ import annotations

import apsw

from astrocyte.model import KnownEntity
from astrocyte.stores.graph.entity_graph import ALIAS_OF, Unjudged
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.graph import derived_rows
from astrocyte.stores.sqlite.graph.resolution import known_entities
from astrocyte.stores.sqlite.rows import fetch, insert_rows

# Entities of a bank that one is compared with: a vector is made of each name.
MOST_COMPARED = 200
MOST_PASSAGES = 2
# Characters before and after a mention.
AROUND_CHARS = 140

_UNJUDGED = (
    "SELECT e.entity_key, e.bank_key, b.bank_id FROM graph_entities e JOIN banks b USING (bank_key)"
    " WHERE e.judged IS NULL AND e.unresolved IS NULL AND e.mention_count > 0 AND b.tenant <> ''"
    f" AND NOT EXISTS (SELECT 1 FROM entity_links l WHERE l.source_key = e.entity_key AND l.link_type = '{ALIAS_OF}')"
    " ORDER BY e.entity_key LIMIT ?"
)
_MENTIONED = (
    "SELECT entity_key FROM graph_entities WHERE bank_key = ? AND mention_count > 0"
    " ORDER BY mention_count DESC, entity_key LIMIT ?"
)
_NAMED_BY = f"SELECT source_key FROM entity_links WHERE target_key = ? AND link_type = '{ALIAS_OF}'"
_PASSAGES = (
    "SELECT substr(c.content, max(1, n.first_char + 1 - ?2), n.end_char - n.first_char + 2 * ?2)"
    " FROM entity_mentions n CROSS JOIN memories m ON m.row_key = n.row_key JOIN contents c ON c.row_key = n.row_key"
    " WHERE n.entity_key = ?1 AND n.first_char >= 0 AND m.known_until IS NULL AND m.forgotten_at IS NULL"
    " ORDER BY n.row_key DESC LIMIT ?3"
)


def unjudged(connection: apsw.Connection, limit: int) -> list[Unjudged]:
    """Entities of which no language model was asked; see `EntityGraphStore.unjudged`."""
    rows = fetch(connection, _UNJUDGED, (limit,))
    known = known_entities(connection, {key for key, _, _ in rows})
    return [Unjudged(key, bank_key, bank_id, known[key]) for key, bank_key, bank_id in rows]


def comparable(connection: apsw.Connection, one: Unjudged) -> dict[int, KnownEntity]:
    """Entities that may be the same one; see `EntityGraphStore.comparable`."""
    keys = {key for (key,) in fetch(connection, _MENTIONED, (one.bank_key, MOST_COMPARED))}
    keys |= derived_rows.akin(connection, [one.key])
    # These are known to be the same one: a link back would say it twice.
    keys -= {key for (key,) in fetch(connection, _NAMED_BY, (one.key,))}
    return known_entities(connection, keys - {one.key})


def passages(connection: apsw.Connection, key: int) -> tuple[str, ...]:
    """The newest passages that mention an entity."""
    return tuple(text for (text,) in fetch(connection, _PASSAGES, (key, AROUND_CHARS, MOST_PASSAGES)))


def judge(transaction: Transaction, one: Unjudged, target: int | None, evidence: str, confidence: float) -> None:
    """Note that a language model was asked. What went meanwhile is left alone."""
    connection = transaction.connection
    connection.execute("UPDATE graph_entities SET judged = 1 WHERE entity_key = ?", (one.key,))
    ends = fetch(
        connection, "SELECT entity_key FROM graph_entities WHERE bank_key = ? AND entity_key IN (?, ?)",
        (one.bank_key, one.key, target),
    )  # fmt: skip
    if target is not None and len(ends) == len((one.key, target)):
        row = (
            None, one.bank_key, one.key, target, ALIAS_OF, "model", None, None, None, evidence, confidence,
            transaction.clock(), None, None, "{}",
        )  # fmt: skip
        insert_rows(connection, "entity_links", [row])
