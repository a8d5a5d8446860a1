"""Long-running operations."""

from __future__ import annotations

from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from astrocyte.errors import ValidationError
from astrocyte.model import (
    Comparison,
    Operation,
    OperationError,
    OperationState,
    Reindex,
    ReindexOutcome,
    ReindexPhase,
)
from astrocyte.services.convert.values import Choices, decode_instant, encode_instant
from astrocyte.v1 import admin_pb2

STATES = Choices("state", OperationState, admin_pb2.OperationState, "OPERATION_STATE_")
PHASES = Choices("phase", ReindexPhase, admin_pb2.ReindexPhase, "REINDEX_PHASE_")
NANOS_PER_SECOND = 1_000_000_000


def decode_timeout(request: admin_pb2.WaitOperationRequest) -> float | None:
    """How long a wait may last, in seconds; None where the caller does not say."""
    if not request.HasField("timeout"):
        return None
    span = request.timeout
    if not abs(span.nanos) < NANOS_PER_SECOND:
        raise ValidationError("has nanos beyond a second", field="timeout")
    return float(span.seconds) + span.nanos / NANOS_PER_SECOND


def encode_timeout(seconds: float | None) -> Duration | None:
    """How long a wait may last; None leaves it to the server."""
    if seconds is None:
        return None
    timeout = Duration()
    timeout.FromTimedelta(timedelta(seconds=seconds))
    return timeout


def decode_operation(message: admin_pb2.Operation) -> Operation:
    """An operation."""
    failed, moved = message.HasField("error"), message.HasField("reindex_result")
    result = message.reindex_result
    return Operation(
        operation_id=message.operation_id,
        bank_id=message.bank_id,
        state=STATES.decode(message.state),
        created_by=message.created_by,
        created_at=decode_instant(message.created_at),
        updated_at=decode_instant(message.updated_at),
        ended_at=decode_instant(message.ended_at) if message.HasField("ended_at") else None,
        reindex=_decode_reindex(message.reindex),
        error=OperationError(message.error.reason, message.error.message) if failed else None,
        outcome=ReindexOutcome(
            result.position, decode_instant(result.kept_until) if result.HasField("kept_until") else None
        )
        if moved
        else None,
    )


def encode_operation(operation: Operation) -> admin_pb2.Operation:
    """An operation."""
    message = admin_pb2.Operation(
        operation_id=operation.operation_id,
        bank_id=operation.bank_id,
        state=STATES.encode(operation.state),
        done=operation.done,
        created_by=operation.created_by,
        created_at=encode_instant(operation.created_at),
        updated_at=encode_instant(operation.updated_at),
        ended_at=encode_instant(operation.ended_at),
        reindex=_encode_reindex(operation.reindex),
    )
    if operation.error is not None:
        message.error.reason, message.error.message = operation.error.reason, operation.error.message
    if operation.outcome is not None:
        outcome = operation.outcome
        message.reindex_result.CopyFrom(
            admin_pb2.ReindexResult(position=outcome.position, kept_until=encode_instant(outcome.kept_until))
        )
    return message


def _decode_reindex(message: admin_pb2.ReindexMetadata) -> Reindex:
    found = message.comparison
    return Reindex(
        from_model=message.from_model,
        from_dimensions=message.from_dimensions,
        to_model=message.to_model,
        to_dimensions=message.to_dimensions,
        rollback=message.rollback,
        min_overlap=message.min_overlap,
        sample=message.sample_size,
        phase=PHASES.decode(message.phase),
        embedded=message.embedded,
        total=message.total,
        comparison=Comparison(
            queries=found.queries,
            overlap=found.overlap,
            semantic_overlap=found.semantic_overlap,
            same_first=found.same_first,
            score_before=found.score_before,
            score_after=found.score_after,
        )
        if message.HasField("comparison")
        else None,
    )


def _encode_reindex(reindex: Reindex) -> admin_pb2.ReindexMetadata:
    found = reindex.comparison
    return admin_pb2.ReindexMetadata(
        from_model=reindex.from_model,
        from_dimensions=reindex.from_dimensions,
        to_model=reindex.to_model,
        to_dimensions=reindex.to_dimensions,
        rollback=reindex.rollback,
        min_overlap=reindex.min_overlap,
        sample_size=reindex.sample,
        phase=PHASES.encode(reindex.phase),
        embedded=reindex.embedded,
        total=reindex.total,
        comparison=None
        if found is None
        else admin_pb2.ReindexComparison(
            queries=found.queries,
            overlap=found.overlap,
            semantic_overlap=found.semantic_overlap,
            same_first=found.same_first,
            score_before=found.score_before,
            score_after=found.score_after,
        ),
    )
