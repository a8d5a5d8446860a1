"""Codecs of queries, hits and traces, and the responses of recalls, which are encoded to bytes at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from astrocyte.api.requests import Recall
from astrocyte.core import encode_batch
from astrocyte.model import (
    Counterfactual,
    ExplainQuery,
    HistoryResult,
    MemoryHit,
    MultiBankStrategy,
    RecallQuery,
    RecallResult,
    RecallTrace,
    ReflectQuery,
    TimeRange,
)
from astrocyte.pipelines.recall.hits import FoundHits
from astrocyte.services.convert.codec import Codec, Unset, codec_of, register
from astrocyte.services.convert.values import offset_of
from astrocyte.v1 import memory_pb2, types_pb2

# Fields of a query that a HistoryRequest has.
HISTORY_FIELDS = frozenset({"bank_id", "query", "as_of", "max_results", "max_tokens", "tags"})


class HitCodec(Codec[MemoryHit]):
    """Codec of a hit: one without tags and metadata has none, and a hit that is no chunk has no index."""

    def __init__(self, kind: type[MemoryHit], message: Any) -> None:  # noqa: ANN401 - a class of messages
        super().__init__(kind, message, unset=Unset.DEFAULT)

    def values(self, message: Any) -> dict[str, Any]:  # noqa: ANN401 - a message
        """The fields, with empty tags and metadata where none are set."""
        return {"tags": (), "metadata": {}, **super().values(message)}

    def write(self, value: MemoryHit) -> dict[str, Any]:
        """The fields, without an index where the hit is no chunk."""
        made = super().write(value)
        if value.chunk_index < 0:
            del made["chunk_index"]
        return made


class QueryCodec(Codec[Any]):
    """Codec of a query. An instant on the wire has no offset: that of the reference date is sent as the time zone."""

    def __init__(self, kind: type[Any], message: Any) -> None:  # noqa: ANN401 - a class of messages
        super().__init__(kind, message, unset=Unset.DEFAULT)

    def write(self, value: RecallQuery | ReflectQuery) -> dict[str, Any]:
        """The fields, with a time zone where the reference date has one."""
        made = super().write(value)
        zone = value.time_zone or offset_of(value.query_reference_date)
        return {**made, "time_zone": zone} if zone else made


register(MemoryHit, HitCodec)
register(RecallTrace, unset=Unset.EMPTY)
register(MultiBankStrategy, unset=Unset.NULL)
register(RecallQuery, QueryCodec)
register(ReflectQuery, QueryCodec)
register(ExplainQuery, names={"query": "recall"})
register(Counterfactual, names={"query": "recall"})

QUERIES = codec_of(RecallQuery, memory_pb2.RecallRequest)
HISTORY_QUERIES = Codec(
    RecallQuery,
    memory_pb2.HistoryRequest,
    unset=Unset.DEFAULT,
    omit={field.name for field in fields(RecallQuery)} - HISTORY_FIELDS,
)
RESULTS = codec_of(RecallResult, memory_pb2.RecallResponse)
HISTORY_RESULTS = codec_of(HistoryResult, memory_pb2.HistoryResponse)
# The same, of results whose hits are bytes already.
_RESULTS_REST = Codec(RecallResult, memory_pb2.RecallResponse, omit={"hits"})
_HISTORY_REST = Codec(HistoryResult, memory_pb2.HistoryResponse, omit={"hits"})
_WINDOWS = codec_of(TimeRange, types_pb2.TimeRange)


def decode_recall(message: Any) -> Recall:  # noqa: ANN401 - a message
    """The request of a RecallRequest; raises what `Codec.decode` does."""
    return Recall(QUERIES.decode(message))


def encode_recall_result(result: RecallResult) -> bytes:
    """A RecallResponse in bytes."""
    hits, trace = result.hits, result.trace
    if not isinstance(hits, FoundHits):
        return _serialised(RESULTS, result)
    if result.directives or (trace and _has_parts(trace)):
        # Fields may follow each other in any order.
        return hits.encode_hits() + _serialised(_RESULTS_REST, result)
    return hits.encode(result, [*map(_encode_window, trace.time_windows)] if trace else [])


def encode_recall_results(results: Iterable[RecallResult]) -> bytes:
    """A BatchRecallResponse in bytes."""
    return encode_batch([encode_recall_result(result) for result in results])


def encode_history_result(result: HistoryResult) -> bytes:
    """A HistoryResponse in bytes."""
    if isinstance(result.hits, FoundHits):
        return result.hits.encode_hits() + _serialised(_HISTORY_REST, result)
    return _serialised(HISTORY_RESULTS, result)


def _has_parts(trace: RecallTrace) -> bool:
    """True if a trace has what the core does not write."""
    return bool(trace.banks or trace.engines or trace.date_warnings or trace.via or trace.prefixes)


def _encode_window(window: TimeRange) -> bytes:
    return _serialised(_WINDOWS, window)


def _serialised(codec: Codec[Any], value: object) -> bytes:
    made: bytes = codec.encode(value).SerializeToString()
    return made
