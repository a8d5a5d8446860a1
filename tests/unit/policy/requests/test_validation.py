import struct
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from astrocyte.config import LimitSettings
from astrocyte.errors import ValidationError
from astrocyte.model import (
    Embedding,
    ForgetSelector,
    FusionMethod,
    MemoryUpdate,
    RecallQuery,
    RetainItem,
    TagMatch,
    TimeRange,
)
from astrocyte.policy.requests import field_checks
from astrocyte.policy.requests.validation import Validator

CHECK = Validator(LimitSettings(), profiles=["builtin_text"])
MOST_BYTES = 102_400
ITEM = RetainItem("hello")
QUERY = RecallQuery("what?", "bank")
NAIVE = datetime(2024, 1, 1)  # noqa: DTZ001 - the point
LATE, EARLY = datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)


def vector(*values: float, dimensions: int | None = None) -> Embedding:
    return Embedding("m", len(values) if dimensions is None else dimensions, struct.pack(f"<{len(values)}f", *values))


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        call()
    assert caught.value.metadata["field"] == caught.value.field
    return caught.value.field


@pytest.mark.parametrize("bank_id", ["a", "A9", "user-42", "a:b@c.d_e", "x" * 255])
def test_bank_ids(bank_id: str) -> None:
    field_checks.bank_id(bank_id)


