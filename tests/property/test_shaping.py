"""Hits that leave by the wire without having been objects say what the objects would have said, in as many bytes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from math import copysign
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from astrocyte import core, model
from astrocyte.core import Core, RecallRequest, Row, content_hash, vector_bytes
from astrocyte.model import Intent, PrefixExpansion, RecallQuery, RecallResult, RecallTrace
from astrocyte.model import TimeRange as ModelRange
from astrocyte.pipelines.recall.hits import FoundHits
from astrocyte.services import convert
from astrocyte.services.convert import codec_of
from astrocyte.stores.records import HydratedRow
from astrocyte.v1.memory_pb2 import RecallResponse
from astrocyte.v1.types_pb2 import MemoryHit, TimeRange
from astrocyte.v1.types_pb2 import RecallTrace as TraceMessage
from samples import strategies

TEXTS = ("green tea", "black tea", "white tea with milk")
# Milliseconds of the years 1 and 9999.
times = st.integers(-62_135_596_800_000, 253_402_300_799_999)


def _ranked() -> core.Answer:
    """The answer of a bank of three memories, one of them by a chunk of two."""
    bank = Core().bank(2)
    bank.apply(
        1,
        [
            Row(
                key,
                bytes([key] * 16),
                content_hash(text),
                text,
                vector_bytes([1.0, key]),
                tokens=key,
                known_from=0,
                metadata=[("speaker", "@me")] if "milk" in text else (),
                chunks=[("milk", None, 1), (text, None, 3)] if "milk" in text else (),
            )
            for key, text in enumerate(TEXTS, start=1)
        ],
    )
    lift = ("own", [("speaker", "@me")], 0.25, 0.5, 3, 100)
    return bank.recall(RecallRequest(text="tea", vector=vector_bytes([1.0, 0.5]), lift=lift))


RESPONSE = _ranked()
PASSAGES = RESPONSE.passages
details = st.builds(
    HydratedRow,
    row_key=st.just(0),
    ordinal=st.just(-1),
    memory_id=strategies.names,
    version=st.integers(1, 2**31 - 1),
    content=strategies.texts,
    chunk_text=strategies.texts,
    fact_type=strategies.names,
    memory_layer=strategies.names,
    tags=strategies.tags,
    metadata=strategies.metadata,
    source=strategies.optional_names,
    session_id=strategies.optional_names,
    speaker=strategies.optional_names,
    principal=strategies.names,
    occurred_at=st.none() | times,
    retained_at=times,
    chunk_count=st.integers(1, 2**31 - 1),
    token_count=strategies.counts,
)


def _rows(chosen: list[HydratedRow | None]) -> list[HydratedRow]:
    """As the database gives them: in any order, and not all."""
    return [
        row._replace(row_key=key, ordinal=ordinal)
        for row, (key, ordinal) in zip(chosen, PASSAGES, strict=True)
        if row is not None
    ]


def _check(hits: FoundHits) -> None:
    """As a message and as bytes they are what the objects become by way of protobuf; maps have no order there."""
    raw, objects = hits.encode_hits(), convert.encode_recall_result(RecallResult(tuple(hits), 0, truncated=False))
    assert len(raw) == len(objects)
    assert RecallResponse.FromString(raw) == RecallResponse.FromString(objects)
    if all(len(hit.metadata or ()) < 2 for hit in hits):
        assert raw == objects


@settings(max_examples=200)
@given(st.lists(st.none() | details, min_size=3, max_size=3), st.randoms(use_true_random=False), st.booleans())
def test_the_bytes_say_what_the_objects_say(
    chosen: list[HydratedRow | None], order: Random, include_sources: bool
) -> None:
    rows = _rows(chosen)
    order.shuffle(rows)
    hits = FoundHits(RecallQuery("tea", "bank", include_sources=include_sources), RESPONSE, rows)
    _check(hits)
    assert len(hits) == len(rows)


# Fields of the answers of several banks, which are never made of one bank's rows alone.
OF_SEVERAL_BANKS = {"bank_rank", "also_in"}
# Fields of stages after the core, whose answers are made hit by hit.
OF_STAGES = {"utility_score"}
# Nor of a side: a hit of an engine was never a row.
OF_ENGINES = {"engine"}
RICH = HydratedRow(
    1,
    -1,
    "mem_1",
    2,
    "content",
    "text",
    "world",
    "episodic",
    ("tag",),
    {"text": "t", "int": -1, "double": -0.0, "bool": False, "none": None, "": ""},
    "source",
    "session",
    "speaker",
    "principal",
    -1,
    1_700_000_000_123,
    3,
    4,
)


def test_no_field_of_a_hit_is_forgotten() -> None:
    """A field that the protocol gains must be written too."""
    rows = [RICH._replace(row_key=key, ordinal=ordinal) for key, ordinal in PASSAGES if ordinal > 0]
    hits = FoundHits(RecallQuery("tea", "bank", include_sources=True), RESPONSE, rows)
    (message,) = RecallResponse.FromString(hits.encode_hits()).hits
    written = {field.name for field, _ in message.ListFields()}
    assert written == set(MemoryHit.DESCRIPTOR.fields_by_name) - OF_SEVERAL_BANKS - OF_STAGES - OF_ENGINES
    kinds = {value.WhichOneof("kind") for value in message.metadata.values()}
    assert kinds == set(type(message.metadata["none"]).DESCRIPTOR.fields_by_name)
    assert {field.name for field, _ in message.arms[0].ListFields()} == {"arm", "rank", "score"}
    _check(hits)


def test_hits_are_a_sequence_like_the_tuple_of_them() -> None:
    rows = _rows([RICH, RICH, RICH])
    hits = FoundHits(RecallQuery("tea", "bank"), RESPONSE, rows)
    made = tuple(hits)
    assert hits == made
    assert hits == FoundHits(RecallQuery("tea", "bank"), RESPONSE, rows)
    assert hits != made[1:]
    assert hits[1:] == made[1:]
    assert hits[0] is made[0]
    assert repr(hits) == repr(made)
    assert {hit.source for hit in hits} == {None}
    assert replace(RecallResult(hits, 3, truncated=False)) == RecallResult(made, 3, truncated=False)


def _rest(result: RecallResult) -> bytes:
    """The response without hits as the core writes it."""
    found = () if result.trace is None else result.trace.time_windows
    windows = [codec_of(model.TimeRange, TimeRange).encode(one).SerializeToString() for one in found]
    return RESPONSE.encode(result, [], "bank", False, windows)


@given(strategies.recall_results)
def test_the_rest_of_an_answer_is_what_protobuf_writes(result: RecallResult) -> None:
    """With hits that are objects protobuf writes it all; always directives, paths, prefixes, warnings of dates."""
    trace = None if result.trace is None else replace(result.trace, date_warnings=(), via=(), prefixes=())
    bare = replace(result, hits=(), trace=trace, directives=())
    message = RecallResponse.FromString(convert.encode_recall_result(bare))
    raw = _rest(bare)
    # Maps have no order.
    assert RecallResponse.FromString(raw) == message
    assert len(raw) == message.ByteSize()


def test_a_zero_below_zero_is_written_as_protobuf_writes_it() -> None:
    # It has a bit that says so, and is false all the same.
    trace = RecallTrace(strategies_used=(), total_candidates=0, fusion_method="rrf", latency_ms=-0.0)
    result = RecallResult((), 0, truncated=False, trace=trace)
    message = RecallResponse.FromString(convert.encode_recall_result(result))
    assert copysign(1.0, message.trace.latency_ms) == -1.0
    assert _rest(result) == message.SerializeToString(deterministic=True)


def test_no_field_of_an_answer_is_forgotten() -> None:
    trace = RecallTrace(
        strategies_used=("semantic",),
        total_candidates=1,
        fusion_method="rrf",
        latency_ms=0.5,
        strategy_timings_ms={"semantic": 0.25},
        strategy_candidate_counts={"semantic": 2},
        tier_used=3,
        layer_distribution={"": 4},
        cache_hit=True,
        wiki_tier_used=True,
        stage_timings_ms={"core": 0.75, "": 0.0},
        plan="scan",
        time_windows=(ModelRange(), ModelRange(start=datetime(2024, 5, 1, tzinfo=UTC))),
        position=5,
        degraded="vector_store",
        intent=Intent.FACTUAL,
        intent_confidence=0.5,
        tier_reason="none",
    )
    result = RecallResult(
        (), 7, truncated=True, trace=trace, authority_context="a", warnings=("w",), confidence=0.5, abstain=True
    )
    message = RecallResponse.FromString(_rest(result))
    assert {field.name for field, _ in message.ListFields()} == set(RecallResponse.DESCRIPTOR.fields_by_name) - {
        "hits",
        "directives",
    }
    written = {field.name for field, _ in message.trace.ListFields()}
    # Answers of several banks, of engines, of the graph arm, to impossible dates and to prefixes are made by protobuf.
    by_protobuf = {"banks", "engines", "date_warnings", "via", "prefixes"}
    assert written == set(TraceMessage.DESCRIPTOR.fields_by_name) - by_protobuf
    assert codec_of(RecallResult, RecallResponse).decode(message) == result


def test_an_answer_with_hits_that_nobody_looked_at_is_whole() -> None:
    hits = FoundHits(RecallQuery("tea", "bank"), RESPONSE, _rows([RICH, RICH, RICH]))
    result = RecallResult(hits, 3, truncated=False, trace=RecallTrace(position=9), confidence=0.0)
    message = RecallResponse.FromString(convert.encode_recall_result(result))
    assert message == RecallResponse.FromString(convert.encode_recall_result(replace(result, hits=tuple(hits))))


def test_a_warning_of_a_date_is_written_beside_hits_that_nobody_looked_at() -> None:
    hits = FoundHits(RecallQuery("tea", "bank"), RESPONSE, _rows([RICH, RICH, RICH]))
    trace = RecallTrace(position=9, date_warnings=("30 February is no date of the calendar",))
    result = RecallResult(hits, 3, truncated=False, trace=trace)
    message = RecallResponse.FromString(convert.encode_recall_result(result))
    assert list(message.trace.date_warnings) == list(trace.date_warnings)
    assert len(message.hits) == 3


def test_words_of_a_prefix_are_written_beside_hits_that_nobody_looked_at() -> None:
    hits = FoundHits(RecallQuery("tea*", "bank"), RESPONSE, _rows([RICH, RICH, RICH]))
    trace = RecallTrace(position=9, prefixes=(PrefixExpansion("tea", "bank", ("tea", "teapot"), 2),))
    result = RecallResult(hits, 3, truncated=False, trace=trace)
    message = RecallResponse.FromString(convert.encode_recall_result(result))
    (told,) = message.trace.prefixes
    assert (told.prefix, told.bank_id, list(told.words), told.total) == ("tea", "bank", ["tea", "teapot"], 2)
    assert len(message.hits) == 3
