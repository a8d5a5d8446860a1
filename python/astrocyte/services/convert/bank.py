"""Banks and the server."""

from __future__ import annotations

from astrocyte.model import Bank, BankIndexStats, BankStats, BankTemplate, IndexMemory, ServerInfo, TemplateGrant
from astrocyte.services.convert.access import decode_permissions, encode_permissions
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
        created_by=message.created_by,
        template=message.template,
        profile=message.profile,
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
        created_by=bank.created_by,
        template=bank.template,
        profile=bank.profile,
    )


def decode_bank_template(message: admin_pb2.BankTemplate) -> BankTemplate:
    """A template."""
    access = [TemplateGrant(one.principal, frozenset(decode_permissions(one.permissions))) for one in message.access]
    return BankTemplate(message.name, message.name_pattern, message.profile, message.auto_create, tuple(access))


def encode_bank_template(template: BankTemplate) -> admin_pb2.BankTemplate:
    """A template."""
    return admin_pb2.BankTemplate(
        name=template.name,
        name_pattern=template.name_pattern,
        profile=template.profile,
        auto_create=template.auto_create,
        access=[
            admin_pb2.TemplateGrant(principal=one.principal, permissions=encode_permissions(one.permissions))
            for one in template.access
        ],
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
        index=_decode_index(message.index) if message.HasField("index") else None,
        waiting_copies=message.waiting_copies,
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
        index=_encode_index(stats.index) if stats.index is not None else None,
        waiting_copies=stats.waiting_copies,
    )


def _decode_index(message: admin_pb2.BankIndexStats) -> BankIndexStats:
    return BankIndexStats(
        rows=message.rows,
        dead_rows=message.dead_rows,
        terms=message.terms,
        sessions=message.sessions,
        vector_bytes=message.vector_bytes,
        keyword_bytes=message.keyword_bytes,
        column_bytes=message.column_bytes,
        scratch_bytes=message.scratch_bytes,
        segments=message.segments,
        graph_rows=message.graph_rows,
        graph_bytes=message.graph_bytes,
        sampled_walks=message.sampled_walks,
        sampled_recall=message.sampled_recall if message.HasField("sampled_recall") else None,
        widened=message.widened,
    )


def _encode_index(stats: BankIndexStats) -> admin_pb2.BankIndexStats:
    return admin_pb2.BankIndexStats(
        rows=stats.rows,
        dead_rows=stats.dead_rows,
        terms=stats.terms,
        sessions=stats.sessions,
        vector_bytes=stats.vector_bytes,
        keyword_bytes=stats.keyword_bytes,
        column_bytes=stats.column_bytes,
        scratch_bytes=stats.scratch_bytes,
        segments=stats.segments,
        graph_rows=stats.graph_rows,
        graph_bytes=stats.graph_bytes,
        sampled_walks=stats.sampled_walks,
        sampled_recall=stats.sampled_recall,
        widened=stats.widened,
    )


def _decode_memory(message: admin_pb2.IndexMemory) -> IndexMemory:
    return IndexMemory(
        loaded_banks=message.loaded_banks,
        bytes=message.bytes,
        budget_bytes=message.budget_bytes,
        loads=message.loads,
        evictions=message.evictions,
    )


def _encode_memory(memory: IndexMemory) -> admin_pb2.IndexMemory:
    return admin_pb2.IndexMemory(
        loaded_banks=memory.loaded_banks,
        bytes=memory.bytes,
        budget_bytes=memory.budget_bytes,
        loads=memory.loads,
        evictions=memory.evictions,
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
        index_memory=_decode_memory(message.index_memory),
        embedding_models=tuple(message.embedding_models),
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
        index_memory=_encode_memory(info.index_memory),
        embedding_models=info.embedding_models,
    )