@pytest.mark.parametrize(
    "bank_id",
    [
        "",
        "-a",
        ".a",
        "a b",
        "a/b",
        "x" * 256,
        "caf\u00e9",
        "\uff41",
        "\u2460",
        "a\n",
        "a\x00",
        "\ud800",
        "a\u200b",
        None,
        3,
    ],
)
def test_bank_ids_that_are_none(bank_id: Any) -> None:
    assert refused(lambda: field_checks.bank_id(bank_id)) == "bank_id"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"content": ""}, "content"),
        ({"content": " \n\t"}, "content"),
        ({"content": "x" * 102_401}, "content"),
        ({"content": "é" * 51_201}, "content"),
        ({"content": "x" * 1_000_000}, "content"),
        ({"content": "a\ud800b"}, "content"),
        ({"content": "a\x00b"}, "content"),
        ({"content": b"bytes"}, "content"),
        ({"content": None}, "content"),
        ({"content_type": ""}, "content_type"),
        ({"content_type": "a\n"}, "content_type"),
        ({"content_type": "conversatoin"}, "content_type"),
        ({"content_type": "Text"}, "content_type"),
        ({"content_type": None}, "content_type"),
        ({"content_type": ["text"]}, "content_type"),
        ({"tags": "abc"}, "tags"),
        ({"tags": 3}, "tags"),
        ({"tags": None}, "tags"),
        ({"metadata": [1]}, "metadata"),
        ({"metadata": None}, "metadata"),
        ({"occurred_at": "2024-01-01"}, "occurred_at"),
        ({"valid_from": 3}, "valid_from"),
        ({"embedding": [1.0, 2.0]}, "embedding"),
        ({"embedding": Embedding("m", 1, [1.0])}, "embedding.values"),  # type: ignore[arg-type] # the point
        ({"embedding": Embedding(None, 1, b"")}, "embedding.model"),  # type: ignore[arg-type] # the point
        ({"dedup_action": "skip"}, "dedup_action"),
        ({"tags": ("a",) * 10_000}, "tags"),
        ({"tags": ("ok", "")}, "tags[1]"),
        ({"tags": ("ok", "a\x07")}, "tags[1]"),
        ({"tags": ("x" * 129,)}, "tags[0]"),
        ({"tags": ("\udfff",)}, "tags[0]"),
        ({"tags": (3,)}, "tags[0]"),
        ({"metadata": {"": 1}}, "metadata"),
        ({"metadata": {"_reserved": 1}}, "metadata[_reserved]"),
        ({"metadata": {"a\n": 1}}, "metadata"),
        ({"metadata": {"k": float("nan")}}, "metadata[k]"),
        ({"metadata": {"k": float("inf")}}, "metadata[k]"),
        ({"metadata": {"k": 2**63}}, "metadata[k]"),
        ({"metadata": {"k": [1]}}, "metadata[k]"),
        ({"metadata": {"k": "a\x00"}}, "metadata[k]"),
        ({"metadata": {"k": "a\x1b[2J"}}, "metadata[k]"),
        ({"metadata": {"k": "\ud800"}}, "metadata[k]"),
        ({"metadata": {"k": "x" * 1_025}}, "metadata[k]"),
        ({"metadata": {"k" * 129: 1}}, "metadata"),
        ({"metadata": {f"k{n}": 1 for n in range(65)}}, "metadata"),
        ({"metadata": {f"k{n}": "x" * 1_000 for n in range(5)}}, "metadata"),
        ({"occurred_at": NAIVE}, "occurred_at"),
        # Of no year in UTC.
        ({"occurred_at": datetime.max.replace(tzinfo=timezone(timedelta(hours=-14)))}, "occurred_at"),
        ({"occurred_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))}, "occurred_at"),
        ({"valid_from": NAIVE}, "valid_from"),
        ({"valid_until": NAIVE}, "valid_until"),
        ({"valid_from": LATE, "valid_until": EARLY}, "valid_until"),
        ({"source": ""}, "source"),
        ({"session_id": "x" * 257}, "session_id"),
        ({"speaker": "a\nb"}, "speaker"),
        ({"fact_type": ""}, "fact_type"),
        ({"extraction_profile": "none_such"}, "extraction_profile"),
        ({"embedding": vector(1.0, dimensions=2)}, "embedding.values"),
        ({"embedding": vector(dimensions=0)}, "embedding.dimensions"),
        ({"embedding": vector(1.0, float("nan"))}, "embedding.values"),
        ({"embedding": vector(1.0, float("inf"))}, "embedding.values"),
        ({"embedding": vector(0.0, 0.0)}, "embedding.values"),
        ({"embedding": vector(1e-40, 0.0)}, "embedding.values"),
        ({"embedding": replace(vector(1.0), model="")}, "embedding.model"),
        ({"dedup_threshold": 1.1}, "dedup_threshold"),
        ({"dedup_threshold": 0.0}, "dedup_threshold"),
        ({"dedup_threshold": True}, "dedup_threshold"),
        ({"dedup_threshold": float("nan")}, "dedup_threshold"),
    ],
)
def test_items_that_are_wrong(changes: dict[str, Any], field: str) -> None:
    assert refused(lambda: CHECK.item(replace(ITEM, **changes), MOST_BYTES)) == field
    assert refused(lambda: CHECK.items([ITEM, replace(ITEM, **changes)], MOST_BYTES)) == f"items[1].{field}"


def test_an_item_at_every_limit_passes() -> None:
    CHECK.item(
        RetainItem(
            "é" * 51_200,
            tags=tuple(f"{n:0128}" for n in range(64)),
            metadata={f"{n:02}": "line\n\tx" for n in range(62)} | {"none": None, "big": 2**63 - 1},
            occurred_at=datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=9))),
            valid_from=EARLY,
            valid_until=EARLY,
            embedding=vector(*([1.0] * 4_096)),
            extraction_profile="builtin_text",
            dedup_threshold=1.0,
        ),
        MOST_BYTES,
    )


