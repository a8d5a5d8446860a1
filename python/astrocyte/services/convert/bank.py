"""Banks and the server."""

from __future__ import annotations

from astrocyte.model import Bank, BankStats, ServerInfo
from astrocyte.services.convert.values import decode_instant, encode_instant
from astrocyte.v1 import admin_pb2


def decode_bank(message: admin_pb2.Bank) -> Bank:
    """A bank."""
    return Bank(
        key=message.key,
        tenant=message.tenant,
        bank_id=message.bank_id,
        display_name=message.display_name,
        description=message.description,
        embedding_model=message.embedding_model,
        dimensions=message.dimensions,
        created_at=decode_instant(message.created_at),
        updated_at=decode_instant(message.updated_at),
        position=message.position,
        etag=message.etag,
    )


def encode_bank(bank: Bank) -> admin_pb2.Bank:
    """A bank."""
    return admin_pb2.Bank(
        key=bank.key,
        tenant=bank.tenant,
        bank_id=bank.bank_id,
        display_name=bank.display_name,
        description=bank.description,
        embedding_model=bank.embedding_model,
        dimensions=bank.dimensions,
        created_at=encode_instant(bank.created_at),
        updated_at=encode_instant(bank.updated_at),
        position=bank.position,
        etag=bank.etag,
    )


def decode_bank_stats(message: admin_pb2.BankStats) -> BankStats:
    """Counts of a bank."""
    return BankStats(
        bank_id=message.bank_id,
        memory_count=message.memory_count,
        chunk_count=message.chunk_count,
        forgotten_count=message.forgotten_count,
        token_count=message.token_count,
        position=message.position,
        indexed_position=message.indexed_position,
        index_bytes=message.index_bytes,
    )


def encode_bank_stats(stats: BankStats) -> admin_pb2.BankStats:
    """Counts of a bank."""
    return admin_pb2.BankStats(
        bank_id=stats.bank_id,
        memory_count=stats.memory_count,
        chunk_count=stats.chunk_count,
        forgotten_count=stats.forgotten_count,
        token_count=stats.token_count,
        position=stats.position,
        indexed_position=stats.indexed_position,
        index_bytes=stats.index_bytes,
    )


def decode_server_info(message: admin_pb2.ServerInfo) -> ServerInfo:
    """What runs."""
    return ServerInfo(
        version=message.version,
        core_version=message.core_version,
        core_profile=message.core_profile,
        simd=message.simd,
        sqlite_version=message.sqlite_version,
        schema_version=message.schema_version,
        embedding_model=message.embedding_model,
        dimensions=message.dimensions,
        token_table=message.token_table,
        store=message.store,
        started_at=decode_instant(message.started_at),
    )


def encode_server_info(info: ServerInfo) -> admin_pb2.ServerInfo:
    """What runs."""
    return admin_pb2.ServerInfo(
        version=info.version,
        core_version=info.core_version,
        core_profile=info.core_profile,
        simd=info.simd,
        sqlite_version=info.sqlite_version,
        schema_version=info.schema_version,
        embedding_model=info.embedding_model,
        dimensions=info.dimensions,
        token_table=info.token_table,
        store=info.store,
        started_at=encode_instant(info.started_at),
    )
