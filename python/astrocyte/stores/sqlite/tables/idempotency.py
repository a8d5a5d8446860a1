"""Answers to requests that carried an id, so that a retry gets the first one's."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from astrocyte.errors import RequestIdReused
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, Row, fetch

# Where a row of `BANK_COLUMNS` has texts that people chose, or names one of them.
NAMES = ("bank_id", "display_name", "description", "created_by")
NAME_PLACES = [BANK_COLUMNS.split(", ").index(name) for name in NAMES]
# Answers that one step makes unverifiable, or removes with their bank.
REQUESTS_AT_ONCE = 1_024
# An answer about what was in a bank is none once the bank is hidden, even before it is deleted.
FIND = (
    "SELECT r.operation, r.fingerprint, r.response FROM requests r WHERE r.tenant = ? AND r.request_id = ?"
    " AND (r.outlives_bank = 1 OR EXISTS (SELECT 1 FROM banks b WHERE b.bank_key = r.bank_key AND b.tenant = r.tenant))"
)


def matching(rows: Sequence[tuple[str, bytes | None, bytes]], request: RequestKey) -> bytes | None:
    """The response among the rows of `FIND`, or None. An erasure since leaves only the operation to compare.

    Raises:
        RequestIdReused: The id was used by another request.
    """
    if not rows:
        return None
    operation, fingerprint, response = rows[0]
    if operation != request.operation or fingerprint not in (None, request.fingerprint):
        raise RequestIdReused(
            f"request_id {request.request_id!r} was used by another {operation} request; use a new one",
            metadata={"request_id": request.request_id, "operation": operation},
        )
    return response


CLEAR_NAMES = (
    "UPDATE requests SET response = CAST(json_set(CAST(response AS TEXT), "
    + ", ".join(f"'$[{place}]', ''" for place in NAME_PLACES)
    + ") AS BLOB) WHERE bank_key = ? AND outlives_bank = 1"
)


def stored(connection: apsw.Connection, tenant: str, request: RequestKey | None) -> bytes | None:
    """The response of an earlier, equal request, as the transaction sees it."""
    if request is None:
        return None
    return matching(fetch(connection, FIND, (tenant, request.request_id)), request)


def store(  # noqa: PLR0913 - a row of the table
    connection: apsw.Connection,
    tenant: str,
    request: RequestKey,
    response: bytes,
    now: int,
    *,
    bank_key: int | None,
    outlives_bank: bool = False,
) -> None:
    """Store a response in the transaction of its writes.

    Args:
        connection: In the transaction that carries the request out, which has looked for an earlier answer.
        tenant: Whose request it is.
        request: What it is recognised by.
        response: It holds no content.
        now: When.
        bank_key: The bank that it was about; None where nothing in the answer may go with a bank.
        outlives_bank: Whether the answer stays when the bank goes. With a ``bank_key`` it is then a bank's row, written
            by `encode_row`, and loses its names.
    """
    # What is replaced is the answer of a bank that is going, which `stored` did not find.
    connection.execute(
        "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (tenant, request.request_id, request.operation, request.fingerprint, response, now, bank_key, outlives_bank),
    )


def encode_row(row: Row) -> bytes:
    """A row of `BANK_COLUMNS` as a response."""
    return json.dumps(row).encode()


def decode_row(response: bytes) -> Row:
    """The inverse of `encode_row`, without names where the bank is gone."""
    return tuple(json.loads(response))


def clear_names(connection: apsw.Connection, bank_key: int) -> None:
    """Remove a bank's display name and description from stored responses."""
    connection.execute(CLEAR_NAMES, (bank_key,))


def blank(connection: apsw.Connection, bank_key: int, until: int) -> int:
    """Erase the request digests of a bank up to an instant, some at a time; returns their number.

    The fingerprint of a request that stored a text lets whoever has the files check a guess of it. A request may hold
    several texts, and texts that were left out as near duplicates, so all of the bank's are taken.
    """
    connection.execute(
        "UPDATE requests SET fingerprint = NULL WHERE (tenant, request_id) IN"
        " (SELECT tenant, request_id FROM requests WHERE bank_key = ? AND outlives_bank = 0"
        " AND (fingerprint IS NULL) = 0 AND created_at <= ? LIMIT ?)",
        (bank_key, until, REQUESTS_AT_ONCE),
    )
    return connection.changes()


def expire(connection: apsw.Connection, before: int, limit: int) -> int:
    """Remove the oldest responses from before an instant, at most ``limit``; returns their number."""
    connection.execute(
        "DELETE FROM requests WHERE (tenant, request_id) IN"
        " (SELECT tenant, request_id FROM requests WHERE created_at < ? ORDER BY created_at LIMIT ?)",
        (before, limit),
    )
    return connection.changes()
