"""Between wire and domain: engines beside banks, and what became of each."""

from __future__ import annotations

from astrocyte.model import EngineForget, EngineInfo, EngineOutbox, EngineOutcome, EngineTrace, OutboxState
from astrocyte.services.convert.values import Choices, encode_instant, optional_instant
from astrocyte.v1 import admin_pb2, types_pb2

OUTCOMES = Choices("outcome", EngineOutcome, types_pb2.EngineOutcome, "ENGINE_OUTCOME_")
STATES = Choices("state", OutboxState, admin_pb2.OutboxState, "OUTBOX_STATE_")


def decode_engine_trace(message: types_pb2.EngineTrace) -> EngineTrace:
    """What became of a side."""
    return EngineTrace(
        engine=message.engine,
        outcome=OUTCOMES.decode(message.outcome),
        bank_id=message.bank_id,
        weight=message.weight,
        found=message.found,
        kept=message.kept,
        dropped=message.dropped,
        latency_ms=message.latency_ms,
        reason=message.reason,
        signals=tuple(message.signals),
    )


def set_engine_trace(message: types_pb2.EngineTrace, trace: EngineTrace) -> None:
    """Fill the trace of a side."""
    message.engine = trace.engine
    message.outcome = OUTCOMES.encode(trace.outcome)
    message.bank_id = trace.bank_id
    message.weight = trace.weight
    message.found = trace.found
    message.kept = trace.kept
    message.dropped = trace.dropped
    message.latency_ms = trace.latency_ms
    message.reason = trace.reason
    message.signals.extend(trace.signals)


def decode_engine_forget(message: types_pb2.EngineForget) -> EngineForget:
    """What an engine forgot."""
    return EngineForget(message.engine, OUTCOMES.decode(message.outcome), message.deleted_count, message.reason)


def encode_engine_forget(done: EngineForget) -> types_pb2.EngineForget:
    """What an engine forgot."""
    return types_pb2.EngineForget(
        engine=done.engine,
        outcome=OUTCOMES.encode(done.outcome),
        deleted_count=done.deleted_count,
        reason=done.reason,
    )


def decode_engine(message: admin_pb2.EngineInfo) -> EngineInfo:
    """An engine."""
    return EngineInfo(
        name=message.name,
        provider=message.provider,
        banks=tuple(message.banks),
        retain_target=message.retain_target,
        read_only=message.read_only,
        healthy=message.healthy,
        circuit=message.circuit,
        capabilities=tuple(message.capabilities),
        detail=message.detail,
        outbox=_decode_outbox(message.outbox) if message.HasField("outbox") else None,
    )


def encode_engine(engine: EngineInfo) -> admin_pb2.EngineInfo:
    """An engine."""
    return admin_pb2.EngineInfo(
        name=engine.name,
        provider=engine.provider,
        banks=engine.banks,
        retain_target=engine.retain_target,
        read_only=engine.read_only,
        healthy=engine.healthy,
        circuit=engine.circuit,
        capabilities=engine.capabilities,
        detail=engine.detail,
        outbox=None if engine.outbox is None else _encode_outbox(engine.outbox),
    )


def _decode_outbox(message: admin_pb2.EngineOutbox) -> EngineOutbox:
    return EngineOutbox(
        STATES.decode(message.state),
        message.waiting,
        message.refused,
        message.limit,
        optional_instant(message, "since"),
    )


def _encode_outbox(outbox: EngineOutbox) -> admin_pb2.EngineOutbox:
    return admin_pb2.EngineOutbox(
        state=STATES.encode(outbox.state),
        waiting=outbox.waiting,
        refused=outbox.refused,
        limit=outbox.limit,
        since=encode_instant(outbox.since),
    )