@pytest.mark.parametrize("count", [0, 257])
def test_batches_have_a_size(count: int) -> None:
    assert refused(lambda: CHECK.items([ITEM] * count, MOST_BYTES)) == "items"
    assert refused(lambda: CHECK.queries([QUERY] * count)) == "queries"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": "  "}, "query"),
        ({"query": "x" * 8_193}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": "\x00"}, "query"),
        ({"max_results": 0}, "max_results"),
        ({"max_results": -1}, "max_results"),
        ({"max_results": 1_000_000}, "max_results"),
        ({"max_results": 1.5}, "max_results"),
        ({"max_results": True}, "max_results"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"min_position": -1}, "min_position"),
        ({"min_position": 2**63}, "min_position"),
        ({"tags": ("a",) * 65}, "tags"),
        ({"fact_types": ("a",) * 33}, "fact_types"),
        ({"fact_types": ("",)}, "fact_types[0]"),
        ({"memory_ids": ("mem_1",) * 1_001}, "memory_ids"),
        ({"metadata": {"k": [1]}}, "metadata[k]"),
        ({"session_id": ""}, "session_id"),
        ({"as_of": NAIVE}, "as_of"),
        ({"valid_at": NAIVE}, "valid_at"),
        ({"query_reference_date": NAIVE}, "query_reference_date"),
        ({"time_range": TimeRange(NAIVE, LATE)}, "time_range.start"),
        ({"time_range": TimeRange(LATE, NAIVE)}, "time_range.end"),
        ({"time_range": TimeRange(LATE, EARLY)}, "time_range"),
        ({"time_range": TimeRange()}, "time_range"),
        ({"retained_range": TimeRange(LATE, EARLY)}, "retained_range"),
        ({"weights": {"graph": 1.0}}, "weights"),
        ({"weights": {"keyword": -1.0}}, "weights[keyword]"),
        ({"weights": {"keyword": float("nan")}}, "weights[keyword]"),
        ({"weights": {"keyword": float("inf")}}, "weights[keyword]"),
        ({"weights": {"semantic": 0, "keyword": 0, "temporal": 0}}, "weights"),
        ({"layer_weights": {"semantic": -0.1}}, "layer_weights[semantic]"),
        ({"layer_weights": {"a\n": 1}}, "layer_weights"),
        ({"layer_weights": {"semantik": 1.0}}, "layer_weights"),
        ({"rank_constant": 0.0}, "rank_constant"),
        ({"rank_constant": float("inf")}, "rank_constant"),
        ({"dedup_threshold": -0.1}, "dedup_threshold"),
        ({"dedup_threshold": 0}, "dedup_threshold"),
        ({"embedding": vector(0.0)}, "embedding.values"),
        ({"query": None}, "query"),
        ({"as_of": "2024"}, "as_of"),
        ({"time_range": (EARLY, LATE)}, "time_range"),
        ({"time_range": TimeRange("2024", None)}, "time_range.start"),  # type: ignore[arg-type] # the point
        ({"tags": "abc"}, "tags"),
        ({"memory_ids": "mem_1"}, "memory_ids"),
        ({"metadata": [1]}, "metadata"),
        ({"weights": [1]}, "weights"),
        ({"layer_weights": [1]}, "layer_weights"),
        ({"tag_match": "any"}, "tag_match"),
        ({"detail_level": "titles"}, "detail_level"),
        ({"fusion_method": "rrf"}, "fusion_method"),
        # Without effect.
        ({"tag_match": TagMatch.ALL}, "tag_match"),
        ({"tag_match": TagMatch.NONE}, "tag_match"),
        ({"rank_constant": 10.0}, "rank_constant"),
        ({"rank_constant": 10.0, "fusion_method": FusionMethod.RELATIVE_SCORE}, "rank_constant"),
        ({"weights": {"semantic": 0, "keyword": 0}}, "weights"),
        ({"weights": {"semantic": 0.0, "keyword": 0.0, "temporal": 2.0}}, "weights"),
    ],
)
def test_queries_that_are_wrong(changes: dict[str, Any], field: str) -> None:
    assert refused(lambda: CHECK.query(replace(QUERY, **changes))) == field
    assert refused(lambda: CHECK.queries([QUERY, replace(QUERY, **changes)])) == f"queries[1].{field}"


