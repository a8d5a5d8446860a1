"""Banks: where memories live."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from astrocyte.model.bank_health import BankHealth
from astrocyte.model.identity import DEFAULT_PRINCIPAL, Permission


@dataclass(frozen=True, slots=True)
class Bank:
    """A bank as the store knows it.

    ``key`` is the store's own number of this incarnation of the bank: deleted and made again, a bank has another.
    ``position`` counts the changes committed so far. ``embedding_model`` names the space that every vector of the bank
    lives in. ``created_by`` is the principal that made it. ``template`` and ``profile`` are what the configuration
    gives a bank of this name; the store does not know them.
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
    created_by: str = DEFAULT_PRINCIPAL
    template: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class TemplateGrant:
    """Permissions in every bank of a template; the principal may be a pattern, and hold placeholders."""

    principal: str
    permissions: frozenset[Permission]


@dataclass(frozen=True, slots=True)
class BankTemplate:
    """The configuration of all banks whose names have the form of ``name_pattern``."""

    name: str
    name_pattern: str
    profile: str
    auto_create: bool
    access: tuple[TemplateGrant, ...]


@dataclass(frozen=True, slots=True)
class BankIndexStats:
    """Counts of one bank's index: rows (wholes and chunks), terms, conversations, graphs, and bytes by kind.

    ``sampled_recall`` is the share of the ten nearest rows that ``sampled_walks`` of the graphs found, None before any
    was compared with a scan; ``widened`` says how often they were widened for it (beyond 3: the rows are scanned).
    ``tier`` is memory or disk; ``disk_rows`` rows are in files so far. ``mapped_bytes`` are in files that the system
    can drop from memory, ``resident_bytes`` in memory.
    """

    rows: int
    dead_rows: int
    terms: int
    sessions: int
    vector_bytes: int
    keyword_bytes: int
    column_bytes: int
    scratch_bytes: int
    segments: int = 0
    graph_rows: int = 0
    graph_bytes: int = 0
    sampled_walks: int = 0
    sampled_recall: float | None = None
    widened: int = 0
    tier: str = "memory"
    disk_rows: int = 0
    mapped_bytes: int = 0
    resident_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BankStats:
    """Counts of one bank. Without a loaded index ``index_bytes`` is 0, ``indexed_position`` -1, ``index`` None.

    ``waiting_copies`` counts the memories of which an engine beside the bank has not yet what it should. ``health`` is
    None where the gate was passed by.
    """

    bank_id: str
    memory_count: int
    chunk_count: int
    forgotten_count: int
    token_count: int
    position: int
    indexed_position: int
    index_bytes: int
    index: BankIndexStats | None = None
    waiting_copies: int = 0
    health: BankHealth | None = None
    archived_count: int = 0


@dataclass(frozen=True, slots=True)
class IndexMemory:
    """The memory of all indexes together, and how often one was loaded or evicted."""

    loaded_banks: int
    bytes: int
    budget_bytes: int
    loads: int
    evictions: int


@dataclass(frozen=True, slots=True)
class BankPage:
    """A page of banks; an empty token ends the list."""

    banks: tuple[Bank, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Versions and settings of the running server, for people and for benchmarks."""

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
    index_memory: IndexMemory
    embedding_models: tuple[str, ...] = ()
