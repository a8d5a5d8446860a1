"""Recall and history: the question and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any, TypeVar

from astrocyte.core import encode_answer, encode_answers, encode_trace
from astrocyte.errors import ValidationError
from astrocyte.model import (
    ArmScore,
    Boost,
    DetailLevel,
    HistoryResult,
    Intent,
    MemoryHit,
    RecallQuery,
    RecallResult,
    RecallTrace,
    TagMatch,
    TimeRange,
)
from astrocyte.pipelines.recall.hits import FoundHits
from astrocyte.services.convert.engines import decode_engine_trace, set_engine_trace
from astrocyte.services.convert.multi_bank import (
    FUSION_METHODS,
    decode_bank_trace,
    decode_strategy,
    encode_strategy,
    set_bank_trace,
)
from astrocyte.services.convert.values import (
    Choices,
    Reader,
    decode_embedding,
    decode_instant,
    decode_metadata,
    decode_range,
    encode_embedding,
    encode_instant,
    encode_metadata,
    encode_range,
    read,
    same,
    set_instant,
)
from astrocyte.v1 import memory_pb2, types_pb2

V = TypeVar("V", int, float)

TAG_MATCHES = Choices("tag_match", TagMatch, memory_pb2.TagMatch, "TAG_MATCH_")
DETAIL_LEVELS = Choices("detail_level", DetailLevel, memory_pb2.DetailLevel, "DETAIL_LEVEL_")

QUERY_READERS: dict[str, Reader] = {
    "bank_id": same,
    "query": same,
    "max_results": same,
    "max_tokens": same,
    "tags": tuple,
    "tag_match": TAG_MATCHES.decode,
    "fact_types": tuple,
    "memory_ids": tuple,
    "metadata": decode_metadata,
    "session_id": same,
    "time_range": decode_range,
    "retained_range": decode_range,
    "as_of": decode_instant,
    "valid_at": decode_instant,
    "query_reference_date": decode_instant,
    "include_sources": same,
    "include_trace": same,
    "layer_weights": dict,
    "weights": dict,
    "fusion_method": FUSION_METHODS.decode,
    "rank_constant": same,
    "dedup_threshold": same,
    "detail_level": DETAIL_LEVELS.decode,
    "embedding": decode_embedding,
    "min_position": same,
    "external_context": lambda items: tuple(decode_hit(item) for item in items),
    "banks": tuple,
    "bank_group": same,
    "strategy": decode_strategy,
}
HISTORY_READERS: dict[str, Reader] = {
    name: QUERY_READERS[name] for name in ("bank_id", "query", "as_of", "max_results", "max_tokens", "tags")
}
HIT_READERS: dict[str, Reader] = {
    "memory_id": same,
    "text": same,
    "score": same,
    "bank_id": same,
    "metadata": decode_metadata,
    "tags": tuple,
    "occurred_at": decode_instant,
    "retained_at": decode_instant,
    "source": same,
    "memory_layer": same,
    "fact_type": same,
    "session_id": same,
    "speaker": same,
    "principal": same,
    "chunk_index": same,
    "chunk_count": same,
    "token_count": same,
    "version": same,
    "arms": lambda arms: tuple(ArmScore(arm.arm, arm.rank, arm.score) for arm in arms),
    "bank_rank": same,
    "also_in": tuple,
    "boosts": lambda boosts: tuple(Boost(boost.name, boost.value) for boost in boosts),
    "utility_score": same,
    "engine": same,
}


def decode_query(message: memory_pb2.RecallRequest, path: str = "") -> RecallQuery:
    """A question.

    Raises:
        ValidationError: ``path`` goes before the field's name.
    """
    return RecallQuery(**{"query": "", **read(message, QUERY_READERS, path)})


def encode_query(query: RecallQuery) -> memory_pb2.RecallRequest:
    """A question as a request."""
    message = memory_pb2.RecallRequest(
        bank_id=query.bank_id,
        query=query.query,
        max_results=query.max_results,
        max_tokens=query.max_tokens or 0,
        tags=query.tags,
        tag_match=TAG_MATCHES.encode(query.tag_match),
        fact_types=query.fact_types,
        memory_ids=query.memory_ids,
        metadata=encode_metadata(query.metadata),
        session_id=query.session_id or "",
        time_range=encode_range(query.time_range),
        retained_range=encode_range(query.retained_range),
        as_of=encode_instant(query.as_of),
        valid_at=encode_instant(query.valid_at),
        query_reference_date=encode_instant(query.query_reference_date),
        include_sources=query.include_sources,
        include_trace=query.include_trace,
        layer_weights=query.layer_weights,
        weights=query.weights,
        fusion_method=FUSION_METHODS.encode(query.fusion_method),
        rank_constant=query.rank_constant,
        dedup_threshold=query.dedup_threshold,
        detail_level=DETAIL_LEVELS.encode(query.detail_level),
        embedding=encode_embedding(query.embedding),
        min_position=query.min_position,
        banks=query.banks,
        bank_group=query.bank_group or "",
        strategy=encode_strategy(query.strategy),
    )
    for item in query.external_context:
        set_hit(message.external_context.add(), item)
    return message


def decode_history_query(message: memory_pb2.HistoryRequest) -> RecallQuery:
    """A question about the past, as the recall that answers it."""
    if not message.HasField("as_of"):
        raise ValidationError("is required: the instant to look from", field="as_of")
    return RecallQuery(**{"query": "", **read(message, HISTORY_READERS, "")})


def encode_history_request(query: RecallQuery) -> memory_pb2.HistoryRequest:
    """A question about the past as a request; history knows no other fields than these."""
    return memory_pb2.HistoryRequest(
        bank_id=query.bank_id,
        query=query.query,
        as_of=encode_instant(query.as_of),
        max_results=query.max_results,
        max_tokens=query.max_tokens or 0,
        tags=query.tags,
    )


# Fields of a hit that hold text or nothing.
HIT_NAMES = (
    "memory_id",
    "bank_id",
    "source",
    "memory_layer",
    "fact_type",
    "session_id",
    "speaker",
    "principal",
    "engine",
)
# What a hit's fields are when the wire leaves them out.
EMPTY_HIT: dict[str, Any] = {"text": "", "score": 0.0, "tags": (), "metadata": {}}


def decode_hit(message: types_pb2.MemoryHit) -> MemoryHit:
    """A hit."""
    return MemoryHit(**{**EMPTY_HIT, **read(message, HIT_READERS, "")})


def set_hit(message: types_pb2.MemoryHit, hit: MemoryHit) -> None:  # noqa: C901 - a field that is not set is not sent
    """Fill a hit of an answer.

    Every recall does this for each of its hits. Assigning what is set takes two thirds of the time of a dictionary that
    protobuf makes the message of.
    """
    message.text = hit.text
    message.score = hit.score
    message.chunk_count = hit.chunk_count
    message.token_count = hit.token_count
    message.version = hit.version
    for name in HIT_NAMES:
        value = getattr(hit, name)
        if value:
            setattr(message, name, value)
    if hit.chunk_index >= 0:
        message.chunk_index = hit.chunk_index
    if hit.occurred_at is not None:
        set_instant(message.occurred_at, hit.occurred_at)
    if hit.retained_at is not None:
        set_instant(message.retained_at, hit.retained_at)
    if hit.tags:
        message.tags.extend(hit.tags)
    if hit.metadata:
        for key, value in encode_metadata(hit.metadata).items():
            message.metadata[key].CopyFrom(value)
    if hit.bank_rank:
        message.bank_rank = hit.bank_rank
        message.also_in.extend(hit.also_in)
    _set_arms(message, hit.arms)
    if hit.boosts or hit.utility_score is not None:
        _set_stages(message, hit)


def _set_arms(message: types_pb2.MemoryHit, arms: Iterable[ArmScore]) -> None:
    add = message.arms.add
    for arm, rank, score in arms:
        added = add()
        added.arm = arm
        added.rank = rank
        added.score = score


def _set_stages(message: types_pb2.MemoryHit, hit: MemoryHit) -> None:
    for name, value in hit.boosts:
        message.boosts.add(name=name, value=value)
    if hit.utility_score is not None:
        message.utility_score = hit.utility_score


def decode_trace(message: types_pb2.RecallTrace) -> RecallTrace:
    """A trace."""
    return RecallTrace(
        strategies_used=tuple(message.strategies_used),
        total_candidates=message.total_candidates,
        fusion_method=message.fusion_method,
        latency_ms=message.latency_ms,
        strategy_timings_ms=dict(message.strategy_timings_ms),
        strategy_candidate_counts=dict(message.strategy_candidate_counts),
        tier_used=message.tier_used,
        layer_distribution=dict(message.layer_distribution),
        cache_hit=message.cache_hit,
        wiki_tier_used=message.wiki_tier_used,
        stage_timings_ms=dict(message.stage_timings_ms),
        plan=message.plan,
        time_windows=tuple(decode_range(window) for window in message.time_windows),
        position=message.position,
        degraded=message.degraded,
        intent=Intent(message.intent or Intent.UNKNOWN),
        intent_confidence=message.intent_confidence,
        banks=tuple(decode_bank_trace(bank) for bank in message.banks),
        engines=tuple(decode_engine_trace(engine) for engine in message.engines),
        tier_reason=message.tier_reason,
    )


def _serialise(
    response: memory_pb2.RecallResponse | memory_pb2.HistoryResponse, result: RecallResult | HistoryResult
) -> bytes:
    """Fill what recall and history answer alike, and make bytes of it all."""
    response.total_available = result.total_available
    response.truncated = result.truncated
    if result.warnings:
        response.warnings.extend(result.warnings)
    if result.trace is not None:
        set_trace(response.trace, result.trace)
    if isinstance(result.hits, FoundHits):
        # Fields may follow each other in any order; these have the smallest number anyway.
        return result.hits.encoded() + response.SerializeToString()
    add = response.hits.add
    for hit in result.hits:
        set_hit(add(), hit)
    return response.SerializeToString()


def set_trace(message: types_pb2.RecallTrace, trace: RecallTrace) -> None:
    """Fill the trace of an answer, as `set_hit` does a hit."""
    # An empty trace is still a trace.
    message.SetInParent()
    message.strategies_used.extend(trace.strategies_used or ())
    message.total_candidates = trace.total_candidates or 0
    message.fusion_method = trace.fusion_method or ""
    message.latency_ms = 0.0 if trace.latency_ms is None else trace.latency_ms
    message.tier_used = trace.tier_used or 0
    message.cache_hit = trace.cache_hit or False
    message.wiki_tier_used = trace.wiki_tier_used or False
    message.plan = trace.plan or ""
    message.position = trace.position
    message.degraded = trace.degraded
    message.intent = trace.intent
    message.intent_confidence = trace.intent_confidence
    message.tier_reason = trace.tier_reason
    _set_map(message.strategy_timings_ms, trace.strategy_timings_ms)
    _set_map(message.strategy_candidate_counts, trace.strategy_candidate_counts)
    _set_map(message.layer_distribution, trace.layer_distribution)
    _set_map(message.stage_timings_ms, trace.stage_timings_ms)
    for window in trace.time_windows:
        message.time_windows.add(**encode_range(window))
    for bank in trace.banks:
        set_bank_trace(message.banks.add(), bank)
    for engine in trace.engines:
        set_engine_trace(message.engines.add(), engine)


def _set_map(message: MutableMapping[str, V], values: Mapping[str, V] | None) -> None:
    """Item by item: `update` of a map is Python's own, and slow."""
    if values:
        for key, value in values.items():
            message[key] = value


