"""Reflect: the question and the answer."""

from __future__ import annotations

from typing import Any

from astrocyte.model import Citation, Dispositions, ReflectMode, ReflectQuery, ReflectResult
from astrocyte.services.convert.multi_bank import encode_strategy
from astrocyte.services.convert.recall import QUERY_READERS, TAG_MATCHES, decode_hit, decode_trace, set_hit, set_trace
from astrocyte.services.convert.values import Choices, Reader, encode_embedding, encode_instant, encode_range, read
from astrocyte.v1 import memory_pb2

MODES = Choices("mode", ReflectMode, memory_pb2.ReflectMode, "REFLECT_MODE_")
TRAITS = ("skepticism", "literalism", "empathy")


def _decode_dispositions(message: memory_pb2.Dispositions) -> Dispositions:
    """Traits that are 0 are left at what they are by themselves."""
    return Dispositions(**{name: value for name in TRAITS if (value := getattr(message, name))})


REFLECT_READERS: dict[str, Reader] = {
    **{
        name: QUERY_READERS[name]
        for name in (
            "bank_id",
            "query",
            "max_tokens",
            "tags",
            "tag_match",
            "fact_types",
            "session_id",
            "time_range",
            "as_of",
            "valid_at",
            "query_reference_date",
            "include_sources",
            "embedding",
            "min_position",
            "banks",
            "bank_group",
            "strategy",
        )
    },
    "dispositions": _decode_dispositions,
    "mode": MODES.decode,
}


def decode_reflect_query(message: memory_pb2.ReflectRequest) -> ReflectQuery:
    """A question.

    Raises:
        ValidationError: A field cannot be read.
    """
    return ReflectQuery(**{"bank_id": "", "query": "", **read(message, REFLECT_READERS, "")})


def encode_reflect_query(query: ReflectQuery) -> memory_pb2.ReflectRequest:
    """A question as a request."""
    return memory_pb2.ReflectRequest(
        bank_id=query.bank_id,
        query=query.query,
        max_tokens=query.max_tokens or 0,
        tags=query.tags,
        tag_match=TAG_MATCHES.encode(query.tag_match),
        fact_types=query.fact_types,
        session_id=query.session_id or "",
        time_range=encode_range(query.time_range),
        as_of=encode_instant(query.as_of),
        valid_at=encode_instant(query.valid_at),
        query_reference_date=encode_instant(query.query_reference_date),
        include_sources=query.include_sources,
        dispositions=_encode_dispositions(query.dispositions),
        mode=MODES.encode(query.mode),
        embedding=encode_embedding(query.embedding),
        min_position=query.min_position,
        banks=query.banks,
        bank_group=query.bank_group or "",
        strategy=encode_strategy(query.strategy),
    )


def _encode_dispositions(value: Dispositions | None) -> Any:  # noqa: ANN401 - a dictionary that protobuf takes for it
    return None if value is None else {name: getattr(value, name) for name in TRAITS}


def encode_reflect_result(result: ReflectResult) -> memory_pb2.ReflectResponse:
    """An answer."""
    response = memory_pb2.ReflectResponse(
        answer=result.answer,
        confidence=result.confidence,
        observations=result.observations or (),
        authority_context=result.authority_context or "",
        abstained=result.abstained,
        mode=MODES.encode(result.mode),
        fallback_used=result.fallback_used,
        truncated=result.truncated,
        tokens_used=result.tokens_used,
    )
    for hit in result.sources or ():
        set_hit(response.sources.add(), hit)
    for start, end, memory_id in result.citations:
        response.citations.add(start=start, end=end, memory_id=memory_id)
    if result.trace is not None:
        set_trace(response.trace, result.trace)
    return response


def decode_reflect_result(message: memory_pb2.ReflectResponse, *, include_sources: bool) -> ReflectResult:
    """An answer; whether its sources were asked for tells none from not wanted."""
    return ReflectResult(
        answer=message.answer,
        confidence=message.confidence if message.HasField("confidence") else None,
        sources=tuple(decode_hit(hit) for hit in message.sources) if include_sources else None,
        observations=tuple(message.observations),
        authority_context=message.authority_context or None,
        citations=tuple(Citation(part.start, part.end, part.memory_id) for part in message.citations),
        abstained=message.abstained,
        mode=MODES.decode(message.mode) if message.mode else None,
        fallback_used=message.fallback_used,
        truncated=message.truncated,
        tokens_used=message.tokens_used,
        trace=decode_trace(message.trace) if message.HasField("trace") else None,
    )
