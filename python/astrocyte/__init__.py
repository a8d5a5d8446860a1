"""Agent memory: retain, recall, history and forgetting, in process or over gRPC.

from astrocyte import Astrocyte, connect

brain = Astrocyte.from_config("astrocyte.yaml")   # in this process
brain = connect("localhost:50051")                # a server's
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from astrocyte.astrocyte import Astrocyte, make_embedding
from astrocyte.errors import (
    AccessDenied,
    AlreadyExists,
    AstrocyteError,
    AuthorizationError,
    BankNotFound,
    CapabilityNotSupported,
    ConfigError,
    Conflict,
    DeadlineExceeded,
    DimensionMismatch,
    DiskFull,
    FailedPrecondition,
    MemoryNotFound,
    MessageTooLarge,
    NotFound,
    PiiRejected,
    ProviderUnavailable,
    RateLimited,
    RequestIdReused,
    SchemaTooNew,
    StoreError,
    StoreLocked,
    Unavailable,
    ValidationError,
)
from astrocyte.model import (
    AccessCheck,
    ActorIdentity,
    ArmScore,
    AstrocyteContext,
    Bank,
    BankIndexStats,
    BankPage,
    BankStats,
    Change,
    ChangeKind,
    ContentType,
    DedupAction,
    DetailLevel,
    Embedding,
    ErasureReceipt,
    ForgetResult,
    FusionMethod,
    Grant,
    GrantPage,
    HistoryResult,
    IndexMemory,
    KeyInfo,
    Memory,
    MemoryHit,
    MemoryPage,
    MemoryState,
    Permission,
    RecallQuery,
    RecallResult,
    RecallTrace,
    RetainItem,
    RetainResult,
    RetentionAction,
    ServerInfo,
    TagMatch,
    TimeRange,
)

if TYPE_CHECKING:
    from astrocyte.client import connect

__all__ = [
    "AccessCheck",
    "AccessDenied",
    "ActorIdentity",
    "AlreadyExists",
    "ArmScore",
    "Astrocyte",
    "AstrocyteContext",
    "AstrocyteError",
    "AuthorizationError",
    "Bank",
    "BankIndexStats",
    "BankNotFound",
    "BankPage",
    "BankStats",
    "CapabilityNotSupported",
    "Change",
    "ChangeKind",
    "ConfigError",
    "Conflict",
    "ContentType",
    "DeadlineExceeded",
    "DedupAction",
    "DetailLevel",
    "DimensionMismatch",
    "DiskFull",
    "Embedding",
    "ErasureReceipt",
    "FailedPrecondition",
    "ForgetResult",
    "FusionMethod",
    "Grant",
    "GrantPage",
    "HistoryResult",
    "IndexMemory",
    "KeyInfo",
    "Memory",
    "MemoryHit",
    "MemoryNotFound",
    "MemoryPage",
    "MemoryState",
    "MessageTooLarge",
    "NotFound",
    "Permission",
    "PiiRejected",
    "ProviderUnavailable",
    "RateLimited",
    "RecallQuery",
    "RecallResult",
    "RecallTrace",
    "RequestIdReused",
    "RetainItem",
    "RetainResult",
    "RetentionAction",
    "SchemaTooNew",
    "ServerInfo",
    "StoreError",
    "StoreLocked",
    "TagMatch",
    "TimeRange",
    "Unavailable",
    "ValidationError",
    "connect",
    "make_embedding",
]


def __getattr__(name: str) -> object:
    """Import the client when it is first asked for: who works in process never loads gRPC."""
    if name == "connect":
        from astrocyte.client import connect  # noqa: PLC0415 - see above

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
