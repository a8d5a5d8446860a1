"""Banks: where memories live."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Bank:
    """A bank as the store knows it.

    ``key`` is the store's own number of this incarnation of the bank: deleted and made again, a bank has another.
    ``position`` counts the changes committed so far. ``embedding_model`` names the space that every vector of the bank
    lives in.
    """

    key: int
    tenant: str
    bank_id: str
    display_name: str
    description: str
    embedding_model: str
    dimensions: int
    created_at: datetime
    updated_at: datetime
    position: int
    etag: str


@dataclass(frozen=True, slots=True)
class BankStats:
    """Counts of one bank. ``index_bytes`` is 0 and ``indexed_position`` -1 while the index is not loaded."""

    bank_id: str
    memory_count: int
    chunk_count: int
    forgotten_count: int
    token_count: int
    position: int
    indexed_position: int
    index_bytes: int


@dataclass(frozen=True, slots=True)
class BankPage:
    """A page of banks; an empty token ends the list."""

    banks: tuple[Bank, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What runs, for people and for benchmarks."""

    version: str
    core_version: str
    core_profile: str
    simd: str
    sqlite_version: str
    schema_version: int
    embedding_model: str
    dimensions: int
    token_table: str
    store: str
    started_at: datetime
