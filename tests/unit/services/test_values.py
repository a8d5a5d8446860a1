from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from astrocyte.api import RPCS
from astrocyte.api.requests import Forget, History
from astrocyte.errors import ValidationError
from astrocyte.model import ContentType, ForgetSelector, Metadata, RecallQuery, RetainItem
from astrocyte.services import convert
from astrocyte.services.convert import codec_of, codec_of_rpc
from astrocyte.services.convert.memory import CONTENT_TYPES
from astrocyte.services.convert.values import Refused, decode_instant, decode_metadata, encode_instant, encode_metadata
from astrocyte.v1 import memory_pb2, types_pb2


def test_an_instant_of_another_zone_is_the_same_instant() -> None:
    east = datetime(2024, 5, 8, 1, 30, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))
    assert encode_instant(east) == {"seconds": 1_715_124_600, "nanos": 250_000_000}
    assert decode_instant(Timestamp(**encode_instant(east))) == datetime(2024, 5, 7, 23, 30, 0, 250_000, tzinfo=UTC)


def test_an_instant_before_1970() -> None:
    early = datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC)
    assert encode_instant(early) == {"seconds": -1, "nanos": 500_000_000}
    assert decode_instant(Timestamp(seconds=-1, nanos=500_000_000)) == early


@pytest.mark.parametrize("nanos", [-1, 1_000_000_000])
def test_nanos_out_of_range_are_refused(nanos: int) -> None:
    with pytest.raises(Refused, match="nanos must be from 0 to 999,999,999"):
        decode_instant(Timestamp(seconds=0, nanos=nanos))


@pytest.mark.parametrize("seconds", [-(2**63), 2**63 - 1, 253_402_300_800])
def test_a_time_outside_the_calendar_is_refused(seconds: int) -> None:
    with pytest.raises(Refused, match="years 1 to 9999"):
        decode_instant(Timestamp(seconds=seconds))


def test_the_path_of_a_bad_time_is_named() -> None:
    request = memory_pb2.RecallRequest(bank_id="b", query="q")
    request.time_range.end.nanos = -5
    with pytest.raises(ValidationError) as caught:
        codec_of(RecallQuery, memory_pb2.RecallRequest).decode(request, "queries[2].")
    assert caught.value.field == "queries[2].time_range.end"


def test_a_metadata_value_without_a_kind_is_refused() -> None:
    request = memory_pb2.RetainRequest(content="x", metadata={"color": types_pb2.MetadataValue()})
    with pytest.raises(ValidationError, match="set exactly one kind") as caught:
        codec_of(RetainItem, memory_pb2.RetainRequest).decode(request)
    assert caught.value.field == "metadata[color]"


def test_metadata_keeps_types_apart() -> None:
    values: Metadata = {"a": True, "b": 1, "c": 1.0, "d": "1", "e": None}
    decoded = decode_metadata(encode_metadata(values))
    assert {key: type(value) for key, value in decoded.items()} == {key: type(value) for key, value in values.items()}


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_a_number_beyond_64_bits_is_refused(value: int) -> None:
    with pytest.raises(Refused, match="64 bits"):
        encode_metadata({"n": value})


def test_a_metadata_value_of_another_type_is_refused() -> None:
    with pytest.raises(Refused, match="must be a str, int, float, bool or None, got list") as caught:
        encode_metadata({"n": [1]})  # type: ignore[dict-item]
    assert caught.value.at == "[n]"


def test_an_unknown_number_of_an_enum_is_refused() -> None:
    request = memory_pb2.RetainItem(content="x", content_type=99)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match=r"must be one of 1 \(text\), .* got 99") as caught:
        convert.ITEMS.decode(request, "items[0].")
    assert caught.value.field == "items[0].content_type"


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(Refused, match="must be one of text, conversation") as caught:
        CONTENT_TYPES.encode("novel")
    assert caught.value.at == ""


def test_every_name_has_a_number() -> None:
    assert {CONTENT_TYPES.decode(CONTENT_TYPES.encode(member)) for member in ContentType} == set(ContentType)


def test_an_unknown_scope_is_refused_on_both_sides() -> None:
    with pytest.raises(ValidationError, match="got 7"):
        codec_of_rpc(RPCS[Forget]).decode_request(memory_pb2.ForgetRequest(scope=7))  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="'all' or None"):
        codec_of_rpc(RPCS[Forget]).encode_request(Forget("b", ForgetSelector(scope="some")))


def test_history_needs_its_instant() -> None:
    with pytest.raises(ValidationError, match="as_of: is missing"):
        codec_of_rpc(RPCS[History]).decode_request(memory_pb2.HistoryRequest(bank_id="b", query="q"))


@pytest.mark.parametrize(
    ("item", "field", "said"),
    [
        (RetainItem("a\ud800b"), "content", "character 1 is a lone surrogate"),
        (RetainItem("x", tags=("fine", "\udfff")), "tags[1]", "lone surrogate"),
        (RetainItem("x", metadata={"k": "\ud800"}), "metadata[k]", "lone surrogate"),
        (RetainItem("x", metadata={"\ud800": "v"}), "metadata['\\ud800']", "lone surrogate"),
        (RetainItem("x", occurred_at=datetime(2024, 1, 1)), "occurred_at", "must carry a time zone"),  # noqa: DTZ001
        (RetainItem("x", source=5), "request", "wrong type"),  # type: ignore[arg-type]
        (RetainItem("x", tags=({"a"},)), "tags[0]", "got set"),  # type: ignore[arg-type]
        (RetainItem("x", content_type=""), "content_type", "must be one of"),
    ],
)
def test_what_cannot_be_sent_is_named(item: RetainItem, field: str, said: str) -> None:
    with pytest.raises(Exception) as caught:
        convert.ITEMS.encode(item)
    refused = convert.refuse(caught.value, {"": item})
    assert refused.field == field
    assert said in refused.description
