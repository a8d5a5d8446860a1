"""Links between names of one entity, decided anew for every new name and for the names that share a word with it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from astrocyte.model import KnownEntity
from astrocyte.stores.graph.entity_graph import ALIAS_OF, Resolve
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.graph import derived_rows
from astrocyte.stores.sqlite.rows import Array, fetch, insert_rows, key_array

# The name of an entity is that of its first mention in any version, for what is forgotten may come back.
_KNOWN = (
    "SELECT e.entity_key, e.bank_key, e.entity_id, coalesce(e.given_name, (SELECT n.name FROM entity_mentions n"
    " WHERE n.entity_key = e.entity_key ORDER BY n.row_key, n.first_char LIMIT 1),"
    " replace(substr(e.entity_id, instr(e.entity_id, ':') + 1), '-', ' ')), e.entity_type, e.aliases"
    " FROM carray(?1) w CROSS JOIN graph_entities e ON e.entity_key = w.value"
)
_UNRESOLVED = "SELECT entity_key, bank_key FROM graph_entities WHERE unresolved = 1 ORDER BY entity_key LIMIT ?"
_WORDS = (
    "SELECT x.entity_key, x.word FROM carray(?1) w CROSS JOIN entity_words x ON x.entity_key = w.value"
    " WHERE (SELECT count(*) FROM (SELECT 1 FROM entity_words c WHERE c.bank_key = x.bank_key AND c.word = x.word"
    f" LIMIT {derived_rows.COMMON_WORD + 1})) <= {derived_rows.COMMON_WORD}"
)
_HAVING = (
    "SELECT x.word, x.entity_key FROM carray(?2) w CROSS JOIN entity_words x ON x.bank_key = ?1 AND x.word = w.value"
)


def resolve_some(transaction: Transaction, resolve: Resolve, limit: int) -> int:
    """Decide on up to ``limit`` new entities; returns how many there were.

    The decision on an entity depends on the names that share a word with it and on nothing else, so the order in which
    memories came leaves no trace.
    """
    connection = transaction.connection
    new = fetch(connection, _UNRESOLVED, (limit,))
    for bank_key in dict.fromkeys(bank for _, bank in new):
        own = [key for key, bank in new if bank == bank_key]
        keys = sorted({*own, *derived_rows.akin(connection, own)})
        _resolve(connection, bank_key, keys, resolve, transaction.clock())
    connection.execute(
        "UPDATE graph_entities SET unresolved = NULL WHERE entity_key IN (SELECT value FROM carray(?1))",
        (key_array([key for key, _ in new]),),
    )
    return len(new)


def _resolve(connection: apsw.Connection, bank_key: int, keys: Sequence[int], resolve: Resolve, now: int) -> None:
    words: dict[int, set[str]] = {key: set() for key in keys}
    for key, word in fetch(connection, _WORDS, (key_array(keys),)):
        words[key].add(word)
    every = sorted(set().union(*words.values()))
    having: dict[str, list[int]] = {}
    for word, key in fetch(connection, _HAVING, (bank_key, Array(tuple(every)))) if every else ():
        having.setdefault(word, []).append(key)
    known = known_entities(connection, {*keys, *(key for found in having.values() for key in found)})
    key_of = {entity.id: key for key, entity in known.items()}
    beside = {key: sorted({other for word in words[key] for other in having[word]} - {key}) for key in keys}
    links = [
        (
            None, bank_key, key_of[found.entity], key_of[found.alias_of], ALIAS_OF, "resolution", None, None, None,
            found.reason, found.confidence, now, None, None, "{}",
        )
        for found in resolve(known, beside)
    ]  # fmt: skip
    connection.execute(
        "DELETE FROM entity_links WHERE origin = 'resolution' AND source_key IN (SELECT value FROM carray(?1))",
        (key_array(keys),),
    )
    if links:
        insert_rows(connection, "entity_links", links)


def known_entities(connection: apsw.Connection, keys: set[int]) -> dict[int, KnownEntity]:
    """Entities by key, as the resolution of names compares them."""
    rows = fetch(connection, _KNOWN, (key_array(sorted(keys)),))
    return {
        key: KnownEntity(entity_id, name, kind, tuple(json.loads(aliases)))
        for key, _, entity_id, name, kind, aliases in rows
    }
