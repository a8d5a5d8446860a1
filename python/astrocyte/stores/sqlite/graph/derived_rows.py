"""Rows that are derived from versions of memories: written, replaced, and deleted with their versions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

from astrocyte.errors import LegalHoldActive
from astrocyte.model import Bank
from astrocyte.stores.graph.entity_graph import DerivedMention, DerivedVersion
from astrocyte.stores.sqlite.graph.visibility import KEEPING
from astrocyte.stores.sqlite.rows import Array, fetch, insert_rows, key_array
from astrocyte.stores.sqlite.tables import legal_holds

# A word that more entities have tells none of them apart, and is not looked at in the resolution of names.
COMMON_WORD = 50

_STANDING = (
    "SELECT m.row_key, m.bank_key, coalesce(r.revision, 0) FROM carray(?1) w"
    " CROSS JOIN memories m ON m.row_key = w.value LEFT JOIN graph_readings r ON r.row_key = w.value"
    " WHERE m.erasing IS NULL"
)
# One that is forgotten or replaced does not wait.
_WAIT = (
    "INSERT INTO graph_readings (row_key, bank_key, waiting) SELECT m.row_key, m.bank_key,"
    " CASE WHEN m.known_until IS NULL AND m.forgotten_at IS NULL THEN 1 END"
    " FROM carray(?1) w CROSS JOIN memories m ON m.row_key = w.value"
    " WHERE true ON CONFLICT (row_key) DO UPDATE SET waiting = excluded.waiting, attempts = 0"
)
_KNOWN = (
    "SELECT e.entity_id, e.entity_key FROM carray(?2) w CROSS JOIN graph_entities e"
    " ON e.bank_key = ?1 AND e.entity_id = w.value"
)
# Condition that an entity, by its key, has neither mentions nor links of callers.
UNREFERENCED = (
    "NOT EXISTS (SELECT 1 FROM entity_mentions n WHERE n.entity_key = {0})"
    f" AND NOT EXISTS (SELECT 1 FROM entity_links k WHERE k.source_key = {{0}} AND {KEEPING})"
    f" AND NOT EXISTS (SELECT 1 FROM entity_links k WHERE k.target_key = {{0}} AND {KEEPING})"
)
_ORPHANS = f"SELECT w.value FROM carray(?1) w WHERE {UNREFERENCED.format('w.value')}"
_ORPHANS_OF_BANK = (
    "SELECT e.entity_key, e.entity_id FROM graph_entities e WHERE e.bank_key = ?"
    f" AND {UNREFERENCED.format('e.entity_key')} ORDER BY e.entity_key"
)
# Entities that share a word with one of those given, but for common words.
_AKIN = (
    "SELECT DISTINCT o.entity_key FROM (SELECT DISTINCT x.bank_key, x.word FROM carray(?1) w"
    " CROSS JOIN entity_words x ON x.entity_key = w.value) t"
    " CROSS JOIN entity_words o ON o.bank_key = t.bank_key AND o.word = t.word"
    " WHERE (SELECT count(*) FROM (SELECT 1 FROM entity_words c WHERE c.bank_key = t.bank_key AND c.word = t.word"
    f" LIMIT {2 * COMMON_WORD + 1})) <= {2 * COMMON_WORD}"
)


def put(connection: apsw.Connection, versions: Sequence[DerivedVersion]) -> None:
    """Replace the derived rows of versions; those that were erased or read meanwhile are left out."""
    standing = set(fetch(connection, _STANDING, (key_array([one.row_key for one in versions]),)))
    there = [one for one in versions if (one.row_key, one.bank_key, one.revision) in standing]
    if unread := [one.row_key for one in there if one.unread]:
        connection.execute(_WAIT, (key_array(unread),))
    earlier = _mentioned(connection, [one.row_key for one in there])
    if earlier:
        _delete(connection, [one.row_key for one in there])
    mentions, links = [], []
    for bank_key in dict.fromkeys(one.bank_key for one in there):
        own = [one for one in there if one.bank_key == bank_key]
        keys = _keys(connection, bank_key, [mention for one in own for mention in one.mentions])
        for version in own:
            places = {(keys[mention.entity_id], mention.first_char): mention for mention in version.mentions}
            mentions += [
                (version.row_key, key, first, mention.end_char, mention.name, mention.confidence)
                for (key, first), mention in places.items()
            ]
            links += [
                (
                    None, bank_key, keys[link.source_id], keys[link.target_id], link.link_type,
                    link.origin.value, version.row_key, link.first_char, link.end_char, "", link.confidence, 0, None,
                    None, "{}",
                )
                for link in version.links
            ]  # fmt: skip
    if mentions:
        insert_rows(connection, "entity_mentions", mentions)
    if links:
        insert_rows(connection, "entity_links", links)
    if earlier:
        settle(connection, earlier)


def remove(connection: apsw.Connection, row_keys: Sequence[int]) -> None:
    """Delete the derived rows of versions, and the entities that nothing is left of."""
    touched = _mentioned(connection, row_keys)
    _delete(connection, row_keys)
    connection.execute(
        "DELETE FROM graph_readings WHERE row_key IN (SELECT value FROM carray(?1))", (key_array(row_keys),)
    )
    settle(connection, touched)


def orphans(connection: apsw.Connection, bank_key: int) -> dict[int, str]:
    """Keys and ids of the entities of a bank that have neither mentions nor links of callers."""
    return dict(fetch(connection, _ORPHANS_OF_BANK, (bank_key,)))


def clear(connection: apsw.Connection, bank: Bank) -> list[str]:
    """Delete the orphans of a bank, unless a hold covers the whole bank; returns their ids."""
    if not (found := removable(connection, bank)):
        return []
    settle(connection, list(found))
    return list(found.values())


def removable(connection: apsw.Connection, bank: Bank) -> dict[int, str]:
    """The orphans of a bank; none where a hold covers the whole bank, because callers may have named them."""
    try:
        legal_holds.check_whole_bank(connection, bank)
    except LegalHoldActive:
        return {}
    return orphans(connection, bank.key)


def settle(connection: apsw.Connection, entity_keys: Sequence[int]) -> None:
    """Delete those of the entities that have neither mentions nor links of callers; look at the names of the rest."""
    if not entity_keys:
        return
    gone = [key for (key,) in fetch(connection, _ORPHANS, (key_array(entity_keys),))]
    mark(connection, set(entity_keys) - set(gone))
    if gone:
        keys = gone
        # What was ambiguous beside a name may be clear without it.
        mark(connection, akin(connection, gone) - set(gone))
        for table, column in (
            ("entity_links", "source_key"),
            ("entity_links", "target_key"),
            ("entity_words", "entity_key"),
            ("graph_entities", "entity_key"),
        ):
            connection.execute(
                f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM carray(?1))", (key_array(keys),)
            )


def mark(connection: apsw.Connection, entity_keys: Iterable[int]) -> None:
    """Let the aliases of entities be looked for again."""
    keys = sorted(entity_keys)
    if keys:
        connection.execute(
            "UPDATE graph_entities SET unresolved = 1 WHERE entity_key IN (SELECT value FROM carray(?1))",
            (key_array(keys),),
        )


def akin(connection: apsw.Connection, entity_keys: Sequence[int]) -> set[int]:
    """Entities that share a word with one of these, common words aside; these included."""
    return {key for (key,) in fetch(connection, _AKIN, (key_array(entity_keys),))}


def _mentioned(connection: apsw.Connection, row_keys: Sequence[int]) -> list[int]:
    rows = fetch(
        connection,
        "SELECT DISTINCT n.entity_key FROM carray(?1) w CROSS JOIN entity_mentions n ON n.row_key = w.value",
        (key_array(row_keys),),
    )
    return [key for (key,) in rows]


def _delete(connection: apsw.Connection, row_keys: Sequence[int]) -> None:
    keys = row_keys
    for table in ("entity_links", "entity_mentions"):
        connection.execute(f"DELETE FROM {table} WHERE row_key IN (SELECT value FROM carray(?1))", (key_array(keys),))


def _keys(connection: apsw.Connection, bank_key: int, mentions: Sequence[DerivedMention]) -> dict[str, int]:
    """The keys of the entities by id; new entities are stored."""
    first = {mention.entity_id: mention for mention in reversed(mentions)}
    if not first:
        return {}
    keys: dict[str, int] = dict(fetch(connection, _KNOWN, (bank_key, Array(tuple(first)))))
    words = []
    for entity_id, mention in first.items():
        if entity_id not in keys:
            connection.execute(
                "INSERT INTO graph_entities (bank_key, entity_id, entity_type, unresolved) VALUES (?, ?, ?, 1)",
                (bank_key, entity_id, mention.entity_type),
            )
            key = keys[entity_id] = connection.last_insert_rowid()
            words += [(bank_key, word, key) for word in sorted(mention.words)]
    if words:
        insert_rows(connection, "entity_words", words)
    return keys
