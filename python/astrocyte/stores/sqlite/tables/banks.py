"""Creation and changes of banks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import apsw

from astrocyte.errors import AlreadyExists, BankNotFound, Conflict
from astrocyte.model import Bank
from astrocyte.stores.records import RequestKey
from astrocyte.stores.sqlite.engine.transaction import Transaction
from astrocyte.stores.sqlite.rows import BANK_COLUMNS, bank_etag, decode_bank, fetch
from astrocyte.stores.sqlite.tables import idempotency


@dataclass(frozen=True, slots=True)
class NewBank:
    """The columns of a new bank."""

    tenant: str
    bank_id: str
    display_name: str
    description: str
    embedding_model: str
    dimensions: int
    created_by: str


@dataclass(frozen=True, slots=True)
class BankChange:
    """The changed fields of a bank; None leaves a field unchanged."""

    display_name: str | None
    description: str | None
    expected_etag: str | None


def create(
    transaction: Transaction,
    new: NewBank,
    request: RequestKey | None,
    seal: Callable[[int], str] | None = None,
) -> Bank:
    """Create a bank; see `MemoryStore.create_bank`. ``seal`` takes its key, and returns the id of its cipher's key."""
    connection = transaction.connection
    earlier = idempotency.stored(connection, new.tenant, request)
    if earlier is not None:
        # An equal request says the names, which the response has lost if the bank was deleted since.
        made = decode_bank(idempotency.decode_row(earlier))
        return replace(
            made,
            bank_id=new.bank_id,
            display_name=new.display_name,
            description=new.description,
            created_by=made.created_by or new.created_by,
        )
    now = transaction.clock()
    try:
        row = fetch(
            connection,
            "INSERT INTO banks (tenant, bank_id, display_name, description, embedding_model, dimensions, created_at,"
            f" updated_at, latest_time, created_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {BANK_COLUMNS}",
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
                new.created_by,
            ),
        )[0]
    except apsw.ConstraintError as error:
        raise AlreadyExists(f"bank {new.bank_id!r} already exists", metadata={"bank_id": new.bank_id}) from error
    made = decode_bank(row)
    if seal is not None:
        connection.execute("INSERT INTO sealed_banks VALUES (?, ?)", (made.key, seal(made.key)))
    if request is not None:
        idempotency.store(
            connection, new.tenant, request, idempotency.encode_row(row), now, bank_key=made.key, outlives_bank=True
        )
    return made


def update(transaction: Transaction, bank: Bank, change: BankChange, request: RequestKey | None) -> Bank:
    """Change what is not None; see `MemoryStore.update_bank`."""
    connection = transaction.connection
    rows = fetch(
        connection,
        "SELECT revision, latest_time FROM banks WHERE bank_key = ? AND tenant = ? AND bank_id = ?",
        (bank.key, bank.tenant, bank.bank_id),
    )
    if not rows:
        raise BankNotFound(bank.bank_id)
    earlier = idempotency.stored(connection, bank.tenant, request)
    if earlier is not None:
        answered = decode_bank(idempotency.decode_row(earlier))
        if answered.key != bank.key:
            # It was deleted, and another was made of that id.
            raise BankNotFound(bank.bank_id)
        return answered
    revision, latest_time = rows[0]
    check_etag(bank, revision, change.expected_etag)
    now = max(transaction.clock(), latest_time)
    changed = fetch(
        connection,
        "UPDATE banks SET display_name = coalesce(?, display_name), description = coalesce(?, description),"
        f" updated_at = ?, latest_time = ?, revision = revision + 1 WHERE bank_key = ? RETURNING {BANK_COLUMNS}",
        (change.display_name, change.description, now, now, bank.key),
    )
    if request is not None:
        response = idempotency.encode_row(changed[0])
        idempotency.store(connection, bank.tenant, request, response, now, bank_key=bank.key, outlives_bank=True)
    return decode_bank(changed[0])


def check_etag(bank: Bank, revision: int, expected: str | None) -> None:
    """Refuse a change whose expected etag is not current.

    Raises:
        Conflict: Another etag than the expected is there.
    """
    etag = bank_etag(bank.key, revision)
    if expected not in (None, etag):
        raise Conflict(
            f"bank {bank.bank_id!r} has etag {etag!r}, not {expected!r}; read it again and retry",
            metadata={"bank_id": bank.bank_id, "etag": etag},
        )
