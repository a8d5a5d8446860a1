"""The part of an entity graph that callers made, for archives: fields of entities, links, merges and splits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import apsw

from astrocyte.errors import AstrocyteError, FailedPrecondition, LegalHoldActive, NotFound
from astrocyte.model import AuditEventKind, Bank
from astrocyte.stores.graph.entity_graph import ALIAS_OF, ArchivedEntity, ArchivedLink, GraphView
from astrocyte.stores.knowledge.items import Standing
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.graph import derived_rows
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import Row, decode_metadata, encode_metadata, fetch, insert_rows, key_array
from astrocyte.stores.sqlite.tables import audit, legal_holds

_FIELDS = "e.entity_key, e.entity_id, e.entity_type, e.given_name, e.aliases, e.metadata"
# The entity o is the other end of a link.
_TOUCHED = (
    "(e.given_name IS NOT NULL OR e.aliases <> '[]' OR e.metadata <> '{{}}'"
    " OR EXISTS (SELECT 1 FROM entity_links x CROSS JOIN graph_entities o ON o.entity_key = x.target_key"
    " WHERE x.source_key = e.entity_key AND x.origin = 'caller' AND {other})"
    " OR EXISTS (SELECT 1 FROM entity_links x CROSS JOIN graph_entities o ON o.entity_key = x.source_key"
    " WHERE x.target_key = e.entity_key AND x.origin = 'caller' AND {other}))"
)
_EQUAL = (
    "SELECT link_key, evidence, confidence, metadata FROM entity_links WHERE source_key = ? AND target_key = ?"
    " AND link_type = ? AND origin = 'caller' AND valid_from IS ? AND valid_until IS ?"
)

# Visible or not: entities of an import may have their mentions later.
_STANDS_FOR = (
    "SELECT DISTINCT l.target_key FROM carray(?1) w CROSS JOIN entity_links l ON l.source_key = w.value"
    f" AND l.link_type = '{ALIAS_OF}' AND l.origin = 'caller'"
)


def entities(connection: apsw.Connection, bank: Bank, after: str, limit: int) -> list[ArchivedEntity]:
    """The next entities that callers changed or linked; see `EntityGraphStore.archived_entities`."""
    see = Conditions(GraphView(bank))
    rows = fetch(
        connection,
        f"SELECT {_FIELDS} FROM graph_entities e WHERE e.bank_key = ? AND e.entity_id > ? AND {see.entity()}"
        f" AND {_TOUCHED.format(other=see.entity('o'))} ORDER BY e.entity_id LIMIT ?",
        (bank.key, after, limit),
    )
    return [_entity(row) for row in rows]


def by_keys(connection: apsw.Connection, bank: Bank, keys: Sequence[int]) -> dict[int, ArchivedEntity]:
    """The visible ones of these entities, by key, in ascending order."""
    rows = fetch(
        connection,
        f"SELECT {_FIELDS} FROM carray(?2) w CROSS JOIN graph_entities e ON e.entity_key = w.value"
        f" WHERE e.bank_key = ?1 AND {Conditions(GraphView(bank)).entity()} ORDER BY e.entity_key",
        (bank.key, key_array(keys)),
    )
    return {row[0]: _entity(row) for row in rows}


def links(connection: apsw.Connection, bank: Bank, after: int, limit: int) -> tuple[list[ArchivedLink], int]:
    """The next links of callers between visible entities; see `EntityGraphStore.archived_links`."""
    rows = fetch(connection, _links(bank, "", "l.link_key > ?2") + " LIMIT ?3", (bank.key, after, limit))
    return [_archived(row) for row in rows], rows[-1][0] if rows else 0


def links_by_keys(connection: apsw.Connection, bank: Bank, keys: Sequence[int]) -> list[tuple[int, ArchivedLink]]:
    """Those of these links that callers made between visible entities, with their keys, in ascending order."""
    rows = fetch(
        connection, _links(bank, "carray(?2) w CROSS JOIN ", "l.link_key = w.value"), (bank.key, key_array(keys))
    )
    return [(row[0], _archived(row)) for row in rows]


def standings(
    connection: apsw.Connection, bank: Bank, rows: Sequence[ArchivedEntity | ArchivedLink], *, overwrite: bool
) -> list[Standing]:
    """The relation of each row to what the bank has; see `EntityGraphStore.standings`."""
    found = [
        _entity_standing(connection, bank, row) if isinstance(row, ArchivedEntity) else _link(connection, bank, row)[0]
        for row in rows
    ]
    if overwrite and Standing.OTHER in found:
        legal_holds.check_whole_bank(connection, bank)
    return found


def restore(
    transaction: Transaction,
    bank: Bank,
    rows: Sequence[ArchivedEntity | ArchivedLink],
    words: Mapping[str, frozenset[str]],
    by: str,
    *,
    overwrite: bool,
) -> list[bool | AstrocyteError]:
    """Store rows; see `EntityGraphStore.restore`."""
    connection = transaction.connection
    transaction.bank(bank)
    results: list[bool | AstrocyteError] = []
    for row in rows:
        try:
            if isinstance(row, ArchivedEntity):
                results.append(_restore_entity(connection, bank, row, words, overwrite=overwrite))
            else:
                results.append(_restore_link(connection, bank, row, overwrite=overwrite))
        except LegalHoldActive:
            raise
        except AstrocyteError as error:
            results.append(error)
    stored = [row for row, result in zip(rows, results, strict=True) if result is True]
    for kind, event in (
        (ArchivedEntity, AuditEventKind.ENTITY_UPDATED),
        (ArchivedLink, AuditEventKind.ENTITY_LINKS_CREATED),
    ):
        if count := sum(isinstance(row, kind) for row in stored):
            audit.record(transaction, bank.tenant, event, by, bank_key=bank.key, details={"count": count})
    return results


def _links(bank: Bank, before: str, which: str) -> str:
    """A statement that reads links of callers between visible entities by key; ?1 is the bank."""
    see = Conditions(GraphView(bank))
    return (
        "SELECT l.link_key, s.entity_id, t.entity_id, l.link_type, l.evidence, l.confidence, l.created_at,"
        f" l.valid_from, l.valid_until, l.metadata FROM {before}entity_links l"
        " CROSS JOIN graph_entities s ON s.entity_key = l.source_key"
        " CROSS JOIN graph_entities t ON t.entity_key = l.target_key"
        f" WHERE l.bank_key = ?1 AND l.origin = 'caller' AND {which} AND {see.entity('s')}"
        f" AND {see.entity('t')} ORDER BY l.link_key"
    )


def _archived(row: Row) -> ArchivedLink:
    _, source, target, kind, evidence, confidence, created_at, valid_from, valid_until, metadata = row
    fields = decode_metadata(metadata)
    return ArchivedLink(source, target, kind, evidence, confidence, created_at, valid_from, valid_until, fields)


def _entity(row: Row) -> ArchivedEntity:
    _, entity_id, kind, name, aliases, metadata = row
    return ArchivedEntity(entity_id, kind, name, tuple(json.loads(aliases)), decode_metadata(metadata))


def _stored(connection: apsw.Connection, bank: Bank, entity_id: str) -> Row | None:
    rows = fetch(
        connection,
        f"SELECT {_FIELDS} FROM graph_entities e WHERE e.bank_key = ? AND e.entity_id = ?",
        (bank.key, entity_id),
    )
    return rows[0] if rows else None


def _entity_standing(connection: apsw.Connection, bank: Bank, entity: ArchivedEntity) -> Standing:
    row = _stored(connection, bank, entity.entity_id)
    own = None if row is None else _entity(row)
    if own is None or not own.is_changed:
        # What nobody changed has nothing that the archive could take away.
        return Standing.ABSENT if entity.is_changed or own is None else Standing.EQUAL
    return Standing.EQUAL if not entity.is_changed or own.fields == entity.fields else Standing.OTHER


def _restore_entity(
    connection: apsw.Connection,
    bank: Bank,
    entity: ArchivedEntity,
    words: Mapping[str, frozenset[str]],
    *,
    overwrite: bool,
) -> bool:
    standing = _entity_standing(connection, bank, entity)
    if standing is Standing.EQUAL or (standing is Standing.OTHER and not overwrite):
        return False
    if standing is Standing.OTHER:
        legal_holds.check_whole_bank(connection, bank)
    row = _stored(connection, bank, entity.entity_id)
    if row is None:
        connection.execute(
            "INSERT INTO graph_entities (bank_key, entity_id, entity_type, unresolved) VALUES (?, ?, ?, 1)",
            (bank.key, entity.entity_id, entity.entity_type),
        )
        key = connection.last_insert_rowid()
    else:
        key = row[0]
        derived_rows.mark(connection, derived_rows.akin(connection, [key]))
    connection.execute(
        "UPDATE graph_entities SET given_name = ?, aliases = ?, metadata = ?, revision = revision + 1, unresolved = 1"
        " WHERE entity_key = ?",
        (
            entity.name,
            json.dumps(list(entity.aliases), ensure_ascii=False),
            encode_metadata(entity.metadata),
            key,
        ),
    )
    connection.execute("DELETE FROM entity_words WHERE entity_key = ?", (key,))
    every = set(words[entity.entity_id]).union(*(words[name] for name in entity.names))
    insert_rows(connection, "entity_words", [(bank.key, word, key) for word in sorted(every)])
    return entity.is_changed


def _link(connection: apsw.Connection, bank: Bank, link: ArchivedLink) -> tuple[Standing, int]:
    """The standing of a link, and the key of the one that the bank has; 0 for none."""
    ends = [_stored(connection, bank, one) for one in (link.entity_a, link.entity_b)]
    if ends[0] is None or ends[1] is None:
        return Standing.ABSENT, 0
    rows = fetch(connection, _EQUAL, (ends[0][0], ends[1][0], link.link_type, link.valid_from, link.valid_until))
    if not rows:
        return Standing.ABSENT, 0
    key, evidence, confidence, metadata = rows[0]
    equal = (evidence, confidence, decode_metadata(metadata)) == (link.evidence, link.confidence, link.metadata)
    return Standing.EQUAL if equal else Standing.OTHER, key


def _restore_link(connection: apsw.Connection, bank: Bank, link: ArchivedLink, *, overwrite: bool) -> bool:
    standing, key = _link(connection, bank, link)
    if standing is Standing.EQUAL or (standing is Standing.OTHER and not overwrite):
        return False
    metadata = encode_metadata(link.metadata)
    if standing is Standing.OTHER:
        legal_holds.check_whole_bank(connection, bank)
        connection.execute(
            "UPDATE entity_links SET evidence = ?, confidence = ?, metadata = ? WHERE link_key = ?",
            (link.evidence, link.confidence, metadata, key),
        )
        return True
    keys = []
    for entity_id in (link.entity_a, link.entity_b):
        row = _stored(connection, bank, entity_id)
        if row is None:
            raise NotFound(
                f"there is no entity {entity_id!a:.80} in bank {bank.bank_id!r}",
                metadata={"entity_id": entity_id, "bank_id": bank.bank_id},
            )
        keys.append(row[0])
    if link.link_type == ALIAS_OF:
        _check_circle(connection, keys[0], keys[1])
    row = (
        None, bank.key, keys[0], keys[1], link.link_type, "caller", None, None, None, link.evidence, link.confidence,
        link.created_at, link.valid_from, link.valid_until, metadata,
    )  # fmt: skip
    insert_rows(connection, "entity_links", [row])
    derived_rows.mark(connection, keys)
    return True


def _check_circle(connection: apsw.Connection, source: int, target: int) -> None:
    """Refuse an alias of something that is an alias of it, at any distance."""
    seen, waiting = {target}, [target]
    while waiting:
        rows = fetch(connection, _STANDS_FOR, (key_array(waiting),))
        found = {entity for (entity,) in rows} - seen
        if source in found:
            raise FailedPrecondition("the target is an alias of the source; split it first")
        seen |= found
        waiting = sorted(found)