def test_queries_at_the_limits_pass() -> None:
    CHECK.query(replace(QUERY, max_results=200, query="x" * 8_192, weights={"semantic": 0}))
    dates_only = replace(QUERY, weights={"semantic": 0, "keyword": 0})
    CHECK.query(replace(dates_only, query="what was in May?"))
    CHECK.query(replace(dates_only, time_range=TimeRange(EARLY, None)))
    CHECK.query(replace(QUERY, time_range=TimeRange(EARLY, EARLY), retained_range=TimeRange(None, LATE)))
    CHECK.query(replace(QUERY, query="", embedding=vector(1.0)))


def test_formats_of_ones_own() -> None:
    for name in ("markdown", "slack", "json", "x"):
        CHECK.item(replace(ITEM, content_type=name), MOST_BYTES)
    with pytest.raises(ValidationError, match="did you mean 'conversation'") as caught:
        CHECK.item(replace(ITEM, content_type="conversatoin"), MOST_BYTES)
    assert caught.value.metadata["nearest"] == "conversation"
    assert refused(lambda: CHECK.item(replace(ITEM, content_type="mail"), MOST_BYTES)) == "content_type"
    Validator(LimitSettings(), content_types=["mail"]).item(replace(ITEM, content_type="mail"), MOST_BYTES)


def test_a_rank_constant_has_its_effect_where_ranks_are_fused() -> None:
    CHECK.query(replace(QUERY, rank_constant=10.0, fusion_method=FusionMethod.RRF))
    by_ranks = Validator(LimitSettings(), fusion_method="rrf")
    by_ranks.query(replace(QUERY, rank_constant=10.0))
    scores = replace(QUERY, rank_constant=10.0, fusion_method=FusionMethod.RELATIVE_SCORE)
    assert refused(lambda: by_ranks.query(scores)) == "rank_constant"


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        (ForgetSelector(), "selector"),
        (ForgetSelector(scope="some"), "scope"),
        (ForgetSelector(memory_ids=("a",) * 1_001), "memory_ids"),
        (ForgetSelector(tags=("",)), "tags[0]"),
        (ForgetSelector(tags="abc"), "tags"),  # type: ignore[arg-type] # the point
        (ForgetSelector(before_date="2024"), "before_date"),  # type: ignore[arg-type] # the point
    ],
)
def test_selectors_that_are_wrong(selector: ForgetSelector, field: str) -> None:
    assert refused(lambda: CHECK.selector(selector)) == field


def test_a_date_without_a_zone_to_forget_before_is_utc() -> None:
    assert CHECK.selector(ForgetSelector(before_date=NAIVE)).before_date == EARLY
    assert CHECK.selector(ForgetSelector(before_date=LATE)).before_date == LATE


@pytest.mark.parametrize(
    ("update", "field"),
    [
        (MemoryUpdate("m", frozenset()), "fields"),
        (MemoryUpdate("m", frozenset({"speaker"})), "fields"),
        (MemoryUpdate("m", frozenset({"content"})), "content"),
        (MemoryUpdate("", frozenset({"tags"})), "memory_id"),
        (MemoryUpdate("m", frozenset({"tags"}), embedding=vector(1.0)), "embedding"),
        (MemoryUpdate("m", frozenset({"occurred_at"}), occurred_at=NAIVE), "occurred_at"),
    ],
)
def test_updates_that_are_wrong(update: MemoryUpdate, field: str) -> None:
    assert refused(lambda: CHECK.update(update, MOST_BYTES)) == field


@pytest.mark.parametrize("size", [-1, 1_001])
def test_page_sizes(size: int) -> None:
    assert refused(lambda: CHECK.page_limit(size)) == "page_size"
    assert CHECK.page_limit(0).entries == 100
    assert CHECK.page_limit(1_000).entries == 1_000


def test_no_message_repeats_content() -> None:
    for item in (replace(ITEM, content="secret\x00"), replace(ITEM, tags=("secret\x07",))):
        with pytest.raises(ValidationError) as caught:
            CHECK.item(item, MOST_BYTES)
        assert "secret" not in str(caught.value)
