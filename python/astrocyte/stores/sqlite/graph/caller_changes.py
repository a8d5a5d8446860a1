"""Changes of callers in an entity graph: links, names, merges. Each writes its audit row in its transaction."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from astrocyte.errors import AlreadyExists, Conflict, FailedPrecondition, NotFound
from astrocyte.model import AuditEventKind, Bank, Metadata, NewEntityLink
from astrocyte.stores.graph.entity_graph import ALIAS_OF, DISTINCT_FROM, GraphView, Group
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.graph import derived_rows
from astrocyte.stores.sqlite.graph.groups import Aliases
from astrocyte.stores.sqlite.graph.reader import SqliteGraphReader
from astrocyte.stores.sqlite.graph.records import etag, link_id
from astrocyte.stores.sqlite.graph.visibility import Conditions
from astrocyte.stores.sqlite.rows import encode_metadata, fetch, insert_rows, to_milliseconds
from astrocyte.stores.sqlite.tables import audit, idempotency, legal_holds

_EQUAL = (
    "SELECT link_key FROM entity_links WHERE source_key = ? AND target_key = ? AND link_type = ? AND origin = 'caller'"
    " AND valid_from IS ? AND valid_until IS ?"
)


class Changes:
    """The changes of one call in one bank.

    Args:
        transaction: Of the call.
        bank: The bank.
        by: Principal of the call.
        request: The request that it answers.
    """

    def __init__(self, transaction: Transaction, bank: Bank, by: str, request: RequestKey | None) -> None:
        self._transaction = transaction
        self._connection: apsw.Connection = transaction.connection
        self._bank = bank
        self._by = by
        self._request = request
        self._now = transaction.bank(bank).now
        self._view = GraphView(bank)
        self._reader = SqliteGraphReader(self._connection, self._view)

    @staticmethod
    def answered(transaction: Transaction, bank: Bank, request: RequestKey | None) -> Any:  # noqa: ANN401 - JSON
        """The answer of an equal earlier request, or None."""
        earlier = idempotency.stored(transaction.connection, bank.tenant, request)
        return None if earlier is None else json.loads(earlier)

    def create_links(self, links: Sequence[NewEntityLink]) -> list[int]:
        """Store links; returns their keys."""
        keys = self._keys({one for link in links for one in (link.entity_a, link.entity_b)})
        made = []
        for place, link in enumerate(links):
            source, target = keys[link.entity_a], keys[link.entity_b]
            ends = [None if one is None else to_milliseconds(one) for one in (link.valid_from, link.valid_until)]
            equal = fetch(self._connection, _EQUAL, (source, target, link.link_type, *ends))
            if equal:
                found = link_id(equal[0][0])
                raise AlreadyExists(
                    f"links[{place}]: an equal link is stored as {found!r}; delete it first, or leave this one out",
                    metadata={"field": f"links[{place}]", "link_id": found},
                )
            if link.link_type == ALIAS_OF:
                self._check_circle(source, target, f"links[{place}]")
            made.append(
                self._insert(source, target, link.link_type, link.evidence, link.confidence, link.metadata, ends)
            )
        self._record(AuditEventKind.ENTITY_LINKS_CREATED, made, {"count": len(made)})
        return made

    def delete_link(self, name: str) -> str:
        """Delete a link of a caller."""
        rows = fetch(
            self._connection,
            "SELECT link_key, origin, source_key, target_key FROM entity_links WHERE bank_key = ? AND link_key = ?",
            (self._bank.key, _key_of(name)),
        )
        if not rows:
            raise NotFound(
                f"there is no link {name!r} in bank {self._bank.bank_id!r}",
                metadata={"link_id": name, "bank_id": self._bank.bank_id},
            )
        key, origin, *ends = rows[0]
        if origin != "caller":
            raise FailedPrecondition(
                f"link {name!r} follows from {'a memory' if origin == 'memory' else 'the names of the two entities'}; "
                "update or forget the memory, or split the entity",
                metadata={"link_id": name, "origin": origin},
            )
        self._check_hold()
        self._connection.execute("DELETE FROM entity_links WHERE link_key = ?", (key,))
        derived_rows.settle(self._connection, ends)
        self._record(AuditEventKind.ENTITY_LINK_DELETED, name, {"count": 1})
        return name

    def update(
        self,
        entity_id: str,
        name: str | None,
        aliases: Sequence[str] | None,
        metadata: Metadata | None,
        words: Mapping[str, frozenset[str]],
        expected_etag: str | None,
    ) -> int:
        """Change an entity; returns its key."""
        key = self._keys({entity_id})[entity_id]
        ((revision, own_name, own_aliases),) = fetch(
            self._connection, "SELECT revision, given_name, aliases FROM graph_entities WHERE entity_key = ?", (key,)
        )
        if expected_etag not in (None, etag(key, revision)):
            raise Conflict(
                f"entity {entity_id!r} has etag {etag(key, revision)!r}, not {expected_etag!r}; "
                "read it again and retry",
                metadata={"entity_id": entity_id, "etag": etag(key, revision)},
            )
        changes: dict[str, object] = {}
        if name is not None:
            changes["given_name"] = name or None
        if aliases is not None:
            changes["aliases"] = json.dumps(list(aliases), ensure_ascii=False)
        if metadata is not None:
            changes["metadata"] = encode_metadata(metadata)
        columns = ", ".join(f"{column} = ?" for column in changes)
        self._connection.execute(
            f"UPDATE graph_entities SET {columns}, revision = revision + 1, unresolved = 1 WHERE entity_key = ?",
            (*changes.values(), key),
        )
        left = [(own_name or "") if name is None else name, *(json.loads(own_aliases) if aliases is None else aliases)]
        self._set_words(key, entity_id, [one for one in left if one], words)
        self._record(AuditEventKind.ENTITY_UPDATED, key, {"count": 1})
        return key

    def merge(self, entity_ids: Sequence[str], into: str, reason: str) -> int:
        """Merge entities into another; returns the key of that."""
        keys = self._keys({*entity_ids, into})
        target = keys[into]
        for place, entity_id in enumerate(entity_ids):
            source = keys[entity_id]
            self._connection.execute(
                "DELETE FROM entity_links WHERE link_type = ?1 AND ((source_key = ?2 AND target_key = ?3)"
                " OR (source_key = ?3 AND target_key = ?2))",
                (DISTINCT_FROM, source, target),
            )
            # Read anew each time: the links before this one are stored.
            groups = Aliases(self._connection, Conditions(self._view)).groups([source, target])
            if groups[source].canonical == groups[target].canonical:
                self._check_circle(source, target, f"entity_ids[{place}]")
                continue
            self._insert(source, target, ALIAS_OF, reason, 1.0, {}, (None, None))
        self._record(AuditEventKind.ENTITIES_MERGED, target, {"count": len(entity_ids), **_said(reason)})
        return target

    def split(self, entity_id: str, reason: str) -> int:
        """Take an entity out of its group; returns its key."""
        key = self._keys({entity_id})[entity_id]
        group = self._reader.groups([key])[key]
        if len(group.members) == 1:
            raise FailedPrecondition(
                f"entity {entity_id!r} is not merged with another one; nothing was changed",
                metadata={"entity_id": entity_id},
            )
        self._check_hold()
        self._cut(key, group, reason)
        self._record(AuditEventKind.ENTITY_SPLIT, key, {"count": 1, **_said(reason)})
        return key

    def _cut(self, key: int, group: Group, reason: str) -> None:
        self._connection.execute(
            "DELETE FROM entity_links WHERE origin = 'caller' AND link_type = ?1"
            " AND (source_key = ?2 OR target_key = ?2)",
            (ALIAS_OF, key),
        )
        # What memories or the resolution of names would join again stays apart.
        for link in sorted(Aliases(self._connection, Conditions(self._view)).links([key])):
            other = next(one for one in link if one != key)
            self._insert(key, other, DISTINCT_FROM, reason, 1.0, {}, (None, None))
        # The others were perhaps joined by it alone, or by each other.
        derived_rows.mark(self._connection, group.members)

    def _keys(self, entity_ids: set[str]) -> dict[str, int]:
        keys = self._reader.keys(sorted(entity_ids))
        unknown = sorted(entity_ids - keys.keys())
        if unknown:
            raise NotFound(
                f"there is no entity {unknown[0]!r} in bank {self._bank.bank_id!r}",
                metadata={"entity_id": unknown[0], "bank_id": self._bank.bank_id},
            )
        return keys

    def _check_circle(self, source: int, target: int, at: str) -> None:
        """Refuse an alias of something that is an alias of it, at any distance."""
        seen, waiting = {target}, [target]
        aliases = Aliases(self._connection, Conditions(self._view))
        while waiting:
            found = {entity for alias, entity in aliases.links(waiting) if alias in seen} - seen
            if source in found:
                raise FailedPrecondition(
                    f"{at}: the target is an alias of the source; split it first", metadata={"field": at}
                )
            seen |= found
            waiting = sorted(found)

    def _insert(  # noqa: PLR0913, PLR0917 - the columns of a link
        self,
        source: int,
        target: int,
        kind: str,
        evidence: str,
        confidence: float,
        metadata: Metadata,
        ends: Sequence[int | None],
    ) -> int:
        row = (
            None, self._bank.key, source, target, kind, "caller", None, None, None, evidence, confidence, self._now,
            *ends, encode_metadata(metadata),
        )  # fmt: skip
        insert_rows(self._connection, "entity_links", [row])
        return self._connection.last_insert_rowid()

    def _set_words(self, key: int, entity_id: str, names: Sequence[str], words: Mapping[str, frozenset[str]]) -> None:
        derived_rows.mark(self._connection, derived_rows.akin(self._connection, [key]))
        self._connection.execute("DELETE FROM entity_words WHERE entity_key = ?", (key,))
        every = set(words[entity_id]).union(*(words.get(name) or frozenset(name.casefold().split()) for name in names))
        insert_rows(self._connection, "entity_words", [(self._bank.key, word, key) for word in sorted(every)])

    def _check_hold(self) -> None:
        legal_holds.check_whole_bank(self._connection, self._bank)

    def _record(self, kind: AuditEventKind, answer: object, details: Mapping[str, str | int]) -> None:
        audit.record(self._transaction, self._bank.tenant, kind, self._by, bank_key=self._bank.key, details=details)
        if self._request is not None:
            # Keys only: an answer outlives an erasure.
            response = json.dumps(answer).encode()
            idempotency.store(
                self._connection, self._bank.tenant, self._request, response, self._now, bank_key=self._bank.key
            )


def _said(reason: str) -> dict[str, str]:
    return {"reason": reason} if reason else {}


def _key_of(name: str) -> int:
    """The key in a link's id; -1 for what is no id of a link."""
    try:
        key = int(name.removeprefix("link-"), 16)
    except ValueError:
        return -1
    return key if link_id(key) == name and key < 2**63 else -1
