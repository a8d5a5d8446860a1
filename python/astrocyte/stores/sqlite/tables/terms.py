"""Canonical terms in SQLite."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import apsw

from astrocyte.errors import FailedPrecondition, NotFound
from astrocyte.model import Term, TermDecision, TermStatus
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.engine.connections import Connections
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.engine.writer import Writer
from astrocyte.stores.sqlite.rows import Row, fetch, to_datetime
from astrocyte.stores.sqlite.tables import idempotency
from astrocyte.stores.terms import MOST_MEMORY_IDS, NewTerm

COLUMNS = (
    "term_key, term_id, name, aliases, definition, status, memory_ids, proposals, proposed_by, created_at, reviewed_by,"
    " reviewed_at, merged_into"
)
_BY_ID = f"SELECT {COLUMNS} FROM terms WHERE tenant = ? AND term_id = ?"
_BY_NAME = f"SELECT {COLUMNS} FROM terms WHERE tenant = ? AND name_key = ?"
_OF_STATUS = f"SELECT {COLUMNS} FROM terms WHERE tenant = ? AND status = ? ORDER BY term_key"
_INSERT = (
    "INSERT INTO terms (term_id, tenant, name, name_key, aliases, definition, status, memory_ids, proposals,"
    " proposed_by, created_at) VALUES (?, ?, ?, ?, ?, ?, 'proposed', ?, 1, ?, ?)"
)
_NEXT_EPOCH = "INSERT INTO term_epochs VALUES (?, 1) ON CONFLICT (tenant) DO UPDATE SET epoch = term_epochs.epoch + 1"
_STATUS = {
    TermDecision.APPROVE: TermStatus.APPROVED,
    TermDecision.REJECT: TermStatus.REJECTED,
    TermDecision.MERGE: TermStatus.MERGED,
}


class SqliteTerms:
    """Implements `astrocyte.stores.terms.TermStore`; see there for what each method does and raises."""

    def __init__(self, writer: Writer, connections: Connections) -> None:
        self._writer = writer
        self._connections = connections

    def epoch(self, tenant: str) -> int:
        """The number of the last change."""
        rows = self._connections.query("SELECT epoch FROM term_epochs WHERE tenant = ?", (tenant,))
        return rows[0][0] if rows else 0

    def approved(self, tenant: str) -> list[Term]:
        """All approved terms."""
        with self._connections.snapshot() as connection:
            return _approved(connection, tenant)

    def get(self, tenant: str, term_id: str) -> Term | None:
        """A term."""
        rows = self._connections.query(_BY_ID, (tenant, term_id))
        return _decode(rows[0]) if rows else None

    def listed(
        self, tenant: str, *, statuses: Collection[TermStatus], after: int, limit: int
    ) -> list[tuple[int, Term]]:
        """Terms with their keys."""
        sql = (
            f"SELECT {COLUMNS} FROM terms WHERE tenant = ? AND term_key > ?"
            " AND status IN (SELECT value FROM json_each(?)) ORDER BY term_key LIMIT ?"
        )
        bindings = (tenant, after, json.dumps(list(map(str, statuses))), limit)
        return [(row[0], _decode(row)) for row in self._connections.query(sql, bindings)]

    def count_proposed(self) -> int:
        """Terms that wait for a review."""
        ((count,),) = self._connections.query("SELECT COUNT(*) FROM terms WHERE status = 'proposed'")
        return int(count)

    async def propose(self, tenant: str, new: NewTerm, *, by: str, request: RequestKey | None = None) -> Term:
        """Insert or count a proposal."""
        return await self._writer.submit(lambda transaction: _propose(transaction, tenant, new, by, request))

    async def review(  # noqa: PLR0913 - as the protocol has it
        self,
        tenant: str,
        term_id: str,
        decision: TermDecision,
        merge_into: str | None,
        *,
        by: str,
        check: Callable[[Sequence[Term]], None],
        request: RequestKey | None = None,
    ) -> Term:
        """Decide on a proposal."""

        def run(transaction: Transaction) -> Term:
            connection = transaction.connection
            if idempotency.stored(connection, tenant, request) is not None:
                return _get(connection, tenant, term_id)
            term = _get(connection, tenant, term_id)
            if term.status is not TermStatus.PROPOSED:
                raise FailedPrecondition(f"term {term_id!r} is {term.status}; only a proposed term can be reviewed")
            if merge_into is not None and _get(connection, tenant, merge_into).status is not TermStatus.APPROVED:
                raise FailedPrecondition(f"term {merge_into!r} is not approved; merge into an approved term")
            if decision is not TermDecision.REJECT:
                check(_approved(connection, tenant))
                connection.execute(_NEXT_EPOCH, (tenant,))
            connection.execute(
                "UPDATE terms SET status = ?, reviewed_by = ?, reviewed_at = ?, merged_into = ?"
                " WHERE tenant = ? AND term_id = ?",
                (str(_STATUS[decision]), by, transaction.clock(), merge_into, tenant, term_id),
            )
            _store(transaction, tenant, request, term_id)
            return _get(connection, tenant, term_id)

        return await self._writer.submit(run)


def _propose(transaction: Transaction, tenant: str, new: NewTerm, by: str, request: RequestKey | None) -> Term:
    connection = transaction.connection
    earlier = idempotency.stored(connection, tenant, request)
    if earlier is not None:
        return _get(connection, tenant, json.loads(earlier))
    rows = fetch(connection, _BY_NAME, (tenant, new.name_key))
    memory_ids = () if new.memory_id is None else (new.memory_id,)
    if rows:
        term = _decode(rows[0])
        known = tuple(dict.fromkeys((*term.memory_ids, *memory_ids)))[:MOST_MEMORY_IDS]
        connection.execute(
            "UPDATE terms SET proposals = proposals + 1, memory_ids = ? WHERE term_key = ?",
            (json.dumps(known), rows[0][0]),
        )
        term_id = term.term_id
    else:
        term_id = f"term_{uuid.uuid4().hex}"
        texts = (new.name, new.name_key, json.dumps(new.aliases, ensure_ascii=False), new.definition)
        row = (term_id, tenant, *texts, json.dumps(memory_ids), by, transaction.clock())
        connection.execute(_INSERT, row)
    _store(transaction, tenant, request, term_id)
    return _get(connection, tenant, term_id)


def _store(transaction: Transaction, tenant: str, request: RequestKey | None, term_id: str) -> None:
    if request is not None:
        response = json.dumps(term_id).encode()
        now = transaction.clock()
        idempotency.store(transaction.connection, tenant, request, response, now, bank_key=None, outlives_bank=True)


def _get(connection: apsw.Connection, tenant: str, term_id: str) -> Term:
    rows = fetch(connection, _BY_ID, (tenant, term_id))
    if not rows:
        raise NotFound(f"there is no term {term_id!r}; ListTerms has the ids", metadata={"term_id": term_id})
    return _decode(rows[0])


def _approved(connection: apsw.Connection, tenant: str) -> list[Term]:
    terms = {row[1]: _decode(row) for row in fetch(connection, _OF_STATUS, (tenant, "approved"))}
    for row in fetch(connection, _OF_STATUS, (tenant, "merged")):
        merged = _decode(row)
        into = terms.get(merged.merged_into or "")
        if into is not None:
            terms[into.term_id] = replace(into, aliases=(*into.aliases, merged.name, *merged.aliases))
    return list(terms.values())


def _decode(row: Row) -> Term:
    """A term from `COLUMNS`."""
    _, term_id, name, aliases, definition, status, memory_ids, proposals, by, created_at, reviewer, reviewed, into = row
    return Term(
        term_id,
        name,
        tuple(json.loads(aliases)),
        definition,
        TermStatus(status),
        tuple(json.loads(memory_ids)),
        proposals,
        by,
        to_datetime(created_at),
        reviewer,
        None if reviewed is None else to_datetime(reviewed),
        into,
    )
