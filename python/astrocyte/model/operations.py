"""Operations that outlive the call which started them: what they do, how far they are, and what came of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class OperationState(StrEnum):
    """The state of an operation. The last three are final."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ReindexPhase(StrEnum):
    """The phase of a reindex."""

    WAITING = "waiting"
    EMBEDDING = "embedding"
    INDEXING = "indexing"
    COMPARING = "comparing"
    MOVED = "moved"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Answers of two indexes of one bank to the same queries, which are the words of some of its memories.

    The overlaps are means of the share of the first ten memories that both answers hold, 1.0 for equal ones: of whole
    answers, and of those of the semantic arm alone. ``same_first`` is the share of queries with the same best memory.
    ``score_before`` and ``score_after`` are mean scores of the best memory.
    """

    queries: int
    overlap: float
    semantic_overlap: float
    same_first: float
    score_before: float
    score_after: float


@dataclass(frozen=True, slots=True)
class Reindex:
    """A move of a bank to another embedding model: what was asked for, and how far it is.

    ``embedded`` of ``total`` versions of memories have vectors of the new model. ``rollback`` says that the bank goes
    back to the model that it had before.
    """

    from_model: str
    from_dimensions: int
    to_model: str
    to_dimensions: int
    rollback: bool
    min_overlap: float
    sample: int
    phase: ReindexPhase = ReindexPhase.WAITING
    embedded: int = 0
    total: int = 0
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class ReindexOutcome:
    """The end of a move: from ``position`` on the bank answers by the new model.

    ``kept_until`` is when the vectors of the former model go; None where they are not kept.
    """

    position: int
    kept_until: datetime | None


@dataclass(frozen=True, slots=True)
class Consolidation:
    """A consolidation of a bank's memories into observations: ``seen`` of ``total`` changes of the bank.

    ``created``, ``updated``, ``superseded`` and ``deleted`` count observations. ``left_out`` counts those that found no
    room: the bank had as many as `observations.max_per_bank`.
    """

    seen: int = 0
    total: int = 0
    created: int = 0
    updated: int = 0
    superseded: int = 0
    deleted: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two near duplicates: the memory that is kept, the one that is merged into it, and their cosine."""

    kept_id: str
    merged_id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class LifecycleRun:
    """A run of the lifecycle over the memories of a bank: ``seen`` of ``total`` of them.

    ``unused``, ``expired`` and ``merged`` count archived memories, ``deleted`` forgotten ones, and ``held`` those that
    a legal hold spared; after a dry run, those that would be. ``memory_ids`` are the first hundred of those that their
    age concerns, and ``pairs`` the first hundred duplicates. A run that merges looks at each memory twice. ``entities``
    counts the entities that are deleted at its end, because neither a memory nor a link of a caller names them.
    """

    dry_run: bool = False
    seen: int = 0
    total: int = 0
    unused: int = 0
    expired: int = 0
    deleted: int = 0
    held: int = 0
    memory_ids: tuple[str, ...] = ()
    merged: int = 0
    pairs: tuple[DuplicatePair, ...] = ()
    entities: int = 0


@dataclass(frozen=True, slots=True)
class OperationError:
    """Why an operation failed: a reason of errors.proto, and a sentence without content."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Operation:
    """A long-running operation on a bank, which is one of ``reindex``, ``consolidation`` and ``lifecycle``."""

    operation_id: str
    bank_id: str
    state: OperationState
    created_by: str
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    reindex: Reindex | None
    error: OperationError | None = None
    outcome: ReindexOutcome | None = None
    consolidation: Consolidation | None = None
    lifecycle: LifecycleRun | None = None

    @property
    def done(self) -> bool:
        """True if nothing more will come of it."""
        return self.state not in {OperationState.PENDING, OperationState.RUNNING}


@dataclass(frozen=True, slots=True)
class OperationPage:
    """A page of operations; an empty token ends the list."""

    operations: tuple[Operation, ...]
    next_page_token: str
