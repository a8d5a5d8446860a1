"""Explain: which memories of which recall, and what became of them."""

from __future__ import annotations

from typing import Any

from astrocyte.errors import ValidationError
from astrocyte.model import ArmStanding, Counterfactual, ExplainQuery, ExplainResult, ExplainStage, Explanation
from astrocyte.services.convert.recall import decode_query, encode_query
from astrocyte.services.convert.values import Choices
from astrocyte.v1 import memory_pb2

STAGES = Choices("stage", ExplainStage, memory_pb2.ExplainStage, "EXPLAIN_STAGE_")


def decode_explain_request(message: memory_pb2.ExplainRequest) -> ExplainQuery:
    """Which memories of which recall.

    Raises:
        ValidationError: There is no recall, or a field of it cannot be read.
    """
    if not message.HasField("recall"):
        raise ValidationError("is required: the recall as it was sent", field="recall")
    return ExplainQuery(decode_query(message.recall), tuple(message.memory_ids), message.position)


def encode_explain_request(asked: ExplainQuery) -> memory_pb2.ExplainRequest:
    """Which memories of which recall, as a request."""
    return memory_pb2.ExplainRequest(
        recall=encode_query(asked.query), memory_ids=asked.memory_ids, position=asked.position
    )


def encode_explain_result(result: ExplainResult) -> memory_pb2.ExplainResponse:
    """What became of the memories, as an answer."""
    return memory_pb2.ExplainResponse(
        explanations=[_encode(one) for one in result.explanations],
        position=result.position,
        moved=result.moved,
        returned=result.returned,
        candidates=result.candidates,
        warnings=result.warnings,
    )


def _encode(one: Explanation) -> memory_pb2.Explanation:
    message = memory_pb2.Explanation(
        memory_id=one.memory_id,
        stage=STAGES.encode(one.stage),
        detail=one.detail,
        rank=one.rank,
        score=one.score,
        fused_rank=one.fused_rank,
        fused_score=one.fused_score,
        arms=[memory_pb2.ArmStanding(**arm._asdict()) for arm in one.arms],
        conditions=one.conditions,
        repeats=one.repeats or "",
        similarity=one.similarity,
        token_count=one.token_count,
        tokens_left=one.tokens_left,
        redacted=one.redacted,
        bank_id=one.bank_id,
    )
    change = one.counterfactual
    if change is not None:
        message.counterfactual.recall.CopyFrom(encode_query(change.query))
        message.counterfactual.fields.extend(change.fields)
        message.counterfactual.summary = change.summary
    return message


def decode_explain_result(message: memory_pb2.ExplainResponse) -> ExplainResult:
    """What became of the memories."""
    return ExplainResult(
        tuple(_decode(one) for one in message.explanations),
        message.position,
        moved=message.moved,
        returned=message.returned,
        candidates=message.candidates,
        warnings=tuple(message.warnings),
    )


def _decode(message: memory_pb2.Explanation) -> Explanation:
    change = message.counterfactual
    return Explanation(
        memory_id=message.memory_id,
        stage=STAGES.decode(message.stage),
        detail=message.detail,
        rank=message.rank,
        score=_optional(message, "score"),
        fused_rank=message.fused_rank,
        fused_score=_optional(message, "fused_score"),
        arms=tuple(
            ArmStanding(arm.arm, arm.rank, _optional(arm, "score"), arm.proposed, _optional(arm, "cut_off"))
            for arm in message.arms
        ),
        conditions=tuple(message.conditions),
        repeats=message.repeats or None,
        similarity=_optional(message, "similarity"),
        token_count=message.token_count,
        tokens_left=_optional(message, "tokens_left"),
        redacted=message.redacted,
        bank_id=message.bank_id,
        counterfactual=Counterfactual(decode_query(change.recall), tuple(change.fields), change.summary)
        if message.HasField("counterfactual")
        else None,
    )


def _optional(message: Any, field: str) -> Any:  # noqa: ANN401 - a field of a generated message
    return getattr(message, field) if message.HasField(field) else None
