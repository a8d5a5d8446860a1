"""Making and changing banks."""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from astrocyte.errors import AlreadyExists, BankNotFound, Conflict
from astrocyte.model import Bank
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, bank_etag, decode_bank, fetch
from astrocyte.stores.sqlite.transaction import Transaction


@dataclass(frozen=True, slots=True)
class NewBank:
    """What a bank is made of."""

    tenant: str
    bank_id: str
    display_name: str
    description: str
    embedding_model: str
    dimensions: int


def create(transaction: Transaction, new: NewBank) -> Bank:
    """Create a bank; see `MemoryStore.create_bank`."""
    now = transaction.clock()
    try:
        row = fetch(
            transaction.connection,
            "INSERT INTO banks (tenant, bank_id, display_name, description, embedding_model, dimensions, created_at,"
            f" updated_at, latest_time) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {BANK_COLUMNS}",
            (
                new.tenant,
                new.bank_id,
                new.display_name,
                new.description,
                new.embedding_model,
                new.dimensions,
                now,
                now,
                now,
            ),
        )[0]
    except apsw.ConstraintError as error:
        raise AlreadyExists(f"bank {new.bank_id!r} exists", metadata={"bank_id": new.bank_id}) from error
    return decode_bank(row)


def update(
    transaction: Transaction,
    bank: Bank,
    display_name: str | None,
    description: str | None,
    expected_etag: str | None,
) -> Bank:
    """Change what is not None; see `MemoryStore.update_bank`."""
    connection = transaction.connection
    rows = fetch(
        connection,
        "SELECT revision, latest_time FROM banks WHERE bank_key = ? AND tenant = ? AND bank_id = ?",
        (bank.key, bank.tenant, bank.bank_id),
    )
    if not rows:
        raise BankNotFound(bank.bank_id)
    revision, latest_time = rows[0]
    etag = bank_etag(bank.key, revision)
    if expected_etag not in (None, etag):
        raise Conflict(
            f"bank {bank.bank_id!r} has etag {etag!r}, not {expected_etag!r}; read it again and retry",
            metadata={"bank_id": bank.bank_id, "etag": etag},
        )
    now = max(transaction.clock(), latest_time)
    changed = fetch(
        connection,
        "UPDATE banks SET display_name = coalesce(?, display_name), description = coalesce(?, description),"
        f" updated_at = ?, latest_time = ?, revision = revision + 1 WHERE bank_key = ? RETURNING {BANK_COLUMNS}",
        (display_name, description, now, now, bank.key),
    )
    return decode_bank(changed[0])
