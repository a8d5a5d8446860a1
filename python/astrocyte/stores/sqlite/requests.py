"""Answers to requests that carried an id, so that a retry gets the first one's."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from astrocyte.errors import RequestIdReused
from astrocyte.stores.protocols import RequestKey
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, Row, fetch

# Where a row of `BANK_COLUMNS` has texts that people chose.
NAME_PLACES = [BANK_COLUMNS.split(", ").index(name) for name in ("bank_id", "display_name", "description")]
FIND = "SELECT operation, fingerprint, response FROM requests WHERE tenant = ? AND request_id = ?"


def matching(rows: Sequence[tuple[str, bytes, bytes]], request: RequestKey) -> bytes | None:
    """The response among the rows of `FIND`, or None.

    Raises:
        RequestIdReused: The id was used by another request.
    """
    if not rows:
        return None
    operation, fingerprint, response = rows[0]
    if operation != request.operation or fingerprint != request.fingerprint:
        raise RequestIdReused(
            f"request_id {request.request_id!r} was used by another {operation} request; use a new one",
            metadata={"request_id": request.request_id, "operation": operation},
        )
    return response


def stored(connection: apsw.Connection, tenant: str, request: RequestKey | None) -> bytes | None:
    """The response of an earlier, equal request, as the transaction sees it."""
    if request is None:
        return None
    return matching(fetch(connection, FIND, (tenant, request.request_id)), request)


def store(
    connection: apsw.Connection,
    tenant: str,
    request: RequestKey,
    response: bytes,
    now: int,
    *,
    bank_key: int | None = None,
) -> None:
    """Keep a response beside what it answers for; ``bank_key`` where it is a bank's row, written by `encode_row`."""
    connection.execute(
        "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)",
        (tenant, request.request_id, request.operation, request.fingerprint, response, now, bank_key),
    )


def encode_row(row: Row) -> bytes:
    """A row of `BANK_COLUMNS` as a response."""
    return json.dumps(row).encode()


def decode_row(response: bytes) -> Row:
    """What `encode_row` wrote, without its names where the bank is gone."""
    return tuple(json.loads(response))


def clear_names(connection: apsw.Connection, bank_key: int) -> None:
    """Take what a bank was called, and what for, out of the responses that say it."""
    places = ", ".join(f"'$[{place}]', ''" for place in NAME_PLACES)
    connection.execute(
        f"UPDATE requests SET response = CAST(json_set(CAST(response AS TEXT), {places}) AS BLOB) WHERE bank_key = ?",
        (bank_key,),
    )


def expire(connection: apsw.Connection, before: int, limit: int) -> int:
    """Remove the oldest responses from before an instant, at most ``limit``; returns how many went."""
    connection.execute(
        "DELETE FROM requests WHERE (tenant, request_id) IN"
        " (SELECT tenant, request_id FROM requests WHERE created_at < ? ORDER BY created_at LIMIT ?)",
        (before, limit),
    )
    return connection.changes()