def decode_recall_result(message: memory_pb2.RecallResponse) -> RecallResult:
    """An answer."""
    return RecallResult(
        hits=tuple(decode_hit(hit) for hit in message.hits),
        total_available=message.total_available,
        truncated=message.truncated,
        trace=decode_trace(message.trace) if message.HasField("trace") else None,
        authority_context=message.authority_context or None,
        warnings=tuple(message.warnings),
        confidence=message.confidence if message.HasField("confidence") else None,
        abstain=message.abstain,
    )


def encode_recall_result(result: RecallResult) -> bytes:
    """An answer, as a RecallResponse in bytes."""
    hits, rest = _pieces(result)
    return hits + rest


def encode_recall_results(results: Iterable[RecallResult]) -> bytes:
    """The answers of a batch, as a BatchRecallResponse in bytes."""
    return encode_answers([_pieces(result) for result in results])


def _pieces(result: RecallResult) -> tuple[bytes, bytes]:
    """An answer in bytes: its hits, where these come in one piece, and all the rest."""
    hits, trace = result.hits, result.trace
    if isinstance(hits, FoundHits) and not (trace and (trace.banks or trace.engines)):
        told = None if trace is None else encode_trace(trace, [_encode_window(window) for window in trace.time_windows])
        return hits.encoded(), encode_answer(result, told)
    response = memory_pb2.RecallResponse()
    if result.authority_context:
        response.authority_context = result.authority_context
    if result.confidence is not None:
        response.confidence = result.confidence
    response.abstain = result.abstain
    return b"", _serialise(response, result)


def _encode_window(window: TimeRange) -> bytes:
    return types_pb2.TimeRange(**encode_range(window)).SerializeToString()


def decode_history_result(message: memory_pb2.HistoryResponse) -> HistoryResult:
    """An answer about the past."""
    return HistoryResult(
        hits=tuple(decode_hit(hit) for hit in message.hits),
        total_available=message.total_available,
        truncated=message.truncated,
        as_of=decode_instant(message.as_of),
        bank_id=message.bank_id,
        trace=decode_trace(message.trace) if message.HasField("trace") else None,
        warnings=tuple(message.warnings),
    )


def encode_history_result(result: HistoryResult) -> bytes:
    """An answer about the past, as a HistoryResponse in bytes."""
    response = memory_pb2.HistoryResponse(as_of=encode_instant(result.as_of), bank_id=result.bank_id)
    return _serialise(response, result)
