"""Results of the tools on the server, the lifecycle and holds."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from astrocyte.mcp.results.common import ValueResult
from astrocyte.model import BankStats, HealthStatus, OperationState


class ServerHealth(ValueResult):
    """Result of memory_health: an answer says that the server answers."""

    version: str
    store: str = Field(description="Kind of the store.")
    embedding_model: str = Field(description="Model of new banks.")
    started_at: datetime


class HealthIssueItem(ValueResult):
    """A rate of a bank that is out of range."""

    severity: HealthStatus
    code: str
    message: str
    recommendation: str


class HealthMetricsItem(ValueResult):
    """Counts and rates of a bank. A rate is null if nothing was counted for it."""

    retain_count: int
    recall_count: int
    reflect_count: int
    recall_hit_rate: float | None
    avg_recall_score: float | None
    dedup_rate: float | None
    reflect_success_rate: float | None
    avg_content_length: float | None
    recalls_per_retain: float | None


class BankHealthItem(ValueResult):
    """The assessment of a bank from its calls of the last 14 days, since the server started."""

    score: float = Field(description="From 0 to 1; 0.5 for a bank without calls.")
    status: HealthStatus
    issues: list[HealthIssueItem]
    metrics: HealthMetricsItem


class BankHealthResult(ValueResult):
    """Result of memory_bank_health."""

    bank_id: str
    memory_count: int
    archived_count: int
    forgotten_count: int
    health: BankHealthItem | None

    @classmethod
    def of(cls, stats: BankStats) -> BankHealthResult:
        """Convert the answer of the API."""
        return cls.model_validate(stats)


class LifecycleCounts(ValueResult):
    """Counts of a run of the lifecycle; after a dry run, what it would do."""

    dry_run: bool
    seen: int
    total: int
    unused: int = Field(description="Archived because no recall returned them.")
    expired: int = Field(description="Archived by their age.")
    merged: int = Field(description="Archived because another memory says the same.")
    deleted: int = Field(description="Forgotten by their age.")
    held: int = Field(description="Spared by a legal hold.")


class OperationFailure(ValueResult):
    """Why an operation failed."""

    reason: str
    message: str


class OperationItem(ValueResult):
    """Result of memory_lifecycle and memory_operation."""

    operation_id: str
    bank_id: str
    state: OperationState
    done: bool
    lifecycle: LifecycleCounts | None = Field(description="Null for an operation of another kind.")
    error: OperationFailure | None


class HoldItem(ValueResult):
    """Result of the tools on holds."""

    hold_id: str
    bank_id: str
    memory_ids: list[str]
    tags: list[str]
    reason: str
    placed_by: str
    placed_at: datetime
    released_at: datetime | None = Field(description="Null while it holds.")
